"""Decimal text to ids: lines of pairs (edge lists of every kind) and lines of rows (adjacency, METIS).

Both take a chunk of whole lines, the last of which ends in a newline too, so that no loop needs a
bound of its own: every one of them stops at a newline at the latest. They fill ``result`` and return
a code; after BAD_* the text of the line, which begins at result[WHERE], tells a person what is wrong.
"""

# numba calls the code generators by position and reads their annotations nowhere.
from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from oocbfs.kernels.cache import compiled

Ids = NDArray[np.uint64]
Text = NDArray[np.uint8]
Result = NDArray[np.int64]

_IDS = types.Array(types.uint64, 1, "C")
_TEXT = types.Array(types.uint8, 1, "C", readonly=True)
_RESULT = types.Array(types.int64, 1, "C")
_ADDRESS = types.int64

# Which lines are comments (DIMACS: those that begin with the letters c or n, and the letters a or e
# may precede a pair); SINGLE: a line holds one id, taken twice; NAMED: a row begins with its own id.
HASH, PERCENT, SLASHES, DIMACS, SINGLE, NAMED = 1, 2, 4, 8, 16, 32

# Codes, and what result holds: edges written, whole lines read, where the line that stopped the
# parse begins, rows read, and which of these rows, counted from 1, was the last that was not blank.
DONE, FULL, BAD_LINE, BAD_RANGE = 0, 1, 2, 3
COUNT, LINES, WHERE, ROWS, LAST_ROW, RESULT_SIZE = 0, 1, 2, 3, 4, 5

_TAB, _NEWLINE, _RETURN, _SPACE, _QUOTE, _HASH, _PERCENT, _COMMA, _SLASH, _ZERO, _COLON = (
    np.uint8(code) for code in b'\t\n\r "#%,/0:'
)
_A, _C, _E, _N = (np.uint8(code) for code in b"acen")
_NUL = np.uint8(0)
_NINE = np.uint8(9)
_TEN = np.uint64(10)
_MOST = np.uint64(0xFFFFFFFFFFFFFFFF)


def _load_byte(typing_context, at):
    """Read the byte at an address.

    Helpers take addresses, since numba counts references to an array whenever it passes one on.
    """

    def generate(context, builder, signature, arguments):
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()))

    return types.uint8(types.int64), generate


_byte: Any = intrinsic(_load_byte)


@compiled(types.boolean(types.uint8))
def _ends_field(byte: int) -> bool:
    return byte in (_NEWLINE, _SPACE, _TAB, _COMMA, _RETURN)


@compiled(_ADDRESS(_ADDRESS))
def _skip_blanks(at: int) -> int:
    while _byte(at) == _SPACE or _byte(at) == _TAB:
        at += 1
    return at


@compiled(_ADDRESS(_ADDRESS))
def _skip_separator(at: int) -> int:
    """Pass blanks with at most one comma among them."""
    at = _skip_blanks(at)
    if _byte(at) == _COMMA:
        at = _skip_blanks(at + 1)
    return at


@compiled(_ADDRESS(_ADDRESS))
def _next_line(at: int) -> int:
    """Give where the next line begins, or -1 behind a NUL or a lone carriage return."""
    while True:
        byte = _byte(at)
        at += 1
        if byte == _NEWLINE:
            return at
        if byte == _NUL or (byte == _RETURN and _byte(at) != _NEWLINE and _byte(at) != _RETURN):
            return -1


@compiled(types.boolean(_ADDRESS, _ADDRESS))
def _overflows(first: int, end: int) -> bool:
    """Tell whether the digits from first to end are a number above 2^64 - 1."""
    value = np.uint64(0)
    for at in range(first, end):
        digit = np.uint64(_byte(at) - _ZERO)
        if value > (_MOST - digit) // _TEN:
            return True
        value = value * _TEN + digit
    return False


@compiled(types.UniTuple(types.int64, 2)(_ADDRESS))
def _number(at: int) -> tuple[Any, int]:
    """Read a number, quoted or not, as the bits of a signed one; the end is -1 where there is none."""
    quoted = _byte(at) == _QUOTE
    if quoted:
        at += 1
    first = at
    value = np.uint64(0)
    digit = _byte(at) - _ZERO
    while digit <= _NINE:
        value = value * _TEN + np.uint64(digit)
        at += 1
        digit = _byte(at) - _ZERO
    if at == first or (at - first > 19 and _overflows(first, at)):
        return 0, -1
    if quoted:
        if _byte(at) != _QUOTE:
            return 0, -1
        at += 1
    return np.int64(value), at


