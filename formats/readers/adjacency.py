"""Adjacency lists: a line per vertex, ``u: v v v`` or ``u<TAB>v,v,v``.

A vertex without neighbours is handed on as a loop, which nothing but its existence is left of.
"""

from __future__ import annotations

from collections.abc import Generator

from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.chunks import Grammar, Lines, parse
from oocbfs.formats.readers.edge_list import COMMENTS
from oocbfs.kernels.convert.parse import HASH, NAMED, PERCENT, SLASHES

_GRAMMAR = Grammar(HASH | PERCENT | SLASHES | NAMED, rows=True, columns=0)


def read(source: Source, declared: Declared, threads: int) -> Generator[Edges]:
    """Read an adjacency list; it declares nothing."""
    with source.open() as stream:
        lines = Lines(source, stream)
        lines.skip_comments(*COMMENTS)
        for parsed in parse(lines, _GRAMMAR, threads):
            yield from parsed.batches()
