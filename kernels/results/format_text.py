"""Pairs of ids, and rows of neighbours, as lines of decimal text."""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

from oocbfs.kernels.array_types import READ_I64, READ_U32, READ_U64, U8
from oocbfs.kernels.cache import compiled

_I64 = types.int64
Ids = NDArray[np.uint64]
Text = NDArray[np.uint8]

_TEN = np.uint64(10)
_HUNDRED = np.uint64(100)
_NEWLINE = np.uint8(10)
_MINUS = np.uint8(45)
_BLANK = np.uint8(32)

# "00", "01" … "99": two digits for one division.
_DIGIT_PAIRS = np.frombuffer("".join(f"{i:02}" for i in range(100)).encode(), np.uint8).copy()


@njit(inline="always")
def put_decimal(out: Text, offset: int, value: np.uint64) -> int:
    """Write one number and return the offset of its end."""
    end = offset + 1
    bound = _TEN
    # 10^19 is the largest power of ten that fits, and no id has more than 20 digits.
    while value >= bound and end - offset < 20:
        end += 1
        bound = bound * _TEN if end - offset < 20 else bound
    position = end
    while value >= _HUNDRED:
        rest = value // _HUNDRED
        pair = np.int64(value - rest * _HUNDRED) * 2
        value = rest
        position -= 2
        out[position] = _DIGIT_PAIRS[pair]
        out[position + 1] = _DIGIT_PAIRS[pair + 1]
    if value >= _TEN:
        pair = np.int64(value) * 2
        out[offset] = _DIGIT_PAIRS[pair]
        out[offset + 1] = _DIGIT_PAIRS[pair + 1]
    else:
        out[offset] = np.uint8(value) + np.uint8(48)
    return end


@njit(inline="always")
def put_line_end(out: Text, offset: int, value: int) -> int:
    """Write the last number of a line, which may be negative, and return where the next begins."""
    if value < 0:
        out[offset] = _MINUS
        offset += 1
    offset = put_decimal(out, offset, np.uint64(abs(value)))
    out[offset] = _NEWLINE
    return offset + 1


@compiled(types.int64(U8, READ_U64, READ_U64, types.uint8))
def _put_pairs(out: Text, sources: Ids, targets: Ids, separator: np.uint8) -> int:
    """Write a line per pair and return the number of bytes."""
    offset = 0
    for i in range(sources.size):
        offset = put_decimal(out, offset, sources[i])
        out[offset] = separator
        offset = put_decimal(out, offset + 1, targets[i])
        out[offset] = _NEWLINE
        offset += 1
    return offset


@compiled(types.int64(U8, READ_U64, READ_I64, types.uint8))
def _put_values(out: Text, ids: Ids, values: NDArray[np.int64], separator: np.uint8) -> int:
    """Write a line per id and its value, which may be negative, and return the number of bytes."""
    offset = 0
    for i in range(ids.size):
        offset = put_decimal(out, offset, ids[i])
        out[offset] = separator
        offset = put_line_end(out, offset + 1, values[i])
    return offset


def format_values(ids: Ids, values: NDArray[np.int64], separator: str) -> Text:
    """Text of all ids and their values, one line each, as bytes."""
    out = np.empty(43 * ids.size, np.uint8)
    return out[: _put_values(out, ids, values, np.uint8(ord(separator)))]


def format_pairs(sources: Ids, targets: Ids, separator: str) -> Text:
    """Text of all pairs, one line each, as bytes."""
    if not sources.size:
        return np.empty(0, np.uint8)
    widest = len(str(int(sources.max()))) + len(str(int(targets.max()))) + 2
    out = np.empty(sources.size * widest, np.uint8)
    length = _put_pairs(
        out, np.ascontiguousarray(sources), np.ascontiguousarray(targets), np.uint8(ord(separator))
    )
    return out[:length]


@compiled(types.int64(U8, READ_U32, READ_U32, types.int64))
def _put_rows(
    out: Text, degrees: NDArray[np.uint32], neighbours: NDArray[np.uint32], first: int
) -> int:
    """Write a line per row and return the number of bytes."""
    offset = 0
    i = 0
    for degree in degrees:
        for k in range(degree):
            if k > 0:
                out[offset] = _BLANK
                offset += 1
            offset = put_decimal(out, offset, np.uint64(neighbours[i]) + np.uint64(first))
            i += 1
        out[offset] = _NEWLINE
        offset += 1
    return offset


def format_rows(degrees: NDArray[np.uint32], neighbours: NDArray[np.uint32], first: int) -> Text:
    """Text of rows, their neighbours counted from ``first``, one line each, as bytes."""
    widest = len(str(int(neighbours.max(initial=0)) + first)) + 1
    out = np.empty(neighbours.size * widest + degrees.size, np.uint8)
    rows = np.ascontiguousarray(degrees), np.ascontiguousarray(neighbours)
    return out[: _put_rows(out, *rows, first)]
