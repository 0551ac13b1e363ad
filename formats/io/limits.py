"""How much memory reading an input may take, so that no input makes a process too large."""

from __future__ import annotations

from dataclasses import dataclass

# The longest line, however much memory there is.
LINE_LIMIT_BYTES = 256 << 20
# A line of single digits: itself, what is read after it, and 8 bytes for each end of its edges.
LINE_COPIES = 16
# Parts that a graph may be cut into.
MAX_SHARDS = 4096


@dataclass(frozen=True)
class InputLimits:
    """Limits for windows of decompressors and lists of archives, for a line, and for listed ids.

    ``folder`` is where a pipe is copied to if it must be read twice; None is the system's.
    """

    window_bytes: int = 1 << 31
    line_bytes: int = LINE_LIMIT_BYTES
    num_ids: int = 1 << 32
    folder: str | None = None
