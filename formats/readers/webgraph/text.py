"""WebGraph's ASCII graphs, ``.graph-txt``: the number of nodes, then a line of successors for each.

Nodes are numbered from 0 in the order of their lines. A blank line is a node without successors.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.adjacency import NumberedRows
from oocbfs.formats.readers.chunks import Grammar, open_lines, parse, whole_numbers
from oocbfs.formats.readers.detect import Sample

_SUFFIX = ".graph-txt"


def looks_like(sample: Sample) -> bool:
    """Recognise an ASCII graph by a first line of one number, and by ascending lists below it."""
    rows = [line.split() for line in sample.lines]
    counts = whole_numbers(rows[0]) if rows else None
    if counts is None or len(counts) != 1:
        return False
    if sample.name.endswith(_SUFFIX):
        return True
    lists = [whole_numbers(row) for row in rows[1:]]
    # Lines of two numbers each are edges, whatever stands above them.
    if len(lists) > counts[0] or all(row is None or len(row) in (0, 2) for row in lists):
        return False
    return all(row is not None and _ascend(row, counts[0]) for row in lists)


def _ascend(row: list[int], num_nodes: int) -> bool:
    steps = zip([-1, *row], [*row, num_nodes], strict=True)
    return all(lower < upper for lower, upper in steps)


def read(source: Source, declared: Declared, threads: int) -> Generator[Edges]:
    """Read an ASCII graph; its arcs are directed."""
    with open_lines(source) as lines:
        line = lines.first()
        counts = whole_numbers((line or b"").split())
        if counts is None or len(counts) != 1:
            raise lines.error("need the number of nodes in the first line", line)
        lines.drop()
        num_nodes = counts[0]
        declared.directed, declared.first_id, declared.num_vertices = True, 0, num_nodes
        grammar = Grammar(0, rows=True, columns=0, low=0, high=max(0, num_nodes - 1))
        counted = NumberedRows(num_nodes)
        for parsed in counted.number(parse(lines, grammar, threads)):
            parsed.sources[:] -= np.uint64(1)
            yield from parsed.batches()
    rows, last_row = counted.rows, counted.last_row
    # Blank lines may follow; the line of a last node without successors may lack its end.
    if last_row > num_nodes or rows < num_nodes - 1:
        found = f"more than {num_nodes}" if last_row > num_nodes else rows
        raise InputError(
            f"{found} lines of successors where the first line declares {num_nodes} nodes",
            path=source.name,
        )
