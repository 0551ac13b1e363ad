"""Which two columns of a table hold the edges: as asked for, or by their names, never by guess."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from oocbfs.errors import InputError, QueryError
from oocbfs.formats.tables.where import Where, read_where

Column = str | int


class TextIds(InputError):  # noqa: N818 - an input that may be read in another way
    """An input whose ids are text, which is known before any edge is read.

    ``stream`` is the input where it can be asked for its rows only once.
    """

    stream: Any = None


# What is said of text where ids are numbers.
NAMES_HINT = "; if ids are names, use --ids names"
# What the two ends of an edge are usually called, without capitals, blanks and signs.
USUAL_PAIRS = (
    ("src", "dst"),
    ("src", "dest"),
    ("source", "target"),
    ("source", "destination"),
    ("sources", "targets"),
    ("from", "to"),
    ("fromnode", "tonode"),
    ("fromnodeid", "tonodeid"),
    ("fromid", "toid"),
    ("sourceid", "targetid"),
    ("srcid", "dstid"),
    ("startid", "endid"),
    ("node1", "node2"),
    ("id1", "id2"),
    ("vertex1", "vertex2"),
    ("person1", "person2"),
    ("user1", "user2"),
    ("user", "friend"),
    ("userid", "friendid"),
    ("user", "follower"),
    ("follower", "followed"),
    ("follower", "following"),
    ("followerid", "followeeid"),
    ("person", "friend"),
    ("person1id", "person2id"),
    ("nodeid1", "nodeid2"),
    ("node1id", "node2id"),
    ("idfrom", "idto"),
    ("nodefrom", "nodeto"),
    ("fromuser", "touser"),
    ("fromaddress", "toaddress"),
    ("author1", "author2"),
    ("entity1", "entity2"),
    ("item1", "item2"),
    ("name1", "name2"),
    ("protein1", "protein2"),
    ("gene1", "gene2"),
    ("startnode", "endnode"),
    ("origin", "destination"),
    ("sender", "receiver"),
    ("sender", "recipient"),
    ("caller", "callee"),
    ("follower", "followee"),
    ("citing", "cited"),
    ("parent", "child"),
    ("u", "v"),
    ("row", "col"),
)
# What pandas and Dask call an index that has no name, in CSV and in Parquet.
_INDEX = re.compile(r"|Unnamed: 0|index|__index_level_\d+__|__null_dask_index__")
_HIDDEN = re.compile(r"|__index_level_\d+__|__null_dask_index__")
_SHOWN_NAMES = 8
_SHOWN_CHARACTERS = 40


@dataclass(frozen=True)
class TableOptions:
    """What a user says about a table.

    ``columns`` are names, or numbers that count from 1. ``delimiter`` and ``header`` are for text:
    what ends a field, and whether the first line has names; None looks at the first line.
    ``where`` tells which rows are edges; None takes all.
    """

    columns: tuple[Column, Column] | None = None
    delimiter: str | None = None
    header: bool | None = None
    where: Where | None = None
    rows: bool = False

    def given(self) -> list[str]:
        """Name the options that were given, as they are called on the command line."""
        options = {
            "--columns": self.columns,
            "--delimiter": self.delimiter,
            "--where": self.where,
        }
        said = [name for name, value in options.items() if value is not None]
        return said if self.header is None else [*said, f"--{'' if self.header else 'no-'}header"]


def make_options(
    columns: object = None,
    delimiter: str | None = None,
    header: bool | None = None,
    where: str | None = None,
) -> TableOptions:
    """Check what a user asked for: columns are ``"src,dst"`` or two names or numbers."""
    condition = None if where is None else read_where(where)
    return TableOptions(_read_columns(columns), _read_delimiter(delimiter), header, condition)


def _read_columns(value: object) -> tuple[Column, Column] | None:
    if value is None:
        return None
    numbered = isinstance(value, str)  # where 2 cannot be told from "2", it is a number
    words = [word.strip() for word in value.split(",")] if isinstance(value, str) else value
    if not isinstance(words, (list, tuple)) or len(words) != 2 or words[0] == words[1]:
        raise QueryError(
            f"columns cannot be {value!r}: name two, such as src,dst, or give their numbers"
        )
    read: list[Column] = []
    for word in words:
        if isinstance(word, str) and not (numbered and word.isdecimal()):
            read.append(word)
        elif isinstance(word, (str, int)) and not isinstance(word, bool) and int(word) >= 1:
            read.append(int(word))
        else:
            raise QueryError(f"column {word!r}: give a name, or a number; they count from 1")
    return read[0], read[1]


def _read_delimiter(value: str | None) -> str | None:
    if value is None:
        return None
    read = {"\\t": "\t", "tab": "\t"}.get(value, value)
    if len(read) != 1 or not read.isascii() or read.isalnum() or read in "\n\r\0\"'+-.":
        raise QueryError(
            f"delimiter {value!r}: it is one character, such as , ; | or \\t for a tab"
        )
    return read


@dataclass(frozen=True)
class Pair:
    """The columns of an edge's source and target, counted from 0, and what to say of the choice."""

    source: int
    target: int
    note: str = ""


