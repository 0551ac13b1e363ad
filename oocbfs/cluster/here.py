"""Shards in this process: nothing travels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.driver import Driven
from oocbfs.cluster.exchange import Found, Result, ShardQuery, Traffic
from oocbfs.cluster.holder import Holder
from oocbfs.cluster.results import Results
from oocbfs.cluster.shard import Bitmap, Forest, Shard, ShardRef, VertexArray
from oocbfs.cluster.tasks import open_shard
from oocbfs.formats.container.cut import Cut
from oocbfs.kernels.shards.messages import count_bits
from oocbfs.kernels.shards.state import FOUND, FRONTIER_EDGES

# A frontier with fewer edges is expanded by one thread: others would take longer to come.
_FEW_EDGES = 4096


class Here(Driven):
    """All shards in this process; nothing travels."""

    name = "here"

    def __init__(self, refs: Sequence[ShardRef], degrees: NDArray[np.uint32]) -> None:
        super().__init__(Cut(refs[0].num_vertices, len(refs)))
        self._open = ExitStack()
        self._shards: list[Shard] = []
        try:
            for ref in refs:
                shard = open_shard(replace(ref, held=len(refs)))
                self._open.callback(shard.close)
                self._shards.append(shard)
            self._holder = Holder(self.cut, self._shards, refs[0].threads)
        except BaseException:
            self.close()
            raise

    def begin(self, query: ShardQuery, results: Results) -> None:
        """Begin a search."""
        self._edges = query.source_edges
        self._holder.begin(query, results)

    def lead(self, levels: Callable[[], Result]) -> Result:
        """Call what takes steps, while all threads wait for them."""
        return self._holder.lead(levels)

    def bottom_up(self, level: int) -> Found:
        """Let all vertices that are not visited look for the frontier."""
        traffic = self._frontier()
        self._holder.bottom_up(level)
        return self._found(traffic)

    def top_down(self, level: int) -> Found:
        """Let the frontier look for all vertices that are not visited."""
        traffic = self._frontier()
        if self._edges <= _FEW_EDGES and self._holder.is_together:
            self._holder.small(level)
        else:
            self._holder.top_down(level)
            self._holder.take(level)
        return self._found(traffic)

    def _frontier(self) -> Traffic:
        """Count what would be sent: for those who plan."""
        return Traffic(vertices=int(count_bits(self._holder.frontier)))

    def _found(self, traffic: Traffic) -> Found:
        counts = self._holder.counts
        size, edges = int(counts[:, FOUND].sum()), int(counts[:, FRONTIER_EDGES].sum())
        self._edges = max(size, edges)
        return Found(size, edges, self._holder.work(), traffic)

    def heads(self) -> Iterable[tuple[int, VertexArray]]:
        """Ask one shard after the other."""
        for number, shard in enumerate(self._shards):
            for heads in shard.heads():
                yield number, heads

    def forests(self, largest: Bitmap) -> Iterable[Forest]:
        """Ask one shard after the other."""
        for shard in self._shards:
            yield shard.forest(largest)

    def close(self) -> None:
        """Close the shards."""
        self._open.close()
