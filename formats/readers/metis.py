"""METIS graphs: ``n m [format [weights]]``, then a line of neighbours for each vertex, ids from 1.

The format is up to three digits: vertex sizes, vertex weights, edge weights. A blank line is a
vertex without neighbours. Each edge stands in the lines of both its ends; m counts it once. GAP
writes arcs once instead, m of them, and the format 100 for a graph without sizes; content tells.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.adjacency import NumberedRows
from oocbfs.formats.readers.chunks import Grammar, Lines, parse, whole_numbers
from oocbfs.formats.readers.detect import Sample
from oocbfs.kernels.convert.parse import PERCENT

_SUFFIXES = (".graph", ".metis")
_FIRST_ROWS_BYTES = 1 << 16


@dataclass
class Header:
    """The first line of a METIS file; ``skipped`` fields precede the neighbours of a vertex."""

    num_vertices: int
    num_edges: int
    skipped: int
    weighted: bool
    sizes: bool

    @classmethod
    def parse(cls, line: bytes) -> Header | None:
        """Read the line, or give None if it is no such line."""
        words = line.split()
        numbers = whole_numbers(words)
        if numbers is None or not 2 <= len(words) <= 4:
            return None
        digits = words[2].decode().zfill(3) if len(words) > 2 else "000"
        if len(digits) != 3 or set(digits) - set("01"):
            return None
        weights = numbers[3] if len(words) > 3 else 1
        skipped = (digits[0] == "1") + weights * (digits[1] == "1")
        return cls(
            num_vertices=numbers[0],
            num_edges=numbers[1],
            skipped=skipped,
            weighted=digits[2] == "1",
            sizes=digits == "100",
        )


def looks_like(sample: Sample) -> bool:
    """Recognise a METIS graph by its header and by lines that differ in length, as degrees do."""
    lines, rest = sample.lines, sample.rest
    rows = [line.split() for line in lines if not line.startswith(b"%")]
    while rows and not rows[0]:
        rows.pop(0)
    header = Header.parse(b" ".join(rows[0])) if rows else None
    if header is None or sample.name.endswith(_SUFFIXES):
        return header is not None
    rows = rows[1:]
    while rows and not rows[-1]:
        rows.pop()
    widths = {len(row) for row in rows}
    if len(rest.split()) > max(widths, default=2):
        widths.add(len(rest.split()))
        rows.append(rest.split()[:-1])
    if len(widths) + (not sample.whole and not lines[1:]) < 2 or len(rows) > header.num_vertices:
        return False
    skipped = 0 if header.sizes else header.skipped
    ids = [id_ for row in rows for id_ in row[skipped :: 1 + header.weighted]]
    fit = all(word.isdigit() and 1 <= int(word) <= header.num_vertices for word in ids)
    if not sample.whole or not fit:
        return fit
    # Loops and the sizes of vertices may make a few more of them.
    return header.num_edges <= len(ids) <= 2 * header.num_edges + header.num_vertices


def read(source: Source, declared: Declared, threads: int) -> Generator[Edges]:
    """Read a METIS graph."""
    entries = loops = 0
    with source.open() as stream:
        head = stream.read(_FIRST_ROWS_BYTES)
        stream.unread(head)
        lines = Lines(source, stream)
        line = lines.skip_comments(b"%")
        header = Header.parse(line or b"")
        if header is None:
            raise lines.error(
                "need the METIS header first: vertices edges [format [weights]]", line
            )
        lines.drop()
        if header.sizes and _has_blank_row(head):
            header.skipped = 0
        size = header.num_vertices
        declared.directed, declared.directed_why = False, "METIS graphs are"
        declared.first_id, declared.num_vertices = 1, size
        columns = 2 * header.skipped + header.weighted
        grammar = Grammar(PERCENT, rows=True, columns=columns, low=1, high=size)
        counted = NumberedRows(size)
        for parsed in counted.number(parse(lines, grammar, threads)):
            entries += parsed.sources.size
            loops += int(np.count_nonzero(parsed.sources == parsed.targets))
            yield from parsed.batches()
    rows, last_row = counted.rows, counted.last_row
    _check(header, source, entries, loops, max(rows, last_row), last_row)
    if entries == header.num_edges and entries:
        declared.directed, declared.directed_why = True, "it lists each of its edges once"


def _has_blank_row(head: bytes) -> bool:
    """Return whether a vertex has no field at all, so that it has no size either."""
    rows = [line.strip() for line in head.split(b"\n") if not line.startswith(b"%")]
    return b"" in rows[1:-1]


def _check(
    header: Header, source: Source, entries: int, loops: int, rows: int, last_row: int
) -> None:
    # Blank lines may follow; the line of a last vertex without neighbours may lack its end.
    if last_row > header.num_vertices or rows < header.num_vertices - 1:
        found = f"more than {header.num_vertices}" if last_row > header.num_vertices else rows
        raise InputError(
            f"{found} vertex lines where the header declares {header.num_vertices} vertices",
            path=source.name,
        )
    # A loop stands in one line only, though some writers list it there twice.
    if header.num_edges not in (entries, entries / 2, (entries + loops) / 2):
        raise InputError(
            f"{entries} neighbours where the header declares {header.num_edges} edges, which is "
            f"{2 * header.num_edges} neighbours",
            path=source.name,
        )
