"""Decimal text to ids where any two columns hold them: the CSV that spreadsheets and pandas write.

Fields end at one delimiter, each of which begins a field, which may be empty; or, if the delimiter
is a blank, at any run of blanks and tabs. A field may be quoted, a quote in it is doubled. A quoted
field that goes on in the next line is refused, since lines are parsed by themselves.
"""

# numba calls the code generators by position and reads their annotations nowhere.
from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.cache import compiled
from oocbfs.kernels.convert.parse import (
    ADDRESS,
    BAD_LINE,
    DONE,
    FULL,
    PAIRS,
    byte_at,
    is_comment,
    next_line,
    put_result,
    read_number,
)

# How ``columns`` is packed: the delimiter, whether the target comes first, how many fields precede
# the first id, and how many delimiters stand between the two.
_DELIMITER_BITS, _FIELD_BITS = 8, 24
_SWAPPED = 1 << _DELIMITER_BITS
_BEFORE_SHIFT = _DELIMITER_BITS + 1
_BETWEEN_SHIFT = _BEFORE_SHIFT + _FIELD_BITS
MAX_COLUMNS = 1 << _FIELD_BITS

_NUL, _TAB, _NEWLINE, _RETURN, _SPACE, _QUOTE = (np.uint8(code) for code in b'\0\t\n\r "')


def pack_columns(source: int, target: int, delimiter: str) -> int:
    """Pack the columns of the two ids, counted from 0, for ``parse_columns``."""
    before, between = min(source, target), abs(source - target)
    swapped = _SWAPPED if target < source else 0
    return ord(delimiter) | swapped | before << _BEFORE_SHIFT | between << _BETWEEN_SHIFT


@compiled(types.boolean(types.uint8, types.uint8))
def _ends_column(byte: int, delimiter: int) -> bool:
    return (
        byte == delimiter
        or byte in (_NEWLINE, _RETURN, _NUL)
        or (byte == _TAB and delimiter == _SPACE)
    )


@compiled(ADDRESS(ADDRESS, types.uint8))
def _skip_padding(position: int, delimiter: int) -> int:
    """Pass blanks, and tabs where they are not what delimits."""
    while byte_at(position) == _SPACE or (byte_at(position) == _TAB and delimiter != _TAB):
        position += 1
    return position


@compiled(ADDRESS(ADDRESS, types.uint8))
def _end_of_column(position: int, delimiter: int) -> int:
    """Return the end of the field that begins here, -1 if it is quoted and its line ends first."""
    if byte_at(position) == _QUOTE:
        position += 1
        while byte_at(position) != _QUOTE or byte_at(position + 1) == _QUOTE:
            if byte_at(position) == _NEWLINE:
                return -1
            position += 2 if byte_at(position) == _QUOTE else 1
        position += 1
    while not _ends_column(byte_at(position), delimiter):
        position += 1
    return position


@compiled(ADDRESS(ADDRESS, types.uint8, types.int64))
def _skip_columns(position: int, delimiter: int, columns: int) -> int:
    """Pass so many fields and what delimits them, or give -1 if the line has no field after."""
    for _ in range(columns):
        position = _end_of_column(position, delimiter)
        if position < 0 or byte_at(position) in (_NEWLINE, _RETURN, _NUL):
            return -1
        position = _skip_padding(position + 1, delimiter)
    return position


@compiled(types.UniTuple(types.int64, 2)(ADDRESS, types.uint8))
def _read_column(position: int, delimiter: int) -> tuple[int, int]:
    """Read an id that is a whole field; the end, where its delimiter is, is -1 if there is none."""
    number, position = read_number(position)
    if position >= 0 and not _ends_column(byte_at(position), delimiter):
        position = _skip_padding(position, delimiter)
        if not _ends_column(byte_at(position), delimiter):
            position = -1
    return number, position


@compiled(ADDRESS(ADDRESS, types.uint8))
def _pass_rest(position: int, delimiter: int) -> int:
    """Return the next line, or -1 if this one ends inside of quotes or in what is no text."""
    while delimiter != _SPACE and byte_at(position) == delimiter:
        position = _end_of_column(_skip_padding(position + 1, delimiter), delimiter)
        if position < 0:
            return -1
    following: int = next_line(position)
    return following


@compiled(PAIRS)
def parse_columns(sources, targets, result, text, flags, columns, low, high):
    """Parse lines that hold two ids from low to high in the columns that ``columns`` packs."""
    delimiter = np.uint8(columns & 0xFF)
    swapped = bool(columns & _SWAPPED)
    before = (columns >> _BEFORE_SHIFT) & (MAX_COLUMNS - 1)
    between = columns >> _BETWEEN_SHIFT
    position = start = np.int64(text.ctypes.data)
    end = position + text.size
    lines = count = 0
    code = DONE
    while position < end:
        start = position
        position = _skip_padding(position, delimiter)
        if byte_at(position) in (_NEWLINE, _RETURN) or is_comment(position, flags):
            position = next_line(position)
            if position < 0:
                code = BAD_LINE
                break
            lines += 1
            continue
        if count == sources.size:
            code = FULL
            break
        position = _skip_columns(position, delimiter, before)
        one = other = 0
        if position >= 0:
            one, position = _read_column(position, delimiter)
        if position >= 0:
            position = _skip_columns(position, delimiter, between)
        if position >= 0:
            other, position = _read_column(position, delimiter)
        if position >= 0:
            if byte_at(position) == _NEWLINE:
                position += 1
            else:
                position = _pass_rest(position, delimiter)
        first, second = np.uint64(one), np.uint64(other)
        if position < 0 or first < low or first > high or second < low or second > high:
            code = BAD_LINE
            break
        sources[count] = second if swapped else first
        targets[count] = first if swapped else second
        count += 1
        lines += 1
    put_result(result, count, lines, start - np.int64(text.ctypes.data), lines, lines)
    return code
