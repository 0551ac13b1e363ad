"""Decimal text to ids: lines of pairs (edge lists) and lines of rows (adjacency lists, METIS).

Both parsers take a chunk of whole lines. The last line ends in a newline too, so that no loop needs
a limit: each stops at a newline at the latest. They fill ``result`` and return a code; after BAD_*
the text of the line, which begins at result[WHERE], is what to show.
"""

# numba calls the code generators by position and reads their annotations nowhere.
from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.constants import ALL_ONES
from oocbfs.kernels.internals import ir

Ids = NDArray[np.uint64]
Text = NDArray[np.uint8]
Result = NDArray[np.int64]

_IDS = types.Array(types.uint64, 1, "C")
_TEXT = types.Array(types.uint8, 1, "C", readonly=True)
_RESULT = types.Array(types.int64, 1, "C")
ADDRESS = types.int64

# Which lines are comments (DIMACS: those that begin with the letters c or n; the letters a or e may
# precede a pair). SINGLE: a line holds one id, taken twice. NAMED: a row begins with its own id.
HASH, PERCENT, SLASHES, DIMACS, SINGLE, NAMED = 1, 2, 4, 8, 16, 32

# Codes, and what result holds: edges written, whole lines read, the offset of the line that stopped
# the parse, rows read, and the number, from 1, of the last row that was not blank.
DONE, FULL, BAD_LINE, BAD_RANGE = 0, 1, 2, 3
COUNT, LINES, WHERE, ROWS, LAST_ROW, RESULT_SIZE = 0, 1, 2, 3, 4, 5

_TAB, _NEWLINE, _RETURN, _SPACE, _QUOTE, _HASH, _PERCENT, _COMMA, _SLASH, _ZERO, _COLON = (
    np.uint8(code) for code in b'\t\n\r "#%,/0:'
)
_A, _C, _E, _N = (np.uint8(code) for code in b"acen")
_NUL = np.uint8(0)
_NINE = np.uint8(9)
_TEN = np.uint64(10)


def _load_byte(typing_context, position):
    """Read the byte at an address.

    Helpers take addresses, since numba counts references to an array whenever it passes one on.
    """

    def generate(context, builder, signature, arguments):
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()))

    return types.uint8(types.int64), generate


byte_at: Any = intrinsic(_load_byte)


@compiled(types.boolean(types.uint8))
def _ends_field(byte: int) -> bool:
    return byte in (_NEWLINE, _SPACE, _TAB, _COMMA, _RETURN)


@compiled(ADDRESS(ADDRESS))
def _skip_blanks(position: int) -> int:
    while byte_at(position) == _SPACE or byte_at(position) == _TAB:
        position += 1
    return position


@compiled(ADDRESS(ADDRESS))
def _skip_separator(position: int) -> int:
    """Pass blanks with at most one comma among them."""
    position = _skip_blanks(position)
    if byte_at(position) == _COMMA:
        position = _skip_blanks(position + 1)
    return position


@compiled(ADDRESS(ADDRESS))
def next_line(position: int) -> int:
    """Return the position of the next line, or -1 after a NUL or a lone carriage return."""
    while True:
        byte = byte_at(position)
        position += 1
        if byte == _NEWLINE:
            return position
        if byte == _NUL or (
            byte == _RETURN and byte_at(position) != _NEWLINE and byte_at(position) != _RETURN
        ):
            return -1


@compiled(types.boolean(ADDRESS, ADDRESS))
def _overflows(first: int, end: int) -> bool:
    """Return whether the digits from first to end are a number above 2^64 - 1."""
    value = np.uint64(0)
    for position in range(first, end):
        digit = np.uint64(byte_at(position) - _ZERO)
        if value > (ALL_ONES - digit) // _TEN:
            return True
        value = value * _TEN + digit
    return False


@compiled(types.UniTuple(types.int64, 2)(ADDRESS))
def read_number(position: int) -> tuple[Any, int]:
    """Read a number, quoted or not, as the bits of a signed one; the end is -1 if there is none."""
    quoted = byte_at(position) == _QUOTE
    if quoted:
        position += 1
    first = position
    value = np.uint64(0)
    digit = byte_at(position) - _ZERO
    while digit <= _NINE:
        value = value * _TEN + np.uint64(digit)
        position += 1
        digit = byte_at(position) - _ZERO
    if position == first or (position - first > 19 and _overflows(first, position)):
        return 0, -1
    if quoted:
        if byte_at(position) != _QUOTE:
            return 0, -1
        position += 1
    return np.int64(value), position


@compiled(types.boolean(ADDRESS, types.int64))
def is_comment(position: int, flags: int) -> bool:
    """Return whether a line that begins here is a comment."""
    byte = byte_at(position)
    return bool(
        (byte == _HASH and flags & HASH)
        or (byte == _PERCENT and flags & PERCENT)
        or (byte == _SLASH and flags & SLASHES and byte_at(position + 1) == _SLASH)
        or (byte in (_C, _N) and flags & DIMACS and _ends_field(byte_at(position + 1)))
    )


