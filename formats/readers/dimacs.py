"""DIMACS graphs: ``p <problem> n m``, then lines ``a u v w``, ``e u v`` or ``u v``, ids from 1.

Shortest path and flow problems are directed, all others are not. Lines ``c …`` are comments. Lines
``n …`` describe single vertices, which a search does not need.
"""

from __future__ import annotations

import re
from collections.abc import Generator

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.chunks import Grammar, open_lines, parse, whole_numbers
from oocbfs.formats.readers.detect import Sample
from oocbfs.kernels.convert.parse import DIMACS

_PROBLEM = re.compile(rb"p\s+\S+\s+\d+\s+\d+")
_DIRECTED = ("sp", "max", "min", "asn")


def looks_like(sample: Sample) -> bool:
    """Recognise a DIMACS graph by its problem line, which only comments may precede."""
    lines = (line for line in sample.lines if line.strip() and line.split()[0] != b"c")
    return _PROBLEM.match(next(lines, b"")) is not None


def read(source: Source, declared: Declared, threads: int) -> Generator[Edges]:
    """Read a DIMACS graph."""
    with open_lines(source) as lines:
        while (line := lines.skip_comments()) is not None and line.split()[0] == b"c":
            lines.drop()
        words = (line or b"").split()
        numbers = whole_numbers(words[2:4])
        if words[:1] != [b"p"] or numbers is None or len(numbers) < 2:
            raise lines.error("need the problem line first: p <problem> <vertices> <edges>", line)
        num_vertices, num_edges = numbers
        lines.drop()
        problem = words[1].decode("utf-8", "replace")
        declared.directed = problem in _DIRECTED
        declared.directed_why = f"its problem is {problem[:20]!r}"
        declared.first_id, declared.num_vertices = 1, num_vertices
        # Undirected collections list an edge once or both ways and count it once.
        most = num_edges if declared.directed else 2 * num_edges
        count = 0
        for parsed in parse(lines, Grammar(DIMACS, low=1, high=num_vertices), threads):
            count += parsed.sources.size
            if count > most:
                break
            yield from parsed.batches()
    if count not in (num_edges, most):
        found = "more" if count > most else count
        raise InputError(
            f"{found} edges where the problem line declares {num_edges}", path=source.name
        )
