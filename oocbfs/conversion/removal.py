"""Edges and vertices that are taken out of a graph, as a filter of the merge of its edges.

Vertices follow from the edges that remain, as in every conversion: one that loses its last edge
goes with it. One that never had an edge, because an input named it without any, stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.edge_log import EdgeLog
from oocbfs.conversion.ids import IdMap
from oocbfs.conversion.key_sorter import Keys
from oocbfs.conversion.names.numbering import Numbering
from oocbfs.conversion.resources import Resources
from oocbfs.conversion.spill import BlockLog
from oocbfs.errors import InputError
from oocbfs.formats.edges import Edges, EdgeStream, NamedEdgeStream
from oocbfs.formats.io.closing import Closing
from oocbfs.formats.names import PackedNames, pack
from oocbfs.kernels.convert import gaps
from oocbfs.kernels.convert import ids as id_kernels
from oocbfs.kernels.names.words import MAX_NAME_BYTES
from oocbfs.kernels.threads import renewed_after_fork
from oocbfs.options import is_whole

# For each vertex: whether it is removed, has lost an edge, stays; its number after that; its id.
VERTEX_BYTES = 1 + 1 + 1 + 4 + 8


@dataclass
class Removed:
    """What was taken out, and what of the wish was not there."""

    edges: int = 0
    vertices: int = 0
    missing_edges: int = 0
    missing_vertices: int = 0


class Removal(Closing):
    """First ``read`` edges and vertices, then ``prepare``; ``keep`` is the filter."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        held = resources.plan.held_bytes
        self._log = EdgeLog(resources.folder, held // 16)
        self._blocks = BlockLog(resources.folder, held // 16)
        self._sizes: list[int] = []
        self._firsts: list[int] = []
        self._ids = np.empty(0, np.uint64)
        self._lock = renewed_after_fork(Lock())
        self.done = Removed()

    def close(self) -> None:
        """Release memory and disk space."""
        self._log.close()
        self._blocks.close()

    @property
    def spilled_bytes(self) -> int:
        """Bytes that went to disk."""
        return self._log.spilled_bytes + self._blocks.spilled_bytes

    # 1. Read

    def read(self, stream: EdgeStream) -> None:
        """Take all edges of a stream."""
        with self._resources.phases("read", stream.total, stream.unit) as bar:
            for edges in stream.batches():
                self._log.append(edges)
                self._resources.plan.watch.is_over()
                bar.update(stream.done - bar.n)

    def read_names(self, stream: NamedEdgeStream, names: Numbering) -> None:
        """Take all edges of a stream of names; the numbers of these are the vertices."""
        with self._resources.phases("read", stream.total, stream.unit) as bar:
            for edges in stream.named_batches():
                found = names.find(PackedNames(edges.text, edges.starts, edges.lengths))
                sources, targets = found[0::2], found[1::2]
                known = (sources >= 0) & (targets >= 0)
                self.done.missing_edges += int(known.size - known.sum())
                self._log.append(
                    Edges(*(ends[known].view(np.uint64) for ends in (sources, targets)))
                )
                bar.update(stream.done - bar.n)

    def take_ids(self, vertices: Sequence[Any]) -> None:
        """Take vertices by their ids."""
        if not all(map(is_whole, vertices)):
            raise InputError("vertices to remove are ids, which are whole numbers")
        known = [vertex for vertex in vertices if 0 <= vertex < 2**64]
        self._ids = np.unique(np.array(known, np.uint64))
        self.done.missing_vertices = len(vertices) - len(known)

    def take_names(self, vertices: Sequence[Any], names: Numbering) -> None:
        """Take vertices by their names."""
        if not all(isinstance(name, str) for name in vertices):
            raise InputError("vertices to remove are names, which are text")
        encoded = [name.encode("utf-8", "surrogatepass") for name in vertices]
        # What is too long is the name of no vertex, and nor is "".
        found = names.find(pack([name if len(name) <= MAX_NAME_BYTES else b"" for name in encoded]))
        self._ids = np.unique(found[found >= 0]).view(np.uint64)
        self.done.missing_vertices = int((found < 0).sum())

    # 2. Prepare

    def prepare(self, ids: IdMap, sample: Keys, column_bits: int, *, directed: bool) -> None:
        """Sort the keys of all edges; ``sample`` is one of the keys that they are taken from."""
        self.dead = np.zeros(ids.num_vertices, np.bool_)
        self.touched = np.zeros(ids.num_vertices, np.bool_)
        vertices, known = ids.find(self._ids)
        self.dead[vertices[known].astype(np.int64)] = True
        self.done.vertices = int(known.sum())
        self.done.missing_vertices += int(known.size - known.sum())
        self._has_dead = bool(known.any())
        self._bits = np.uint64(column_bits)
        self._mask = np.uint64((1 << column_bits) - 1)
        self._log.finish()
        budget_bytes = self._resources.plan.held_bytes // 8
        sorter = self._resources.key_sorter(sample, self._log.num_edges, budget_bytes)
        with closing(sorter):
            for index in range(len(self._log)):
                edges = self._log.take(index)
                sources, known = ids.find(edges.sources)
                targets, also = ids.find(edges.targets)
                known &= also
                keys = np.empty(edges.sources.size, np.uint64)
                kept = id_kernels.edge_keys(
                    keys, sources[known], targets[known], column_bits, directed
                )
                # No graph has loops.
                self.done.missing_edges += keys.size - kept
                sorter.add(keys[:kept])
            for keys in sorter.drain(np.copy):
                if keys.size:
                    self._blocks.append(gaps.packed(keys))
                    self._sizes.append(keys.size)
                    self._firsts.append(int(keys[0]))
        self._starts = np.array(self._firsts, np.uint64)
        self.done.missing_edges += sum(self._sizes)  # less those that are found

    # 3. Filter

    def keep(self, keys: Keys) -> Keys:
        """Return those of some sorted distinct keys that stay; counts the others."""
        if keys.size == 0:
            return keys
        gone = np.zeros(keys.size, np.bool_)
        first = max(0, int(np.searchsorted(self._starts, keys[0], "right")) - 1)
        stop = int(np.searchsorted(self._starts, keys[-1], "right"))
        for block in range(first, stop):
            wanted = gaps.unpacked(self._blocks.take(block, keep=True), self._sizes[block])
            low, high = np.searchsorted(wanted, keys[0]), np.searchsorted(wanted, keys[-1], "right")
            wanted = wanted[low:high]
            places = np.searchsorted(keys, wanted)
            gone[places[keys[places] == wanted]] = True
        num_found = int(gone.sum())
        if self._has_dead:
            gone |= self.dead[self._ends(keys, 0)]
            gone |= self.dead[self._ends(keys, 1)]
        num_gone = int(gone.sum())
        if not num_gone:
            return keys
        lost = keys[gone]
        with self._lock:
            self.done.missing_edges -= num_found
            self.done.edges += num_gone
            for side in (0, 1):
                self.touched[self._ends(lost, side)] = True
        return keys[~gone]

    def _ends(self, keys: Keys, side: int) -> NDArray[np.int64]:
        return (keys & self._mask if side else keys >> self._bits).view(np.int64)

    def remaining(self, degrees: NDArray[np.uint32], *, declared: bool) -> NDArray[np.bool_]:
        """Return for each vertex whether it stays, by its degree after all keys were filtered.

        Vertices that were ``declared`` do not follow from edges.
        """
        return ~self.dead if declared else (degrees > 0) | ~(self.touched | self.dead)
