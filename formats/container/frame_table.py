"""Where the frames of a file are: how long each is, in the order of the section table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import FRAMES_PER_CHUNK, Encoding, Kind
from oocbfs.kernels.constants import BYTES, DIFFERENCES

_NO_LENGTHS = np.empty(0, np.uint16)


class FrameTable:
    """The section ``frames`` of a file: its lengths tell where frames begin.

    A frame that is stored as it is has length 0 there.
    """

    def __init__(self, lengths: NDArray[np.uint16] = _NO_LENGTHS) -> None:
        self._lengths = lengths
        # Frames of the sections that were checked.
        self.num_checked = 0

    def check(self, kind: Kind, record: np.void, chunks: NDArray[np.void]) -> str:
        """Check the frames of the section that comes next; return what is wrong, or nothing."""
        coding, first = int(record["coding"]), int(record["first_frame"])
        if int(record["encoding"]) != Encoding.FRAMES:
            return "" if coding == first == 0 else "reserved bytes are not zero"
        if kind is Kind.FRAMES or coding > (DIFFERENCES if _holds_numbers(kind) else BYTES):
            return "unknown coding"
        count = layout.num_frames(int(record["raw_bytes"]))
        if first != self.num_checked or first + count > self._lengths.size or not count:
            return "its frames are not where they belong"
        self.num_checked += count
        sizes = layout.frame_sizes(int(record["raw_bytes"]))
        stored = self._stored(record)
        if (self._lengths[first : first + count] >= sizes).any():
            return "a frame is longer than its contents"
        sums = np.add.reduceat(stored, np.arange(0, count, FRAMES_PER_CHUNK))
        return "" if np.array_equal(sums, chunks["stored_bytes"]) else "frames and chunks differ"

    def check_end(self) -> str:
        """Check that no frame is left; return what is wrong, or nothing."""
        return "" if self.num_checked == self._lengths.size else "has frames of no section"

    def offsets(self, record: np.void) -> NDArray[np.int64]:
        """Return where the frames of a section begin in it, and where the last one ends."""
        stored = self._stored(record)
        offsets = np.zeros(stored.size + 1, np.int64)
        np.cumsum(stored, out=offsets[1:])
        offsets.flags.writeable = False
        return offsets

    def _stored(self, record: np.void) -> NDArray[np.int64]:
        """Return how many bytes of the file each frame of a section takes."""
        sizes, first = layout.frame_sizes(int(record["raw_bytes"])), int(record["first_frame"])
        lengths = self._lengths[first : first + sizes.size]
        return np.where(lengths == 0, sizes, lengths)


def _holds_numbers(kind: Kind) -> bool:
    return layout.DTYPES[kind] == "<u4"
