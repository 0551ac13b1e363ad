"""Names as fields of text, in quotes where they would be taken for something else."""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from oocbfs.kernels.array_types import READ_I64, READ_U8, U8
from oocbfs.kernels.atomics import kernel
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.results.format_text import put_line_end

Text = NDArray[np.uint8]
Bounds = NDArray[np.int64]

_TAB, _NEWLINE, _RETURN, _SPACE, _QUOTE, _HASH, _PERCENT, _SLASH = (
    np.uint8(code) for code in b'\t\n\r "#%/'
)
# What may be taken for what delimits fields.
_COMMA, _SEMICOLON, _BAR = (np.uint8(code) for code in b",;|")
# Most that is written beside a name whose every byte is doubled: quotes, a separator, a line end.
BESIDE_BYTES = 4
_NUMBER_BYTES = 20


@kernel
def _needs_quotes(text, begin, end, separator):
    """Return whether a name could be read as a comment, as several fields, or as another name."""
    if begin == end:
        return False
    first, last = text[begin], text[end - 1]
    if first in (_SPACE, _HASH, _PERCENT) or last == _SPACE:
        return True
    if first == _SLASH and end - begin > 1 and text[begin + 1] == _SLASH:
        return True
    for i in range(begin, end):
        byte = text[i]
        if byte in (_QUOTE, _NEWLINE, _RETURN, _TAB, _COMMA, _SEMICOLON, _BAR, separator):
            return True
    return False


@kernel
def put_name(out, place, text, begin, end, separator):
    """Write one name and return where it ends."""
    quoted = _needs_quotes(text, begin, end, separator)
    if quoted:
        out[place] = _QUOTE
        place += 1
    for i in range(begin, end):
        if text[i] == _QUOTE:
            out[place] = _QUOTE
            place += 1
        out[place] = text[i]
        place += 1
    if quoted:
        out[place] = _QUOTE
        place += 1
    return place


@compiled(types.int64(U8, READ_U8, READ_I64, READ_I64, types.uint8))
def _put_values(out, text, bounds, values, separator):
    """Write a line for each name and its value, and return the number of bytes."""
    place = 0
    for i in range(values.size):
        place = put_name(out, place, text, bounds[i], bounds[i + 1], separator)
        out[place] = separator
        place = put_line_end(out, place + 1, values[i])
    return place


@compiled(types.int64(U8, READ_U8, READ_I64, READ_U8, READ_I64, types.uint8))
def _put_pairs(out, text, bounds, other_text, other_bounds, separator):
    """Write a line for each pair of names, and return the number of bytes."""
    place = 0
    for i in range(bounds.size - 1):
        place = put_name(out, place, text, bounds[i], bounds[i + 1], separator)
        out[place] = separator
        place = put_name(
            out, place + 1, other_text, other_bounds[i], other_bounds[i + 1], separator
        )
        out[place] = _NEWLINE
        place += 1
    return place


def format_named_values(
    text: Text, bounds: Bounds, values: NDArray[np.int64], separator: str
) -> Text:
    """Text of all names and their values, one line each, as bytes."""
    out = np.empty(2 * text.size + (BESIDE_BYTES + _NUMBER_BYTES) * values.size, np.uint8)
    return out[: _put_values(out, text, bounds, values, np.uint8(ord(separator)))]


def format_named_pairs(
    text: Text, bounds: Bounds, other_text: Text, other_bounds: Bounds, separator: str
) -> Text:
    """Text of all pairs of names, one line each, as bytes; a name that is missing is empty."""
    size = 2 * (text.size + other_text.size) + 2 * BESIDE_BYTES * bounds.size
    out = np.empty(size, np.uint8)
    length = _put_pairs(out, text, bounds, other_text, other_bounds, np.uint8(ord(separator)))
    return out[:length]
