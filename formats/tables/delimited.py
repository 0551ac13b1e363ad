"""The first line of a text in columns: what delimits them, which names they have."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from oocbfs.errors import spoken
from oocbfs.formats.tables.columns import (
    Pair,
    TableOptions,
    choose,
    numbered,
    shown_names,
    usual_pairs,
)

BLANK = " "
_DELIMITERS = ",\t;|"
_QUOTED = re.compile(rb'"[^"]*"')
_WORD = re.compile(rb'"[^"]*"|\S+')
# A first line may be as long as the input, and has nothing of use after so much.
_LOOKED_AT_BYTES = 1 << 16
_TWO_IDS = re.compile(rb'\s*"?\d+"?[ \t]*[ \t,][ \t]*"?\d+"?(?=[ \t,]|$)')
_AFTER_TWO = "1 and 2; what follows them is left out"
_NUMBERED = re.compile(r"(\D{2,})(\d)")
# Text has a letter that does not belong to a number such as 1e5; so have what stand for no number.
_TEXT = re.compile(rb"(?![+-]?[0-9.]+([eE][+-]?[0-9]+)?$).*[^\W\d_]|(?s:.*)[\x80-\xff]")
_NO_NUMBER = re.compile(rb"(?i:nan|null|none|n/a|na|[+-]?inf(inity)?|)")
_NAME = re.compile(r"[^\W\d]|[:~@$]")


@dataclass(frozen=True)
class Layout:
    """How the lines of a text hold edges.

    ``strict``: a field ends at the delimiter and nowhere else. If not, the first two ids of a line
    are taken, whatever is between them. A blank as delimiter stands for any run of blanks and tabs.
    """

    pair: Pair
    delimiter: str
    strict: bool
    has_header: bool


def lay_out(
    line: bytes,
    comment: bytes,
    options: TableOptions,
    path: str,
    *,
    named: bool = False,
    second: bytes = b"",
) -> Layout:
    """Decide from the first line, and the comment above it, how a text holds its edges.

    Where ids are names, a header is known only by what its columns are called, and by the second
    line, which is not called alike. What was decided is said, as it may be wrong.
    """
    line = line[:_LOOKED_AT_BYTES]
    two_ids = _TWO_IDS.match(line) if options == TableOptions() and not named else None
    if two_ids is not None and not _names_above(comment, line, options):
        note = _AFTER_TWO if two_ids.end() < len(line.rstrip()) else ""
        return Layout(Pair(0, 1, note), BLANK, strict=False, has_header=False)
    delimiter = options.delimiter or _sniff(line)
    fields = split_names(line, delimiter)
    has_header = options.header
    if has_header is None:
        has_header = (
            _has_usual(fields, split_names(second[:_LOOKED_AT_BYTES], delimiter), options)
            if named
            else _is_header(fields, options)
        )
    names = fields if has_header else _names_above(comment, line, options)
    if names is None:
        pair = numbered(len(fields), options.columns, path)
    else:
        pair = choose(names, options.columns, path)
    if named and options.header is None and not _wanted(options):
        pair = _told(pair, fields, has_header=has_header)
    plain = (pair.source, pair.target) == (0, 1) and delimiter in ", \t"
    wide = has_header and len(fields) > 2 and delimiter != BLANK
    strict = not plain or wide or options.delimiter is not None
    return Layout(pair, delimiter, strict, has_header)


def split(line: bytes, delimiter: str) -> list[bytes]:
    """Split a line into fields, without quotes."""
    line = line.strip(b" \r\n")
    if delimiter == BLANK:
        return [word.strip(b'"') for word in _WORD.findall(line)]
    padding = b" *" if delimiter == "\t" else b"[ \t]*"
    field = re.compile(b'%b("(?:[^"]|"")*"|)[^%b]*' % (padding, re.escape(delimiter.encode())))
    fields, position = [], 0
    while position <= len(line) and (match := field.match(line, position)):
        quoted = match[1]
        fields.append(quoted[1:-1].replace(b'""', b'"') if quoted else match[0].strip())
        position = match.end() + 1
    return fields


def has_text(fields: list[bytes]) -> bool:
    """Return whether one of the fields is a name rather than a number, or something for one."""
    return any(_TEXT.match(field) and not _NO_NUMBER.fullmatch(field) for field in fields)


def split_names(line: bytes, delimiter: str) -> list[str]:
    """Split a line that may have names."""
    return [field.decode("utf-8", "replace") for field in split(line, delimiter)]


def has_numbered_names(line: bytes, second: bytes) -> bool:
    """Return whether a line is the header of pandas over an index and columns 0, 1, …, not an edge.

    That is for tabs: what begins with another delimiter is no edge.
    """
    names = line.split(b"\t")
    numbers = [str(number).encode() for number in range(len(names) - 1)]
    data = second.split(b"\t")
    return len(data) == len(names) > 2 and names == [b"", *numbers] and data[0].isdigit()


def _sniff(line: bytes) -> str:
    """Return what delimits the fields of a line: what occurs most of what usually does."""
    text = _QUOTED.sub(b"", line).decode("utf-8", "replace")
    most = max(_DELIMITERS, key=text.count)
    return most if most in text else BLANK


def _is_header(fields: list[str], options: TableOptions) -> bool:
    """Return whether a line holds names, not numbers, in the columns that matter."""
    columns = options.columns or (1, 2)
    places = [column - 1 for column in columns if isinstance(column, int)]
    if not fields[0] and len(fields) > 2 and options.columns is None:
        return True  # pandas gives its index no name
    if len(places) < 2:
        return any(_NAME.match(field) for field in fields)
    return max(places) < len(fields) and all(_NAME.match(fields[place]) for place in places)


def _wanted(options: TableOptions) -> list[str]:
    """Return the columns that are asked for by name."""
    return [column for column in options.columns or () if isinstance(column, str)]


def _has_usual(fields: list[str], second: list[str], options: TableOptions) -> bool:
    """Recognise a header by the columns that are asked for, or by what they are usually called."""
    if _wanted(options) or (not fields[0] and len(fields) > 2):
        return True
    usual = bool(usual_pairs(fields))
    first, last = (_NUMBERED.fullmatch(field) for field in (fields + [""] * 2)[:2])
    if first and last and (first[1], first[2], last[2]) == (last[1], "1", "2"):
        # As actor_1 and actor_2, which are names themselves where others of them follow.
        alone = not any(name.startswith(first[1]) for name in second)
        return alone and (usual or len(fields) == len(second) == 2)
    return usual


def _told(pair: Pair, fields: list[str], *, has_header: bool) -> Pair:
    """Add to what is said of the columns what the first line was taken for."""
    first = f"the first line, {shown_names(fields)},"
    taken = (
        f"{first} has the names of columns (--no-header if it is an edge)"
        if has_header
        else f"{first} is an edge (--header if it has the names of columns)"
    )
    return replace(pair, note="; ".join(filter(None, (pair.note, spoken(taken)))))


def _names_above(comment: bytes, line: bytes, options: TableOptions) -> list[str] | None:
    """Take names from a comment such as ``# id,src,dst``, if they fit the line and are of use."""
    if options.header is not None:
        return None
    delimiter = options.delimiter or _sniff(line)
    names = split_names(comment[:_LOOKED_AT_BYTES].lstrip(b"#%/ \t"), delimiter)
    of_use = set(_wanted(options)) <= set(names) if options.columns else bool(usual_pairs(names))
    fits = len(names) == len(split(line, delimiter)) > 2
    return names if fits and of_use else None
