"""Bitmaps on their way between processes: whatever form is the smallest."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.kernels.shards import messages as kernels

# The first byte of a message: a bitmap as it is, or the distances between its ones or its zeros.
_PLAIN, _ONES, _ZEROS = range(3)
_FLIPS = {_ONES: np.uint64(0), _ZEROS: np.uint64(2**64 - 1)}


def pack(words: NDArray[np.uint64]) -> bytes:
    """Write a bitmap as a message."""
    words = np.ascontiguousarray(words)
    ones = kernels.count_bits(words)
    form = _ONES if 2 * ones <= 64 * words.size else _ZEROS
    few = min(ones, 64 * words.size - ones)
    # A distance takes a byte at least.
    if few < words.nbytes:
        out = np.empty(1 + min(words.nbytes, 5 * few + 5), np.uint8)
        size = kernels.put_bits(out[1:], words, _FLIPS[form])
        if size >= 0:
            out[0] = form
            return out[: 1 + size].tobytes()
    return bytes([_PLAIN]) + words.tobytes()


def unpack(message: bytes, num_words: int) -> NDArray[np.uint64]:
    """Read a message as a bitmap of so many words.

    Raises
    ------
    FormatError
        If it is no such message.
    """
    data = np.frombuffer(message, np.uint8)
    if data.size and data[0] == _PLAIN and data.size == 1 + 8 * num_words:
        return data[1:].copy().view(np.uint64)
    if data.size and int(data[0]) in _FLIPS:
        words = np.empty(num_words, np.uint64)
        if kernels.take_bits(words, data[1:], _FLIPS[int(data[0])]) == kernels.FINE:
            return words
    raise FormatError("a message between processes is damaged")
