"""What reading an input may take, so that no input can make a process larger than it may be."""

from __future__ import annotations

from dataclasses import dataclass

# The longest line, however much memory there is.
LINE_LIMIT_BYTES = 256 << 20
# A line of single digits: itself, what is read behind it, and 8 bytes each for both ends of its edges.
LINE_COPIES = 16


@dataclass(frozen=True)
class Limits:
    """Bounds for windows of decompressors and directories of archives, for a line, and for listed ids.

    ``folder`` is where a pipe is copied to if it has to be read twice; None is the system's.
    """

    window_bytes: int = 1 << 31
    line_bytes: int = LINE_LIMIT_BYTES
    num_ids: int = 1 << 32
    folder: str | None = None
