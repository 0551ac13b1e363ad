"""What all calls say of themselves: the engine, the seconds, and where bytes came from."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class CallStats:
    """How a call went; ``seconds`` is the whole of it, but for compiling.

    Its parts are ``load_seconds`` (what there was to load first), ``traversal_seconds`` (searching)
    and ``naming_seconds`` (to ids). Kernels are compiled once on a machine: ``compile_seconds`` are
    what that took besides. ``fallback`` says why the GPU was not used, where one was expected, and
    ``engine_reason`` why ``auto`` read from disk.
    """

    engine: str
    threads: int
    seconds: float
    load_seconds: float
    traversal_seconds: float
    naming_seconds: float
    slow_bytes_by_tier: dict[str, int] = field(default_factory=dict, kw_only=True)
    fallback: str | None = field(default=None, kw_only=True)
    engine_reason: str | None = field(default=None, kw_only=True)
    compile_seconds: float = field(default=0.0, kw_only=True)

    @property
    def slow_bytes(self) -> int | None:
        """Bytes that came from disk or host memory; None where they are not counted."""
        return sum(self.slow_bytes_by_tier.values()) if self.slow_bytes_by_tier else None