@compiled(ADDRESS(ADDRESS, types.int64))
def _skip_fields(position: int, fields: int) -> int:
    """Pass ``fields`` fields, or give -1 if the line has fewer."""
    for _ in range(fields):
        position = _skip_separator(position)
        if byte_at(position) == _NEWLINE or byte_at(position) == _RETURN:
            return -1
        while not _ends_field(byte_at(position)):
            position += 1
    return position


PAIRS = types.int64(
    _IDS, _IDS, _RESULT, _TEXT, types.int64, types.int64, types.uint64, types.uint64
)


@inlined
def put_result(result, count, lines, where, rows, last_row):
    """Return how many edges and lines were parsed, where the next line begins, and which rows."""
    result[COUNT] = count
    result[LINES] = lines
    result[WHERE] = where
    result[ROWS] = rows
    result[LAST_ROW] = last_row


@compiled(PAIRS)
def parse_pairs(sources, targets, result, text, flags, columns, low, high):
    """Parse lines that begin with two ids from low to high and have ``columns`` columns or more."""
    position = start = np.int64(text.ctypes.data)
    end = position + text.size
    lines = count = 0
    code = DONE
    while position < end:
        start = position
        position = _skip_blanks(position)
        byte = byte_at(position)
        if byte - _ZERO > _NINE:
            if byte in (_NEWLINE, _RETURN) or is_comment(position, flags):
                position = next_line(position)
                if position < 0:
                    code = BAD_LINE
                    break
                lines += 1
                continue
            if byte in (_A, _E) and flags & DIMACS and _ends_field(byte_at(position + 1)):
                position = _skip_blanks(position + 1)
        if count == sources.size:
            code = FULL
            break
        number, position = read_number(position)
        if position < 0 or not _ends_field(byte_at(position)):
            code = BAD_LINE
            break
        source = target = np.uint64(number)
        if not flags & SINGLE:
            number, position = read_number(_skip_separator(position))
            if position < 0 or not _ends_field(byte_at(position)):
                code = BAD_LINE
                break
            target = np.uint64(number)
        if source < low or source > high or target < low or target > high:
            code = BAD_RANGE
            break
        if byte_at(position) == _NEWLINE and columns <= 2:
            position += 1
        else:
            if columns > 2:
                position = _skip_fields(position, columns - 2)
            if position >= 0:
                position = next_line(position)
            if position < 0:
                code = BAD_LINE
                break
        sources[count] = source
        targets[count] = target
        count += 1
        lines += 1
    put_result(result, count, lines, start - np.int64(text.ctypes.data), lines, lines)
    return code


@compiled(PAIRS)
def parse_rows(sources, targets, result, text, flags, columns, low, high):
    """Parse lines of neighbours from low to high; rows have their own ids, or are numbered from 1.

    ``columns`` is twice the number of fields before the neighbours, plus 1 if a weight follows each
    of them. Rows of neighbours need sources and targets of at least half the size of the text. A
    row that is named and has no neighbours becomes a loop, since its vertex exists.
    """
    position = start = np.int64(text.ctypes.data)
    end = position + text.size
    lines = count = rows = last = 0
    code = DONE
    while position < end and code == DONE:
        start = position
        position = _skip_blanks(position)
        row = np.uint64(rows + 1)
        blank = byte_at(position) == _NEWLINE or byte_at(position) == _RETURN
        if is_comment(position, flags) or (blank and flags & NAMED):
            position = next_line(position)
            if position < 0:
                code = BAD_LINE
            else:
                lines += 1
            continue
        if flags & NAMED:
            number, position = read_number(position)
            if position < 0 or not (_ends_field(byte_at(position)) or byte_at(position) == _COLON):
                code = BAD_LINE
                break
            row = np.uint64(number)
            position = _skip_blanks(position)
            if byte_at(position) == _COLON:
                position += 1
        elif columns > 1:
            position = _skip_fields(position, columns >> 1)
            if position < 0:
                code = BAD_LINE
                break
        before = count
        while True:
            position = _skip_separator(position)
            if byte_at(position) == _NEWLINE or byte_at(position) == _RETURN:
                break
            number, position = read_number(position)
            if position >= 0 and not _ends_field(byte_at(position)):
                position = -1
            if position >= 0 and columns & 1:
                position = _skip_fields(position, 1)
            if position < 0:
                code = BAD_LINE
                break
            target = np.uint64(number)
            if target < low or target > high:
                code = BAD_RANGE
                break
            sources[count] = row
            targets[count] = target
            count += 1
        if code != DONE:
            break
        if count == before and flags & NAMED:
            sources[count] = targets[count] = row
            count += 1
        position = next_line(position)
        if position < 0:
            code = BAD_LINE
            break
        lines += 1
        rows += 1
        if not blank:
            last = rows
    put_result(result, count, lines, start - np.int64(text.ctypes.data), rows, last)
    return code
