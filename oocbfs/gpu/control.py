"""What the host reads from the control words of a search."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.gpu.device import Device, Memory
from oocbfs.kernels.cuda.source import CONTROL_WORDS, NUM_RANGES, SECTOR_WORDS, Control
from oocbfs.plan.rates import SECTOR_BYTES


def read_control(device: Device, control: Memory, words: int = CONTROL_WORDS) -> NDArray[np.uint64]:
    """Read the control words back, and what lies behind them; refuse damaged rows."""
    read = device.download(control, words)
    if read[Control.DAMAGED]:
        raise FormatError("a row is damaged: run 'oocbfs verify'")
    return read


def sectors_from(words: NDArray[np.uint64], first: Control) -> NDArray[np.int64]:
    """Return one of the sums of sectors: slow, fast, and what of each a cut can save."""
    return words[first : first + SECTOR_WORDS].astype(np.int64)


def bytes_of(sectors: NDArray[np.int64]) -> int:
    """Return the bytes of such sectors, in any memory."""
    return SECTOR_BYTES * int(sectors[:2].sum())


def pending_bytes_from(growth: NDArray[np.uint64]) -> NDArray[np.int64]:
    """Return what searching is expected to read: slow and fast bytes, each by range."""
    first = Control.PENDING_SLOW_BYTES
    return growth[first : first + 2 * NUM_RANGES].astype(np.int64).reshape(2, NUM_RANGES)
