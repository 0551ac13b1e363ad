"""Adjacency lists: a line per vertex, ``u: v v v`` or ``u<TAB>v,v,v``.

A vertex without neighbours is given as a loop: the loop is dropped later, the vertex stays.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Iterator

import numpy as np

from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.chunks import Grammar, Parsed, open_lines, parse
from oocbfs.formats.readers.detect import Sample
from oocbfs.formats.readers.edge_list import COMMENTS
from oocbfs.kernels.convert.parse import HASH, NAMED, PERCENT, SLASHES

_COLON = re.compile(rb"\s*\d+[ \t]*:(\s|\d|$)")
_COMMAS = re.compile(rb"\d+\t(\d+(,\d+)*,?)?\s*")
_COMMAS_BEGUN = re.compile(rb"\d+(\t(\d+(,\d+)*,?)?)?")
_GRAMMAR = Grammar(HASH | PERCENT | SLASHES | NAMED, rows=True, columns=0)


def looks_like(sample: Sample) -> bool:
    """Recognise an adjacency list by a colon after an id, or by commas after all tabs."""
    data, rest = sample.data, sample.rest
    if _COLON.match(data[0] if data else rest):
        return True
    has_commas = any(b"," in line for line in (*data, rest))
    complete = all(map(_COMMAS.fullmatch, data))
    return has_commas and complete and (not rest or _COMMAS_BEGUN.fullmatch(rest) is not None)


def read(source: Source, declared: Declared, threads: int) -> Generator[Edges]:
    """Read an adjacency list; it declares nothing."""
    with open_lines(source) as lines:
        lines.skip_comments(*COMMENTS)
        for parsed in parse(lines, _GRAMMAR, threads):
            yield from parsed.batches()


class NumberedRows:
    """Rows whose lines do not say their number: how many, and the last one that is not blank."""

    def __init__(self, most: int) -> None:
        self.rows = self.last_row = 0
        self._most = most

    def number(self, chunks: Iterable[Parsed]) -> Iterator[Parsed]:
        """Yield chunks with their rows numbered from 1 on, until there are more than may be."""
        for parsed in chunks:
            if parsed.last_row:
                self.last_row = self.rows + parsed.last_row
            if self.last_row > self._most:
                break
            # A chunk counts its rows from 1.
            parsed.sources[:] += np.uint64(self.rows)
            self.rows += parsed.rows
            yield parsed
