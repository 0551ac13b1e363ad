"""What the host reads from the control words of a search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.cuda.source import NUM_RANGES, SECTOR_WORDS, Control


def sectors_from(words: NDArray[np.uint64], first: Control) -> NDArray[np.int64]:
    """Return one of the sums of sectors: slow, fast, and what of each a cut can save."""
    return words[first : first + SECTOR_WORDS].astype(np.int64)


def pending_bytes_from(growth: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return what searching is expected to read: slow and fast bytes, each by range."""
    first = Control.PENDING_SLOW_BYTES
    return growth[first : first + 2 * NUM_RANGES].astype(np.int64).reshape(2, NUM_RANGES)
