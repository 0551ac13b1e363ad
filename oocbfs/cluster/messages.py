"""Sets of vertices on their way between processes: bitmaps as they are, or coded where smaller.

How long a message is, depends on nothing but how many vertices there are and how many of them it
names: ``plan.messages.set_bytes``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.kernels.shards import messages as kernels
from oocbfs.plan.messages import CODED_BITS, is_coded, low_bits, set_bytes

# What a message begins with where its reader knows nothing: how many ones there are, how many
# words are coded, and whether the bits of all others are set.
_START = np.dtype([("rest", "u1"), ("count", "<u8"), ("words", "<u4")])
_NONE, _ALL = np.uint64(0), np.uint64(2**64 - 1)


def put_set(words: NDArray[np.uint64], count: int, coded_bits: int) -> NDArray[np.uint8]:
    """Write a bitmap with so many ones; it is coded where there are ``coded_bits`` for each one."""
    num_bits = 64 * words.size
    if not is_coded(num_bits, count, coded_bits):
        return words.view(np.uint8)
    few, flip = _fewer(num_bits, count)
    out = np.zeros(-(-set_bytes(num_bits, count, coded_bits) // 8), np.uint64)
    if few:
        kernels.put_bits(out, words, flip, low_bits(num_bits, few))
    return out.view(np.uint8)[: set_bytes(num_bits, count, coded_bits)]


def take_set(
    message: NDArray[np.uint8], num_words: int, count: int, coded_bits: int
) -> NDArray[np.uint64]:
    """Read what ``put_set`` wrote as a bitmap of so many words.

    Raises
    ------
    FormatError
        If it is no such message.
    """
    num_bits = 64 * num_words
    problem = FormatError("a message between processes is damaged")
    if count > num_bits or message.size != set_bytes(num_bits, count, coded_bits):
        raise problem
    words = np.empty(num_words, np.uint64)
    if not is_coded(num_bits, count, coded_bits):
        words.view(np.uint8)[:] = message
        return words
    few, flip = _fewer(num_bits, count)
    data = np.zeros(-(-message.size // 8) + kernels.SPARE_WORDS, np.uint64)
    data.view(np.uint8)[: message.size] = message
    low = low_bits(num_bits, few) if few else 0
    if kernels.take_bits(words, data, flip, low, few) != kernels.FINE:
        raise problem
    return words


def _fewer(num_bits: int, count: int) -> tuple[int, np.uint64]:
    """Return how many ones are named, or zeros if these are fewer, and the bits of all others."""
    return (count, _NONE) if 2 * count <= num_bits else (num_bits - count, _ALL)


def pack(words: NDArray[np.uint64]) -> bytes:
    """Write a bitmap as a message that says itself how long it is."""
    words = np.ascontiguousarray(words)
    start = np.zeros((), _START)
    # Vertices without edges come last in many orders, and then the last words are all the same.
    start["rest"] = bool(words.size and words[-1] == _ALL)
    words = words[: kernels.count_words(words, _ALL if start["rest"] else _NONE)]
    start["words"], start["count"] = words.size, kernels.count_bits(words)
    return start.tobytes() + put_set(words, int(start["count"]), CODED_BITS).tobytes()


def unpack(message: bytes, num_words: int) -> NDArray[np.uint64]:
    """Read a message as a bitmap of so many words.

    Raises
    ------
    FormatError
        If it is no such message.
    """
    if len(message) < _START.itemsize:
        raise FormatError("a message between processes is damaged")
    start = np.frombuffer(message, _START, 1)[0]
    body = np.frombuffer(message, np.uint8, offset=_START.itemsize)
    coded = int(start["words"])
    if coded > num_words:
        raise FormatError("a message between processes is damaged")
    words = np.full(num_words, _ALL if start["rest"] else _NONE)
    words[:coded] = take_set(body, coded, int(start["count"]), CODED_BITS)
    return words
