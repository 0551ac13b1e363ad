"""Shards in this process: nothing travels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.exchange import Star, Step, Traffic
from oocbfs.cluster.shard import Bitmap, Down, Forest, Shard, ShardRef, Up, VertexArray
from oocbfs.cluster.tasks import open_shard
from oocbfs.formats.container.cut import Cut


class Here(Star):
    """All shards in this process; nothing travels."""

    name = "here"

    def __init__(self, refs: Sequence[ShardRef], degrees: NDArray[np.uint32]) -> None:
        super().__init__(Cut(refs[0].num_vertices, len(refs)), degrees)
        self._open = ExitStack()
        self._shards: list[Shard] = []
        try:
            for ref in refs:
                shard = open_shard(replace(ref, shards=len(refs)))
                self._open.callback(shard.close)
                self._shards.append(shard)
        except BaseException:
            self.close()
            raise

    def ask_up(self, step: Step, traffic: Traffic) -> Iterable[tuple[int, Up]]:
        """Ask one shard after the other."""
        for part, shard in enumerate(self._shards):
            visited = self.visited_of(step, part)
            yield part, shard.up(step.frontier, visited, parents=step.parents)

    def ask_down(self, step: Step, traffic: Traffic) -> Iterable[tuple[int, Down]]:
        """Ask one shard after the other."""
        for part, own in self.frontier_of(step):
            yield part, self._shards[part].down(own, parents=step.parents)

    def heads(self) -> Iterable[tuple[int, VertexArray]]:
        """Ask one shard after the other."""
        for part, shard in enumerate(self._shards):
            for heads in shard.heads():
                yield part, heads

    def forests(self, giant: Bitmap) -> Iterable[Forest]:
        """Ask one shard after the other."""
        for shard in self._shards:
            yield shard.forest(giant)

    def close(self) -> None:
        """Close the shards."""
        self._open.close()
