"""Where one kind of step on a device stops being the best."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class StepLimits:
    """What the level loop compares a frontier with."""

    # A frontier that one block expands in less time than the launches of a large level take. The
    # bytes are what its rows may hold beyond two sectors each, because few warps share a hub.
    small_vertices: int = 8192
    small_bytes: int = 16 << 10
    # The heads pass reads about 4 bytes a vertex of device memory, which is some 20 times as fast
    # as the bus. So it pays from this many slow bytes a vertex on.
    heads_bytes: float = 1 / 8