@compiled(types.boolean(_ADDRESS, types.int64))
def _is_comment(at: int, flags: int) -> bool:
    byte = _byte(at)
    return bool(
        (byte == _HASH and flags & HASH)
        or (byte == _PERCENT and flags & PERCENT)
        or (byte == _SLASH and flags & SLASHES and _byte(at + 1) == _SLASH)
        or (byte in (_C, _N) and flags & DIMACS and _ends_field(_byte(at + 1)))
    )


@compiled(_ADDRESS(_ADDRESS, types.int64))
def _skip_fields(at: int, fields: int) -> int:
    """Pass so many fields, or give -1 where the line has fewer."""
    for _ in range(fields):
        at = _skip_separator(at)
        if _byte(at) == _NEWLINE or _byte(at) == _RETURN:
            return -1
        while not _ends_field(_byte(at)):
            at += 1
    return at


_PAIRS = types.int64(
    _IDS, _IDS, _RESULT, _TEXT, types.int64, types.int64, types.uint64, types.uint64
)


@compiled(_PAIRS)
def parse_pairs(sources, targets, result, text, flags, columns, low, high):
    """Parse lines that begin with two ids from low to high and have at least so many columns."""
    at = start = text.ctypes.data
    end = at + text.size
    lines = count = 0
    code = DONE
    while at < end:
        start = at
        at = _skip_blanks(at)
        byte = _byte(at)
        if byte - _ZERO > _NINE:
            if byte in (_NEWLINE, _RETURN) or _is_comment(at, flags):
                at = _next_line(at)
                if at < 0:
                    code = BAD_LINE
                    break
                lines += 1
                continue
            if byte in (_A, _E) and flags & DIMACS and _ends_field(_byte(at + 1)):
                at = _skip_blanks(at + 1)
        if count == sources.size:
            code = FULL
            break
        number, at = _number(at)
        if at < 0 or not _ends_field(_byte(at)):
            code = BAD_LINE
            break
        source = target = np.uint64(number)
        if not flags & SINGLE:
            number, at = _number(_skip_separator(at))
            if at < 0 or not _ends_field(_byte(at)):
                code = BAD_LINE
                break
            target = np.uint64(number)
        if source < low or source > high or target < low or target > high:
            code = BAD_RANGE
            break
        if _byte(at) == _NEWLINE and columns <= 2:
            at += 1
        else:
            if columns > 2:
                at = _skip_fields(at, columns - 2)
            if at >= 0:
                at = _next_line(at)
            if at < 0:
                code = BAD_LINE
                break
        sources[count] = source
        targets[count] = target
        count += 1
        lines += 1
    result[COUNT] = count
    result[LINES] = lines
    result[WHERE] = start - text.ctypes.data
    result[ROWS] = result[LAST_ROW] = lines
    return code


@compiled(_PAIRS)
def parse_rows(sources, targets, result, text, flags, columns, low, high):
    """Parse lines of neighbours from low to high; a row is known by its id or, from 1, by its place.

    ``columns`` is twice the number of fields before the neighbours, plus 1 where a weight follows
    each of them. Rows of neighbours need sources and targets of at least half the size of the text.
    A row that is named and has no neighbours becomes a loop, since its vertex exists.
    """
    at = start = text.ctypes.data
    end = at + text.size
    lines = count = rows = last = 0
    code = DONE
    while at < end and code == DONE:
        start = at
        at = _skip_blanks(at)
        row = np.uint64(rows + 1)
        blank = _byte(at) == _NEWLINE or _byte(at) == _RETURN
        if _is_comment(at, flags) or (blank and flags & NAMED):
            at = _next_line(at)
            if at < 0:
                code = BAD_LINE
            else:
                lines += 1
            continue
        if flags & NAMED:
            number, at = _number(at)
            if at < 0 or not (_ends_field(_byte(at)) or _byte(at) == _COLON):
                code = BAD_LINE
                break
            row = np.uint64(number)
            at = _skip_blanks(at)
            if _byte(at) == _COLON:
                at += 1
        elif columns > 1:
            at = _skip_fields(at, columns >> 1)
            if at < 0:
                code = BAD_LINE
                break
        before = count
        while True:
            at = _skip_separator(at)
            if _byte(at) == _NEWLINE or _byte(at) == _RETURN:
                break
            number, at = _number(at)
            if at >= 0 and not _ends_field(_byte(at)):
                at = -1
            if at >= 0 and columns & 1:
                at = _skip_fields(at, 1)
            if at < 0:
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
        at = _next_line(at)
        if at < 0:
            code = BAD_LINE
            break
        lines += 1
        rows += 1
        if not blank:
            last = rows
    result[COUNT] = count
    result[LINES] = lines
    result[WHERE] = start - text.ctypes.data
    result[ROWS] = rows
    result[LAST_ROW] = last
    return code
