"""WebGraph's compressed graphs: ``X.graph`` in the BV format, ``X.properties`` beside it.

A node's list may refer to those of the few nodes before it, so that the nodes are read in turn, and
the last lists are kept. ``X.offsets`` is not needed for that.
"""

from __future__ import annotations

from collections.abc import Generator

import numpy as np

from oocbfs.errors import BudgetError, InputError
from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.limits import LINE_COPIES
from oocbfs.formats.io.streams import Source, Stream
from oocbfs.formats.readers.chunks import BATCH_EDGES, CHUNK_BYTES, batches
from oocbfs.formats.readers.detect import Sample
from oocbfs.formats.readers.webgraph.properties import (
    Properties,
    describes_webgraph,
    path_beside,
    read_properties,
)
from oocbfs.kernels.convert import webgraph as kernels

_WHY = {
    kernels.BAD_CODE: "a number that no writer makes",
    kernels.BAD_DEGREE: "more successors than there are nodes",
    kernels.BAD_REFERENCE: "a reference to a list outside of the window",
    kernels.BAD_BLOCKS: "blocks that are longer than the lists they belong to",
    kernels.BAD_INTERVALS: "intervals of more successors than it has",
    kernels.BAD_SUCCESSOR: "a successor that is no node",
    kernels.TWICE: "a successor twice",
}
# For each arc: its ends, and what is merged into them.
_ARC_BYTES = 24
# Writers fill the last word, and some begin another.
_PADDING_BYTES = 16
# What the kernel may look at behind the last bit.
_PADDING = np.zeros(2, np.uint64)


def looks_like(sample: Sample) -> bool:
    """Recognise a compressed graph by the properties beside it."""
    beside = path_beside(sample.path)
    return beside is not None and describes_webgraph(beside)


def read(source: Source, declared: Declared, threads: int) -> Generator[Edges]:
    """Read a compressed graph; its arcs are directed."""
    beside = path_beside(source.path)
    if beside is None:
        raise InputError("need the name X.graph, to find X.properties beside it", path=source.name)
    properties = read_properties(beside)
    declared.directed, declared.first_id = True, 0
    declared.num_vertices = properties.num_nodes
    with source.open() as stream:
        lists = _Lists(source, _Bits(stream), properties)
        while lists.go_on():
            yield from lists.arcs()
        lists.check_end()


class _Bits:
    """The bits that are not decoded yet, in words of 64, from the first node on that is not."""

    def __init__(self, stream: Stream) -> None:
        self.words = _PADDING
        self.end = 0  # in bits
        self._stream = stream

    def read_more(self, position: int) -> int | None:
        """Drop what comes before a position, and read on; returns its new place, or None."""
        dropped = position >> 6
        kept = self.words[dropped : (self.end + 63) >> 6]
        # Twice as much if a node needs more than was there, so that few bits are read again.
        data = self._stream.read(max(CHUNK_BYTES, 8 * kept.size))
        if not data:
            return None
        added = np.frombuffer(data + bytes(-len(data) % 8), ">u8")
        self.words = np.concatenate([kept, added, _PADDING], dtype=np.uint64)
        self.end += 8 * len(data) - 64 * dropped
        return position - 64 * dropped

    def rest(self, position: int) -> bytes:
        """Return what is left after the last node: some bits, and a little more than padding."""
        word = self.words[position >> 6 : (self.end + 63) >> 6].copy()
        if word.size:
            word[0] &= np.uint64((1 << (64 - position % 64)) - 1)
        return word.astype(">u8").tobytes() + self._stream.read(2 * _PADDING_BYTES)


class _Lists:
    """The lists of the nodes that are decoded, of which the last ones are kept."""

    def __init__(self, source: Source, bits: _Bits, properties: Properties) -> None:
        self._source = source
        self._bits = bits
        self._properties = properties
        self._starts = np.zeros(int(properties.settings[kernels.WINDOW]) + 1, np.int64)
        self._state = np.zeros(kernels.NUM_STATE, np.int64)
        self._fresh = self._num_arcs = 0
        self._allocate(BATCH_EDGES)

    def _allocate(self, size: int) -> None:
        self._sources, self._successors, self._extra = np.empty((3, size), np.uint64)

    def go_on(self) -> bool:
        """Decode until there are arcs to give out; False at the end."""
        while True:
            code = kernels.decode(
                self._sources,
                self._successors,
                self._extra,
                self._starts,
                self._state,
                self._bits.words,
                self._bits.end,
                self._properties.settings,
            )
            if code == kernels.NEEDS_BITS:
                self._check_bits()
                position = self._bits.read_more(int(self._state[kernels.POSITION]))
                if position is None:
                    raise self._error("the file is truncated: it ends in the list")
                self._state[kernels.POSITION] = position
            elif code in _WHY:
                raise self._error(f"damaged: {_WHY[code]} in the list")
            elif int(self._state[kernels.USED]) > self._fresh:
                return True
            elif code == kernels.DONE:
                return False
            else:
                self._make_room()

    def arcs(self) -> Generator[Edges]:
        """Yield the arcs that are new, and keep only the lists that may be referred to."""
        used = int(self._state[kernels.USED])
        self._num_arcs += used - self._fresh
        new = slice(self._fresh, used)
        yield from batches(self._sources[new].copy(), self._successors[new].copy())
        node = int(self._state[kernels.NODE])
        window = self._starts.size - 1
        # All lists lie one after the other.
        first = int(self._starts[max(0, node - window) % self._starts.size]) if window else used
        kept = used - first
        self._successors[:kept] = self._successors[first:used].copy()
        self._starts -= first
        self._state[kernels.USED] = self._fresh = kept

    def _check_bits(self) -> None:
        """Refuse a list that does not end, as in a file of zeros."""
        limit = self._source.limits.line_bytes
        if self._bits.end - int(self._state[kernels.POSITION]) > 8 * limit:
            node = int(self._state[kernels.NODE])
            raise BudgetError(
                f"{self._source.name}: the list of node {node} takes more than {limit >> 20:,} MB, "
                "the limit: the file is damaged, or needs more --memory"
            )

    def _make_room(self) -> None:
        """Grow, if a list and those it may refer to have no room."""
        kept = self._fresh
        needed = kept + int(self._state[kernels.NEEDED])
        limit = self._source.limits.line_bytes * LINE_COPIES // _ARC_BYTES
        if needed > limit:
            raise BudgetError(
                f"{self._source.name}: the list of node {int(self._state[kernels.NODE])} and those "
                f"it may refer to have {needed:,} successors, the limit is {limit:,}: allow more "
                "--memory"
            )
        before = self._successors[:kept]
        self._allocate(min(limit, 2 * needed))
        self._successors[:kept] = before

    def check_end(self) -> None:
        """Refuse a file that goes on, or has another number of arcs than it declares."""
        rest = self._bits.rest(int(self._state[kernels.POSITION]))
        if any(rest) or len(rest) > 8 + _PADDING_BYTES:
            raise InputError("more bytes than its nodes take", path=self._source.name)
        if self._num_arcs != self._properties.num_arcs:
            raise InputError(
                f"{self._num_arcs} arcs where .properties declares {self._properties.num_arcs}",
                path=self._source.name,
            )

    def _error(self, message: str) -> InputError:
        return InputError(
            f"{message} of node {int(self._state[kernels.NODE])}", path=self._source.name
        )
