"""A shard of a graph on one device: its memory, and its kernels."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.container.cut import Cut
from oocbfs.gpu.control import sectors_from
from oocbfs.gpu.device import Device, Memory, u64
from oocbfs.gpu.rows import OnDevice, Placement, struct_of
from oocbfs.gpu.search_kernels import SearchKernels, level_byte
from oocbfs.kernels.cuda.source import BLOCK_CYCLIC_STRUCT, CONTROL_WORDS, Control
from oocbfs.kernels.rows import Rows
from oocbfs.plan.costs import costs_of
from oocbfs.plan.cuts import Cuts
from oocbfs.plan.launches import pieces
from oocbfs.plan.search_arrays import exchange_arrays, shard_arrays


class DeviceShard(OnDevice):
    """The rows of a shard, and all that a search keeps of them, on one device."""

    def __init__(
        self,
        device: Device,
        rows: Rows,
        in_rows: Rows | None = None,
        *,
        cut: Cut,
        number: int,
        with_parents: bool = True,
        **placement: Unpack[Placement],
    ) -> None:
        self.cut, self.number, self.with_parents = cut, number, with_parents
        super().__init__(device, rows, in_rows, placement)

    def _prepare(self, stack: ExitStack) -> None:
        tail_bytes = (self.out_rows.tail_bytes, self.in_rows.tail_bytes)
        arrays = shard_arrays(self.cut, self.number, tail_bytes, with_parents=self.with_parents)
        self.memory = self._allocate(arrays)
        self.messages = self._allocate(exchange_arrays(self.cut))
        # No level is cut in two; the kernel sums up by ranges of the tails all the same.
        cuts = Cuts(self.out_rows.host, self.in_rows.host)
        self.device.upload(self.memory["cuts"], cuts.vertices)
        self.costs = costs_of(self.device.rates, self.out_rows.host)


class ShardKernels(SearchKernels):
    """Launches on one device, by what they do to its shard of a level."""

    def __init__(self, shard: DeviceShard) -> None:
        super().__init__(shard, shard.memory)
        self._shard = shard
        self._messages = shard.messages
        self._cut = struct_of(BLOCK_CYCLIC_STRUCT, shard.messages)
        self._cut["num_words"] = shard.cut.num_words
        self._cut["stride"] = shard.messages["sent"].size // shard.cut.num_shards
        self._cut["devices"], self._cut["device"] = shard.cut.num_shards, shard.number
        self._search["reached"] = shard.messages["reached"].address
        self.control = np.zeros(CONTROL_WORDS, np.uint64)

    def start(self, sources: NDArray[np.uint32]) -> None:
        """Clear what the last search left, and visit the sources of this shard."""
        super().start(sources)
        marked = self._messages["marked"]
        self._device.upload(marked, np.zeros(marked.size, np.uint64))

    def gather_words(self) -> None:
        """Learn what all have visited, from what all sent."""
        words = self._shard.cut.num_words
        self._device.launch_threads("gather_words", (self._cut,), words)

    def mark(self, level: int, frontier: tuple[int, int]) -> None:
        """Mark the neighbours of the own frontier, and sort the marks by their owners."""
        self._set_bitmaps(visited=self._visited, claimed=self._messages["marked"])
        self._expand(level, frontier, int(self.control[Control.HUBS]))
        self._device.launch_threads("scatter_words", (self._cut,), self._shard.cut.num_words)

    def merge(self, level: int) -> None:
        """Visit what somebody marked; find parents for it, if they are wanted."""
        self._set_bitmaps(visited=self._visited, claimed=self._visited)
        num_threads = 32 * (self._num_vertices // 1024 + 1)
        self._launch(
            "merge_words", self._out, self._cut, level_byte(level), num_threads=num_threads
        )
        if self._shard.with_parents:
            first = int(self.control[Control.QUEUE_END])
            for begin, end in pieces(first, self._num_vertices, self._shard.in_rows.rows_a_launch):
                self._launch("find_parents", self._in, u64(begin), u64(end))

    def look(self, level: int, frontier_sectors: NDArray[np.int64]) -> None:
        """Run the heads pass."""
        self.ask_heads(
            level,
            pending_base=int(self.control[Control.PENDING]),
            sectors_base=sectors_from(self.control, Control.FOUND_SECTORS) - frontier_sectors,
            costs=self._shard.costs,
            skip_cost=0,
            search_bytes=self._shard.out_rows.tail_bytes,
        )

    @property
    def visited(self) -> Memory:
        """The bitmap of the own vertices, by words of 64."""
        return self._visited.seen_as(np.uint64)