def choose(names: Sequence[str], chosen: tuple[Column, Column] | None, path: str) -> Pair:
    """Find the two columns in a header, or refuse to guess."""
    if chosen is not None:
        source, target = (_find(column, names, path) for column in chosen)
        return _described(source, target, names, "as asked for")
    found = usual_pairs(names)
    if len(found) == 1:
        source, target = found[0]
        why = "by their names" if (source, target) != (0, 1) or len(names) > 2 else ""
        return _described(source, target, names, why)
    if not found and len(names) == 2:
        return Pair(0, 1)
    if not found and len(names) == 3 and _INDEX.fullmatch(names[0]):
        return _described(1, 2, names, "beside an index")
    raise InputError(
        f"columns {shown_names(names)}: say which two hold the ends of edges, by name or number, "
        f"such as --columns {max(1, len(names) - 1)},{max(2, len(names))}",
        path=path,
    )


def usual_pairs(names: Sequence[str]) -> list[tuple[int, int]]:
    """Find the columns that are called as the ends of edges usually are."""
    plain = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in names]
    return [
        (plain.index(source), plain.index(target))
        for source, target in USUAL_PAIRS
        if plain.count(source) == plain.count(target) == 1
    ]


def numbered(num_columns: int, chosen: tuple[Column, Column] | None, path: str) -> Pair:
    """Find the two columns of a table without names."""
    if chosen is None:
        others = num_columns - 2
        left_out = f"1 and 2; {others} more left out" if others > 0 else ""
        return Pair(0, 1, left_out)
    for column in chosen:
        if isinstance(column, str):
            raise InputError(
                f"no line of column names, so there is no {column!r}: give numbers, such as "
                "--columns 1,2, or --header if the first line has the names",
                path=path,
            )
        if column > num_columns:
            raise InputError(f"no column {column}: the first line has {num_columns}", path=path)
    source, target = (int(column) - 1 for column in chosen)
    others = num_columns - 2
    left_out = f"; {others} more left out" if others > 0 else ""
    return Pair(source, target, f"{source + 1} and {target + 1} as asked for{left_out}")


def shown_names(names: Sequence[str]) -> str:
    """Write the names of columns in one short line."""
    words = [repr(_shortened(name)) for name in names[:_SHOWN_NAMES]]
    more = len(names) - len(words)
    return ", ".join(words) + (f" and {more} more" if more else "")


def _shortened(name: str) -> str:
    return name if len(name) <= _SHOWN_CHARACTERS else f"{name[:_SHOWN_CHARACTERS]}…"


def _find(column: Column, names: Sequence[str], path: str) -> int:
    if isinstance(column, int):
        if column > len(names):
            raise InputError(f"no column {column}: there are {len(names)}", path=path)
        return column - 1
    for same in (str, str.casefold):
        matching = [place for place, name in enumerate(names) if same(name) == same(column)]
        if len(matching) == 1:
            return matching[0]
        if matching:
            raise InputError(
                f"{len(matching)} columns are called {column!r}: give numbers", path=path
            )
    raise InputError(f"no column {column!r}: there are {shown_names(names)}", path=path)


def _described(source: int, target: int, names: Sequence[str], why: str) -> Pair:
    left_out = [
        name
        for place, name in enumerate(names)
        if place not in (source, target) and not _HIDDEN.fullmatch(name)
    ]
    words = (
        [f"{_shortened(names[source])!r} and {_shortened(names[target])!r} {why}"] if why else []
    )
    if left_out:
        words.append(f"left out: {shown_names(left_out)}")
    return Pair(source, target, "; ".join(words))
