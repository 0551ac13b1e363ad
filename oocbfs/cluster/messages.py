"""Bitmaps on their way between processes: as they are, or coded where that is smaller."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.kernels.shards import messages as kernels

# What a message begins with: its form, the low bits of each distance, how many there are, how many
# words are coded, and whether the bits of all others are set.
_START = np.dtype(
    [("form", "u1"), ("low_bits", "u1"), ("rest", "u1"), ("count", "<u4"), ("words", "<u4")]
)
# A bitmap as it is, or the distances between its ones or its zeros.
_PLAIN, _ONES, _ZEROS = range(3)
_NONE, _ALL = np.uint64(0), np.uint64(2**64 - 1)
_FLIPS = {_ONES: _NONE, _ZEROS: _ALL}


def pack(words: NDArray[np.uint64]) -> bytes:
    """Write a bitmap as a message."""
    words = np.ascontiguousarray(words)
    start = np.zeros((), _START)
    # Vertices without edges come last in many orders, and then the last words are all the same.
    start["rest"] = bool(words.size and words[-1] == _ALL)
    words = words[: kernels.count_words(words, _ALL if start["rest"] else _NONE)]
    start["words"] = words.size
    ones, num_bits = int(kernels.count_bits(words)), 64 * words.size
    count = min(ones, num_bits - ones)
    # Most distances have room in the low bits where these hold two thirds of the mean.
    low_bits = max(0, int(num_bits * 0.69 / (count + 1)).bit_length() - 1)
    most_bits = count * (low_bits + 1) + (num_bits >> low_bits)
    out = np.zeros(min(words.size, most_bits // 64 + 1), np.uint64)
    form = _ONES if 2 * ones <= num_bits else _ZEROS
    size = kernels.put_bits(out, words, _FLIPS[form], low_bits)
    if size < 0:
        return start.tobytes() + words.tobytes()
    start["form"], start["low_bits"], start["count"] = form, low_bits, count
    return start.tobytes() + out.view(np.uint8)[: -(-size // 8)].tobytes()


def unpack(message: bytes, num_words: int) -> NDArray[np.uint64]:
    """Read a message as a bitmap of so many words.

    Raises
    ------
    FormatError
        If it is no such message.
    """
    problem = FormatError("a message between processes is damaged")
    if len(message) < _START.itemsize:
        raise problem
    start = np.frombuffer(message, _START, 1)[0]
    body = np.frombuffer(message, np.uint8, offset=_START.itemsize)
    form, low_bits, coded = (int(start[name]) for name in ("form", "low_bits", "words"))
    if coded > num_words or low_bits > 32 or form not in (_PLAIN, *_FLIPS):
        raise problem
    words = np.full(num_words, _ALL if start["rest"] else _NONE)
    if form == _PLAIN:
        if body.size != 8 * coded:
            raise problem
        words[:coded].view(np.uint8)[:] = body
        return words
    data = np.zeros(-(-body.size // 8) + kernels.SPARE_WORDS, np.uint64)
    data.view(np.uint8)[: body.size] = body
    outcome = kernels.take_bits(words[:coded], data, _FLIPS[form], low_bits, int(start["count"]))
    if outcome != kernels.FINE:
        raise problem
    return words
