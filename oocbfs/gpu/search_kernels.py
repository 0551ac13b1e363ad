"""The kernels of one search, each with its arguments and with the two bitmaps that it uses."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oocbfs.gpu.device import Argument, Memory, u32, u64
from oocbfs.gpu.rows import OnDevice, struct_of
from oocbfs.kernels.cuda.source import (
    CONTROL_WORDS,
    LEVEL_PERIOD,
    MAX_SMALL_LEVELS,
    SEARCH_STRUCT,
    SECTORS_STRUCT,
    SMALL_BLOCK_THREADS,
    Control,
)
from oocbfs.plan.costs import Costs
from oocbfs.plan.launches import WATCHED_SMALL_LEVELS, pieces
from oocbfs.plan.limits import StepLimits

# Warps that share a frontier, or a bitmap, before one of them takes 32 vertices, or words; nearly
# every GPU holds more.
_SHARING_WARPS = 512


def level_byte(level: int) -> Argument:
    """Return a level as kernels know it."""
    return u32(level % LEVEL_PERIOD)


class SearchKernels:
    """Launches, by what they do to a level.

    Two bitmaps take turns. A level that begins with a heads pass reads one, and writes what is
    visited afterwards to the other; ``swap_bitmaps`` says that it did. Top-down levels need only
    one of them.
    """

    def __init__(self, graph: OnDevice, memory: dict[str, Memory]) -> None:
        self._graph = graph
        self._device = graph.device
        self._out, self._in = graph.out_rows.struct, graph.in_rows.struct
        self._num_vertices = graph.num_vertices
        self._queue = memory["queue"]
        control = memory["control"]
        self._hubs = control.slice(Control.HUBS, Control.HUBS + 1)
        self._search = struct_of(SEARCH_STRUCT, memory)
        self._level_ends = control.slice(CONTROL_WORDS, control.size).seen_as(np.uint32)
        self._search["level_ends"] = self._level_ends.address
        self._search["cache_sectors"] = memory["cache_tags"].size
        self._visited = memory["visited"]
        self._spare = memory["claimed"]

    def start(self, sources: NDArray[np.uint32]) -> None:
        """Clear what the last search left, and visit the sources."""
        self._launch("initialise", u64(self._num_vertices), num_threads=self._num_vertices)
        self._device.upload(self._queue, sources)
        self._launch("visit_sources", self._out, u64(sources.size), num_threads=sources.size)

    def swap_bitmaps(self) -> None:
        """Take what the heads pass wrote for what is visited."""
        self._visited, self._spare = self._spare, self._visited

    def ask_heads(
        self,
        level: int,
        *,
        pending_base: int,
        sectors_base: NDArray[np.int64],
        costs: Costs,
        skip_cost: int,
        search_bytes: int,
    ) -> None:
        """Run the heads pass, which skips itself if expanding the frontier costs less than that."""
        self._set_bitmaps(visited=self._visited, claimed=self._spare)
        num_words = self._num_vertices // 32 + 1
        each = min(32, max(4, num_words // _SHARING_WARPS))
        self._launch(
            "bottom_up_heads",
            self._in,
            self._out,
            level_byte(level),
            u32(each),
            u64(pending_base),
            _totals(sectors_base),
            u64(costs.expand_slow),
            u64(costs.expand_fast),
            u64(skip_cost),
            u64(search_bytes),
            num_threads=32 * (num_words // each + 1),
        )

    def mark_blocks(self, level: int) -> None:
        """Find out which blocks the level needs from disk."""
        num_threads = 32 * (self._num_vertices // 32 + 1)
        self._launch("mark_blocks", self._out, self._in, level_byte(level), num_threads=num_threads)

    def search(self, level: int, num_pending: int) -> None:
        """Let all pending vertices search, after a heads pass."""
        self._set_bitmaps(visited=self._spare, claimed=self._visited)
        for begin, end in pieces(0, num_pending, self._graph.in_rows.rows_a_launch):
            self._launch(
                "bottom_up_tails",
                self._in,
                self._out,
                u64(begin),
                u64(end),
                level_byte(level),
                num_threads=32 * ((end - begin) // 32 + 1),
            )

    def search_piece(
        self, level: int, rows: Argument, first_vertex: int, num_vertices: int
    ) -> None:
        """Search a piece of the tails that came from disk, after ``search``."""
        self._launch(
            "bottom_up_staged",
            rows,
            self._out,
            u64(first_vertex),
            u64(num_vertices),
            level_byte(level),
            num_threads=32 * (num_vertices // 32 + 1),
        )

    def split(
        self, level: int, num_pending: int, frontier: tuple[int, int], cut: int, hubs_base: int
    ) -> None:
        """Let pending vertices before a cut search, and expand the frontier to the others."""
        self._search["first_target"] = cut
        self.search(level, num_pending)
        self._expand(level, frontier, hubs_base)
        self._search["first_target"] = 0

    def expand(self, level: int, frontier: tuple[int, int], hubs_base: int) -> None:
        """Expand the frontier, a part of the queue."""
        self._set_bitmaps(visited=self._visited, claimed=self._visited)
        self._expand(level, frontier, hubs_base)

    def _expand(self, level: int, frontier: tuple[int, int], hubs_base: int) -> None:
        for begin, end in pieces(*frontier, self._graph.out_rows.rows_a_launch):
            # What is small by its vertices is large for its rows: many warps share them.
            each = min(32, max(1, (end - begin) // _SHARING_WARPS))
            self._launch(
                "top_down",
                self._out,
                u64(begin),
                u64(end),
                u32(each),
                level_byte(level),
                num_threads=32 * ((end - begin) // each + 1),
            )
        self._expand_hubs(self._out, level, hubs_base)

    def _expand_hubs(self, rows: Argument, level: int, hubs_base: int) -> None:
        for begin, end in self._graph.out_rows.hub_pieces():
            bounds = u64(begin), u64(end)
            self._launch("top_down_hubs", rows, u64(hubs_base), *bounds, level_byte(level))

    def expand_piece(
        self, level: int, rows: Argument, first_vertex: int, num_vertices: int
    ) -> None:
        """Expand a piece of the tails that came from disk, after ``expand``, with its own hubs."""
        self._device.upload(self._hubs, np.zeros(1, np.uint64))
        self._launch(
            "top_down_staged",
            rows,
            u64(first_vertex),
            u64(num_vertices),
            level_byte(level),
            num_threads=32 * (num_vertices // 32 + 1),
        )
        self._expand_hubs(rows, level, hubs_base=0)

    def run_small_levels(
        self,
        level: int,
        *,
        begin: int,
        max_levels: int,
        limits: StepLimits,
    ) -> int:
        """Expand levels in one block for as long as they stay small; return how many at most."""
        self._set_bitmaps(visited=self._visited, claimed=self._visited)
        if self._device.launch_bytes is not None:
            max_levels = min(max_levels, WATCHED_SMALL_LEVELS)
        arguments = (
            self._out,
            u64(begin),
            level_byte(level),
            u32(max_levels),
            u64(limits.small_vertices),
            u64(limits.small_bytes),
        )
        self._device.launch("small_levels", 1, SMALL_BLOCK_THREADS, (self._search, *arguments))
        return max_levels

    def forget(self, begin: int, end: int) -> None:
        """Forget what was found from a place in the queue on."""
        self._set_bitmaps(visited=self._visited, claimed=self._visited)
        self._launch("forget", u64(begin), num_threads=end - begin)

    def find_deep_levels(self, ends: list[int]) -> None:
        """Find the levels that bytes do not tell, from where each ends in the queue."""
        begin = 0
        for first in range(0, len(ends), MAX_SMALL_LEVELS):
            some = np.array(ends[first : first + MAX_SMALL_LEVELS], np.uint32)
            self._device.upload(self._level_ends, some)
            end = int(some[-1])
            arguments = (u64(begin), u32(first), u32(some.size))
            self._launch("deep_levels", *arguments, num_threads=end - begin)
            begin = end

    @property
    def struct(self) -> Argument:
        """The state of the search, as kernels take it."""
        return self._search

    @property
    def visited_words(self) -> NDArray[np.uint32]:
        """The bitmap of what was visited; bits after the last vertex are set."""
        words: NDArray[np.uint32] = self._device.download(self._visited)
        return words

    def _set_bitmaps(self, *, visited: Memory, claimed: Memory) -> None:
        self._search["visited"], self._search["claimed"] = visited.address, claimed.address

    def _launch(self, kernel: str, *arguments: Argument, num_threads: int | None = None) -> None:
        self._device.launch_threads(kernel, (self._search, *arguments), num_threads)


def _totals(sectors: NDArray[np.int64]) -> Argument:
    return sectors.astype(np.uint64).view(SECTORS_STRUCT).reshape(())
