"""Lines of text to pairs of names: two columns of each line, quoted or not.

A chunk ends in a newline, so that no loop needs a limit. Blanks around a field do not belong to it
unless it is quoted; within quotes, two quotes stand for one. Names stay where they are in the text,
which is changed only where quotes were doubled.
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I64, U8, U16, U32
from oocbfs.kernels.atomics import inlined
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.names.words import EMPTY, GOOD, HAS_NUL, NOT_UTF8, TOO_LONG, name_code

# Why a line was refused, besides what may be wrong with a name.
DONE = GOOD
FEW_COLUMNS, OPEN_QUOTE, AFTER_QUOTE, NOT_TEXT = range(NOT_UTF8 + 1, NOT_UTF8 + 5)
PROBLEMS = {
    EMPTY: "an empty name",
    TOO_LONG: "a name of more than 65,535 bytes, the limit",
    HAS_NUL: "a name with a NUL byte",
    NOT_UTF8: "a name that is not UTF-8: convert the text, as with 'iconv -f latin1 -t utf-8'",
    FEW_COLUMNS: "too few columns",
    OPEN_QUOTE: "a quoted field that does not end on its line",
    AFTER_QUOTE: "text after a quoted field",
    NOT_TEXT: "NUL or lone carriage return: need UTF-8 text with LF or CRLF line ends",
}
# What result holds: edges, whole lines, the offset of the line that was refused.
COUNT, LINES, WHERE, RESULT_SIZE = range(4)
# Fields are separated by blanks.
BLANKS = 0

_TAB, _NEWLINE, _RETURN, _SPACE, _QUOTE, _HASH, _PERCENT, _SLASH = (
    np.uint8(code) for code in b'\t\n\r "#%/'
)
_NUL = np.uint8(0)


@inlined
def _is_blank(byte, delimiter):
    """Return whether a byte is a blank that does not separate fields."""
    return (byte == _SPACE and delimiter != _SPACE) or (byte == _TAB and delimiter != _TAB)


@inlined
def _ends_line(text, place):
    """Return whether a line ends here."""
    byte = text[place]
    return byte == _NEWLINE or (byte == _RETURN and text[place + 1] == _NEWLINE)


@compiled(types.UniTuple(types.int64, 4)(U8, types.int64, types.uint8))
def _read_field(text, place, delimiter):
    """Read a field from ``place`` on: its code, begin, end, and the place after it."""
    while _is_blank(text[place], delimiter):
        place += 1
    begin = place
    if text[place] == _QUOTE:
        begin = end = place + 1
        place += 1
        while True:
            byte = text[place]
            if byte == _NEWLINE:
                return OPEN_QUOTE, begin, end, place
            if byte == _QUOTE:
                place += 1
                if text[place] != _QUOTE:
                    break
            if end != place:
                text[end] = byte
            end += 1
            place += 1
        while _is_blank(text[place], delimiter):
            place += 1
        separated = delimiter == BLANKS and text[place - 1] in (_SPACE, _TAB)
        if text[place] != delimiter and not _ends_line(text, place) and not separated:
            return AFTER_QUOTE, begin, end, place
        return DONE, begin, end, place
    while True:
        byte = text[place]
        if byte in (_NEWLINE, delimiter):
            break
        if byte in (_RETURN, _NUL):
            if _ends_line(text, place):
                break
            return NOT_TEXT, begin, place, place
        if delimiter == BLANKS and byte in (_SPACE, _TAB):
            break
        place += 1
    end = place
    while end > begin and _is_blank(text[end - 1], delimiter):
        end -= 1
    if delimiter == BLANKS:
        while _is_blank(text[place], delimiter):
            place += 1
    return DONE, begin, end, place


@inlined
def _is_comment(text, place):
    byte = text[place]
    return byte in (_HASH, _PERCENT) or (byte == _SLASH and text[place + 1] == _SLASH)


@compiled(
    types.int64(U32, U16, I64, U8, types.uint8, types.int64, types.int64, types.boolean),
)
def parse_names(starts, lengths, result, text, delimiter, first, second, comments):
    """Parse lines whose columns ``first`` and ``second``, from 0, are names; returns a code.

    There are as many starts and lengths as half the bytes of the text: two for each edge.
    """
    place = start = 0
    lines = count = 0
    code = DONE
    while place < text.size:
        start = place
        while _is_blank(text[place], delimiter):
            place += 1
        skipped = comments and _is_comment(text, place)
        if skipped or _ends_line(text, place):
            while text[place] != _NEWLINE:
                if text[place] == _NUL or (text[place] == _RETURN and not _ends_line(text, place)):
                    code = NOT_TEXT
                    break
                place += 1
            if code != DONE:
                break
            place += 1
            lines += 1
            continue
        place = start
        column = 0
        while True:
            code, begin, end, place = _read_field(text, place, delimiter)
            if code == DONE and column in (first, second):
                code = name_code(text, begin, end)
            if code != DONE:
                break
            if column == first:
                starts[2 * count], lengths[2 * count] = begin, end - begin
            if column == second:
                starts[2 * count + 1], lengths[2 * count + 1] = begin, end - begin
            column += 1
            if _ends_line(text, place):
                break
            if delimiter != BLANKS:
                place += 1
        if code == DONE and column <= max(first, second):
            code = FEW_COLUMNS
        if code != DONE:
            break
        count += 1
        lines += 1
        place += 2 if text[place] == _RETURN else 1
    result[COUNT] = count
    result[LINES] = lines
    result[WHERE] = start
    return code
