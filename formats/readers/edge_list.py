"""Edge lists: a line per edge, with two ids in the first or any other columns.

The first line that is not a comment may be a header:

- names of columns, which may tell where the ids are (``formats.tables``);
- ``n,m,d,name,…`` as Julia's graph libraries write it, with d or u for directed or undirected;
- ``n m``, the numbers of vertices and edges, unless a comment has them (``Nodes: n Edges: m``).

The last may as well be an edge. It is held back, and taken as a header if the rest agrees with it.
Nobody looks for the last two if it was said how the columns are, or that rows have an order.
Comments may say whether the graph is directed.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.streams import Source, plain_name
from oocbfs.formats.readers.chosen_lines import read_chosen
from oocbfs.formats.readers.chunks import MAX_ID, Grammar, Lines, id_fields, open_lines, parse
from oocbfs.formats.tables.columns import NAMES_HINT, TableOptions, TextIds
from oocbfs.formats.tables.delimited import (
    BLANK,
    Layout,
    has_numbered_names,
    has_text,
    lay_out,
    split,
)
from oocbfs.kernels.convert.parse import HASH, PERCENT, SLASHES

COMMENTS = (b"#", b"%", b"//")
GRAMMAR = Grammar(HASH | PERCENT | SLASHES, may_be_names=True)
_ANY = TableOptions()

_COUNTS = re.compile(rb"\s*(\d{1,20})[ \t]*[ \t,][ \t]*(\d{1,20})\s*")
_JULIA = re.compile(rb"(\d{1,20}),(\d{1,20}),([du]),.*")
# GAP and LDBC Graphalytics define these, and no header.
_HEADLESS = (".el", ".wel", ".e")


@dataclass
class _Counts:
    """A line that may count the vertices and edges, and what is known of the edges after it."""

    num_vertices: int
    num_edges: int
    seen: int = 0
    low: int = MAX_ID
    high: int = 0

    def see(self, edges: Edges) -> None:
        self.seen += edges.sources.size
        for ids in (edges.sources, edges.targets):
            self.low = min(self.low, int(ids.min()))
            self.high = max(self.high, int(ids.max()))

    def first_id(self) -> int | None:
        """Return the first id that makes the ids fit, if there is one."""
        if self.high < self.num_vertices:
            return 0
        return 1 if self.low >= 1 and self.high == self.num_vertices else None

    def agrees(self) -> bool:
        """Return whether the line counts what was seen.

        Both directions may be listed but counted once, or the other way round. As an edge of small
        ids could look like that, the count must then be above all ids.
        """
        if not self.seen or self.first_id() is None:
            return False
        twice = self.seen in (2 * self.num_edges, self.num_edges / 2)
        return self.num_edges == self.seen or (twice and self.num_edges > self.num_vertices)


def read(
    source: Source, declared: Declared, threads: int, *, table: TableOptions = _ANY
) -> Generator[Edges]:
    """Read an edge list."""
    with open_lines(source) as lines:
        line = lines.read_comments(declared, *COMMENTS)
        if line is None:
            return
        if table == _ANY and has_numbered_names(line, lines.second()):
            table = TableOptions(delimiter="\t", header=True)
        said = table != _ANY
        julia = None if said else _JULIA.fullmatch(line)
        counts = _julia_counts(julia) if julia else None
        if counts is None and not said:
            counts = _bare_counts(line, lines, source)
        layout = None
        if counts is None:
            layout = lay_out(line, lines.comment, table, source.name)
            declared.columns = layout.pair.note
            _refuse_text(line, lines, layout)
        if counts is not None or (layout is not None and layout.has_header):
            lines.drop()
        if layout is not None and table.where is not None:
            yield from read_chosen(lines, layout, line, table, threads)
            return
        empty = True
        for parsed in parse(lines, _grammar(layout), threads):
            for edges in parsed.batches():
                empty = False
                if counts is not None:
                    counts.see(edges)
                yield edges
    if empty and layout is not None and layout.has_header and layout.delimiter == BLANK:
        shown = line.decode("utf-8", "replace")
        raise InputError("no edges, only text", path=source.name, text=shown)
    if julia is not None and counts is not None:
        _check_julia(counts, source)
        declared.directed = julia[3] == b"d"
        declared.directed_why = f"the header says {julia[3].decode()!r}"
        declared.first_id, declared.num_vertices = 1, counts.num_vertices
    elif counts is not None and counts.agrees():
        declared.first_id, declared.num_vertices = counts.first_id() or 0, counts.num_vertices
    elif counts is not None:
        ends = np.array([[counts.num_vertices], [counts.num_edges]], np.uint64)
        yield Edges(ends[0], ends[1])


def _refuse_text(line: bytes, lines: Lines, layout: Layout) -> None:
    """Refuse names, which may be read in another way.

    The first two lines must have as many fields: prose has not, and is refused where it is parsed.
    """
    second = lines.second()
    rows = [split(row, layout.delimiter) for row in (line, second)]
    if len(rows[0]) != len(rows[1]) if second else layout.has_header:
        return
    if len(rows[0]) <= max(layout.pair.source, layout.pair.target):
        return
    ends = id_fields(second if layout.has_header else line, _grammar(layout))
    if all(ends) and has_text(ends):
        name = next(end for end in ends if has_text([end])).decode("utf-8", "replace")
        raise TextIds(
            f"vertex id {name[:40]!r} is not a whole decimal number{NAMES_HINT}",
            path=lines.name,
            line=lines.number + layout.has_header,
        )


def _grammar(layout: Layout | None) -> Grammar:
    if layout is None or not layout.strict:
        return GRAMMAR
    # Where the first column is no id, a line of data may look like a comment.
    first = 0 in (layout.pair.source, layout.pair.target)
    return Grammar(GRAMMAR.flags if first else 0, layout=layout)


def _bare_counts(line: bytes, lines: Lines, source: Source) -> _Counts | None:
    match = _COUNTS.fullmatch(line)
    if match is None or lines.counted or plain_name(source.path).endswith(_HEADLESS):
        return None
    counts = _Counts(int(match[1]), int(match[2]))
    # A number too large for an id is left to the parser, which refuses it.
    return counts if max(counts.num_vertices, counts.num_edges) <= MAX_ID else None


def _julia_counts(match: re.Match[bytes]) -> _Counts:
    return _Counts(int(match[1]), int(match[2]))


def _check_julia(counts: _Counts, source: Source) -> None:
    if counts.seen != counts.num_edges:
        raise InputError(
            f"{counts.seen} edges where the header counts {counts.num_edges}", path=source.name
        )
    if counts.seen and (counts.low < 1 or counts.high > counts.num_vertices):
        raise InputError(
            f"vertex ids {counts.low} … {counts.high} where the header allows "
            f"1 … {counts.num_vertices}",
            path=source.name,
        )
