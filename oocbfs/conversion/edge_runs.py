"""Edges as they were read, in input ids: in memory while they fit, else as sorted runs on disk.

Vertices are numbered in the order of their ids, so that what is sorted by ids is sorted by vertices
as well: a run is written before any vertex has its number, and never sorted again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from oocbfs.conversion.edge_log import EdgeLog
from oocbfs.conversion.ids import IdMap
from oocbfs.conversion.key_sorter import Keys
from oocbfs.conversion.packed import PackedBlocks
from oocbfs.conversion.resources import Resources
from oocbfs.errors import InputError
from oocbfs.formats.edges import Edges, Ids
from oocbfs.formats.io.ordered import ordered_map
from oocbfs.kernels.convert import gaps
from oocbfs.kernels.convert import ids as id_kernels

# Edges of a sample that tells where to cut buckets.
SAMPLE_EDGES = 1 << 16
# Keys that are read to get any of them: a small part of what a run has of a bucket.
_BLOCK_KEYS = 1 << 12
_BATCH_BLOCKS = 64
# Two ids below this make one key.
_MOST_IDS = 1 << 32


class EdgeRuns:
    """All edges that were read: some in batches, in memory, others in sorted runs.

    ``direction`` tells whether the graph is directed: None if that is not known yet. Edges with an
    id of more than 32 bits wait as they are.
    """

    def __init__(
        self, resources: Resources, budget_bytes: int, direction: Callable[[], bool | None]
    ) -> None:
        self._resources, self._budget_bytes = resources, budget_bytes
        self._direction = direction
        self._waiting = self._new_log()
        self._wide = EdgeLog(resources.folder, budget_bytes // 2)
        self._packed = PackedBlocks(resources.folder)
        self._runs: list[IdRun] = []
        # Of runs that were sorted in vain, the first blocks of batches.
        self._unsorted: list[tuple[IdRun, int]] = []
        self._largest = 0
        self._in_runs = 0
        self.loops = 0

    def _new_log(self) -> EdgeLog:
        """Return a log that never spills."""
        return EdgeLog(self._resources.folder, 2 * self._budget_bytes + (1 << 30))

    @property
    def num_edges(self) -> int:
        """Edges that were read, loops and all."""
        return self._waiting.num_edges + self._wide.num_edges + self._in_runs

    @property
    def spilled_bytes(self) -> int:
        """Bytes that went to disk."""
        return self._wide.spilled_bytes + self._packed.num_bytes

    def append(self, edges: Edges) -> None:
        """Add edges."""
        largest = max(int(ids.max(initial=0)) for ids in (edges.sources, edges.targets))
        if largest >= _MOST_IDS:
            self._wide.append(edges)
            return
        self._largest = max(self._largest, largest)
        self._waiting.append(edges)
        is_over = self._resources.plan.watch.is_over()
        # Short runs are slow to read, so there are none, even if little memory is left.
        share = 2 if is_over else 8
        share = share // 2 if self._wide.num_edges else share
        if 8 * self._waiting.num_edges > self._budget_bytes * share // 8:
            self._write_run()

    def finish(self) -> None:
        """Close the last batches, so that all can be taken."""
        self._waiting.finish()
        self._wide.finish()

    def _write_run(self) -> None:
        """Sort what waits in memory, and write it."""
        log, self._waiting = self._waiting, self._new_log()
        log.finish()
        directed = self._direction()
        run = IdRun(self._packed, max(1, self._largest.bit_length()), directed)
        sample, _ = run.keys_of(log.sample(SAMPLE_EDGES))
        threads = self._resources.plan.threads
        sorter = self._resources.key_sorter(sample, log.num_edges, 8 * self._budget_bytes)

        def scatter(index: int) -> int:
            keys, loops = run.keys_of(log.take(index))
            sorter.add(keys)
            return loops

        def pack(keys: Keys) -> tuple[Keys, list[tuple[Keys, int]]]:
            parts = [keys[at : at + _BLOCK_KEYS] for at in range(0, keys.size, _BLOCK_KEYS)]
            return keys[::_BLOCK_KEYS].copy(), [(gaps.packed(part), part.size) for part in parts]

        self.loops += sum(ordered_map(scatter, range(len(log)), threads))
        for firsts, blocks in sorter.drain(pack):
            for packed, size in blocks:
                self._packed.append(packed, size)
            run.add(firsts)
        run.finish()
        self._in_runs += log.num_edges
        self._runs.append(run)

    # What was read

    def __len__(self) -> int:
        return len(self._waiting) + len(self._wide) + len(self._unsorted)

    def take(self, index: int) -> Edges:
        """Read a batch that is in no sorted run, and release its memory."""
        for log in (self._waiting, self._wide):
            if index < len(log):
                return log.take(index)
            index -= len(log)
        run, first = self._unsorted[index]
        return run.edges(first, first + _BATCH_BLOCKS, loops=False)

    def sample(self, num_edges: int) -> Edges:
        """Read about so many edges, spread evenly."""
        total = max(1, self.num_edges)
        parts = [
            log.sample(num_edges * log.num_edges // total) for log in (self._waiting, self._wide)
        ]
        parts += [run.sample(num_edges * run.num_keys // total) for run in self._runs]
        return Edges(
            np.concatenate([part.sources for part in parts]),
            np.concatenate([part.targets for part in parts]),
        )

    def ids(self) -> Iterator[Ids]:
        """Yield the ids of all edges, piece by piece."""
        for log in (self._waiting, self._wide):
            for index in range(len(log)):
                edges = log.take(index, keep=True)
                yield edges.sources
                yield edges.targets
        for run in self._runs:
            for first in range(0, run.num_blocks, _BATCH_BLOCKS):
                edges = run.edges(first, first + _BATCH_BLOCKS)
                yield edges.sources
                yield edges.targets

    def sorted_runs(self, ids: IdMap, *, directed: bool) -> list[IdRun]:
        """Return the runs, now of vertices; those in another direction become batches again."""
        found = []
        for run in self._runs:
            run.place(ids)
            if bool(directed) == (run.directed is not False):
                found.append(run)
            elif directed:
                raise InputError("says that it is directed after its first edges: add --directed")
            else:
                firsts = range(0, run.num_blocks, _BATCH_BLOCKS)
                self._unsorted += [(run, first) for first in firsts]
        return found

    def close(self) -> None:
        """Release memory and disk space."""
        self._waiting.close()
        self._wide.close()
        self._packed.close()
        self._runs.clear()


class IdRun:
    """Edges without loops and duplicates, sorted by ids, as keys of the vertices of a conversion.

    If it is undirected, the smaller id comes first; None leaves ends as they were read.
    """

    is_disjoint = False

    def __init__(self, packed: PackedBlocks, id_bits: int, directed: bool | None) -> None:
        self._packed, self._first_block = packed, len(packed)
        self._id_bits = np.uint64(id_bits)
        self.directed = directed
        self._has_loops = False
        self._first_keys: list[Keys] = []
        self._firsts = np.empty(0, np.uint64)
        self._ids: IdMap | None = None
        self.num_keys = 0

    def keys_of(self, edges: Edges) -> tuple[Keys, int]:
        """Pack edges into keys of two ids; also counts the loops, which are kept for their ids."""
        keys = np.empty(edges.sources.size, np.uint64)
        kept = id_kernels.edge_keys(
            keys, edges.sources, edges.targets, int(self._id_bits), self.directed is not False
        )
        if kept < keys.size:
            looped = edges.sources[edges.sources == edges.targets]
            keys[kept:] = looped << self._id_bits | looped
            self._has_loops = True
        return keys, keys.size - kept

    def add(self, firsts: Keys) -> None:
        """Take the first keys of blocks that were written."""
        self._first_keys.append(firsts)

    def finish(self) -> None:
        """Note that all blocks are there."""
        self._firsts = np.concatenate([np.empty(0, np.uint64), *self._first_keys])
        self._first_keys = []
        self._sizes = np.array(
            [self._packed.size(self._first_block + at) for at in range(self._firsts.size)]
        )
        self.num_keys = int(self._sizes.sum())

    @property
    def num_blocks(self) -> int:
        """Blocks of keys."""
        return self._firsts.size

    def edges(self, first: int, stop: int, *, loops: bool = True) -> Edges:
        """Read the edges of some blocks, in ids."""
        blocks = range(first, min(stop, self.num_blocks))
        keys = np.concatenate([self._packed.block(self._first_block + block) for block in blocks])
        return self._ends(keys, loops=loops)

    def _ends(self, keys: Keys, *, loops: bool) -> Edges:
        mask = (np.uint64(1) << self._id_bits) - np.uint64(1)
        edges = Edges(keys >> self._id_bits, keys & mask)
        if loops or not self._has_loops:
            return edges
        kept = edges.sources != edges.targets
        return Edges(edges.sources[kept], edges.targets[kept])

    def sample(self, num_edges: int) -> Edges:
        """Return about so many edges, spread evenly, in ids."""
        stride = max(1, self._firsts.size // max(1, num_edges))
        return self._ends(self._firsts[::stride], loops=True)

    # As a sorted run of keys of two vertices

    def place(self, ids: IdMap) -> None:
        """Learn the vertices that ids are."""
        self._ids = ids
        self._first_rows = ids.to_vertices(self._firsts >> self._id_bits)

    def _vertex_keys(self, keys: Keys, column_bits: int) -> Keys:
        assert self._ids is not None
        edges = self._ends(keys, loops=False)
        rows = self._ids.to_vertices(edges.sources) << np.uint64(column_bits)
        return rows | self._ids.to_vertices(edges.targets)

    def _range(self, first: int, stop: int) -> tuple[int, int]:
        """Return the range of blocks that may have keys of the rows first … stop-1."""
        ends = np.searchsorted(self._first_rows, np.array([first, stop], np.uint64))
        return max(0, int(ends[0]) - 1), int(ends[1])

    def count(self, first: int, stop: int) -> int:
        """Count about the keys of the rows first … stop-1."""
        begin, end = self._range(first, stop)
        return int(self._sizes[begin:end].sum())

    def keys(self, first: int, stop: int, column_bits: int, piece_keys: int) -> Iterator[Keys]:
        """Yield the keys of the rows first … stop-1, block by block."""
        begin, end = self._range(first, stop)
        ends = [np.uint64(min(row << column_bits, 2**64 - 1)) for row in (first, stop)]
        for block in range(begin, end):
            keys = self._vertex_keys(self._packed.block(self._first_block + block), column_bits)
            if block == begin or block == end - 1:
                low, high = np.searchsorted(keys, np.array(ends))
                keys = keys[low:high]
            yield keys
