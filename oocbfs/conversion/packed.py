"""Sorted keys that wait on disk, packed into about as many bits as their gaps need."""

from __future__ import annotations

import os
from array import array

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.spill import SpillFile
from oocbfs.kernels.convert import gaps, radix

Keys = NDArray[np.uint64]


def sort_in_place(keys: Keys) -> Keys:
    """Sort keys where they are; returns a view of those that are distinct."""
    return keys[: radix.sort_unique(keys, np.empty_like(keys))]


class PackedBlocks:
    """Blocks of packed keys in a temporary file, in the order in which they came."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._spill = SpillFile(folder)
        # Where each begins, and how many keys it has.
        self._starts, self._sizes = array("q", [0]), array("q")

    def __len__(self) -> int:
        return len(self._sizes)

    @property
    def num_bytes(self) -> int:
        """Bytes of all blocks."""
        return self._spill.size

    def append(self, packed: Keys, num_keys: int) -> None:
        """Write a block."""
        self._spill.append(packed)
        self._starts.append(self._spill.size)
        self._sizes.append(num_keys)

    def size(self, number: int) -> int:
        """Return how many keys a block has."""
        return self._sizes[number]

    def block(self, number: int) -> Keys:
        """Read the keys of a block."""
        start, end = self._starts[number], self._starts[number + 1]
        data = np.empty((end - start) // 8, np.uint64)
        self._spill.read_into(data, start)
        return gaps.unpacked(data, self._sizes[number])

    def close(self) -> None:
        """Release the space."""
        self._spill.close()
