"""Breadth-first search from up to 64 sources at once on a device: the host's part.

Every source chooses its own direction, as on the CPU (kernels/many_levels.py). A level is at most five
launches and one small read-back, which says how large the frontier of each source is.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.gpu.device import Device, Memory
from oocbfs.gpu.rows import OnDevice, ResidentRows
from oocbfs.kernels.cuda.source import (
    BLOCK_THREADS,
    CONTROL_WORDS,
    MANY_PLANES,
    MANY_STRUCT,
    MOST_MANY_LEVELS,
    Control,
)
from oocbfs.kernels.many.traverse import RECORD, WIDTH, ManyFound
from oocbfs.kernels.rows import Rows
from oocbfs.plan.device import Window, search_arrays

# A frontier whose rows hold at most an eighth of a byte a vertex is pushed: asking all is not worth it.
_SPARSE_SHIFT = 3


def many_arrays(
    num_vertices: int, tail_bytes: tuple[int, ...], *, with_levels: bool
) -> dict[str, tuple[int, Any]]:
    """Give size and type of each array that a traversal works on; tails as for ``search_arrays``."""
    shared = search_arrays(num_vertices, tail_bytes, with_parents=False)
    return {
        **dict.fromkeys(("seen", "front", "next"), (num_vertices, np.uint64)),
        "planes": (MANY_PLANES * num_vertices if with_levels else 1, np.uint64),
        # Sources, which may be more than vertices, begin in the queue.
        "queue": (max(num_vertices, WIDTH), np.uint32),
        **{name: shared[name] for name in ("pending", "hubs", "hub_segments")},
        "control": (CONTROL_WORDS + 2 * WIDTH, np.uint64),
    }


class GpuMany(OnDevice):
    """Traversals of one graph on one device."""

    def __init__(
        self,
        device: Device,
        rows: Rows,
        in_rows: Rows | None = None,
        *,
        with_levels: bool = True,
        windows: tuple[Window, ...] = ((0, 0),),
        copied: Callable[[int], object] = lambda _: None,
    ) -> None:
        self._device = device
        with ExitStack() as stack:
            self._out = self._in = ResidentRows(device, rows, stack, windows[0], copied=copied)
            if in_rows is not None and in_rows is not rows:
                self._in = ResidentRows(device, in_rows, stack, windows[-1], copied=copied)
            n = self._out.num_vertices
            tail_bytes = (self._out.tail_bytes, self._in.tail_bytes)
            arrays = many_arrays(n, tail_bytes, with_levels=with_levels)
            self._memory: dict[str, Memory] = {
                name: device.allocate(size, dtype) for name, (size, dtype) in arrays.items()
            }
            self._stack = stack.pop_all()
        self._num_vertices = n
        self._with_levels = with_levels
        self._struct = np.zeros((), MANY_STRUCT)
        for name, memory in self._memory.items():
            self._struct[name] = memory.address
        if not with_levels:
            self._struct["planes"] = 0

    def run(
        self,
        sources: NDArray[np.uint32],
        *,
        alpha: float = 30.0,
        max_levels: int = MOST_MANY_LEVELS,
    ) -> ManyFound:
        """Traverse from up to 64 stored vertices; give up a graph that has more levels.

        A source is pulled when the rows of its frontier have more bytes than the unexplored ones / alpha.
        """
        n = self._num_vertices
        self._launch("many_initialise", np.array(n, np.uint64), units=n)
        self._device.upload(self._memory["queue"], sources)
        self._launch("many_sources", np.array(sources.size, np.uint64), units=sources.size)
        control = self._settle(0)
        counts, weights = _sums(control)
        unexplored = np.full(WIDTH, self._out.tail_bytes + 4 * n, np.int64)
        sizes, records = [counts], []
        while counts.any() and len(sizes) <= max_levels and not control[Control.DAMAGED]:
            rising = (counts > 0) & (alpha * weights >= np.maximum(weights, unexplored))
            if weights.sum() <= n >> _SPARSE_SHIFT:
                rising[:] = False
            unexplored -= weights
            push, pull = _mask((counts > 0) & ~rising), _mask(rising)
            records.append((push, pull, int(weights.sum()), 0, 0, 0, 0.0))
            self._expand(push, pull, int(control[Control.QUEUE_END]))
            control = self._settle(len(sizes))
            counts, weights = _sums(control)
            sizes.append(counts)
        planes = None
        if self._with_levels:
            used = (len(sizes)).bit_length()
            planes = self._device.download(self._memory["planes"], used * n).reshape(used, n)
        return ManyFound(
            np.array(sizes)[:, : sources.size],
            planes,
            np.array(records, RECORD),
            bool(control[Control.DAMAGED]),
            bool(counts.any()),
        )

    def _expand(self, pushing: int, pulling: int, num_queued: int) -> None:
        """Find the next level: first what is pushed, then what is pulled."""
        push, pull = np.array(pushing, np.uint64), np.array(pulling, np.uint64)
        self._clear()
        if pushing:
            queued = np.array(num_queued, np.uint64)
            self._launch("many_push", self._out.struct, queued, push, units=num_queued)
            self._launch("many_push_hubs", self._out.struct, push)
        if pulling:
            self._launch("many_heads", self._in.struct, pull, units=self._num_vertices)
            self._launch("many_tails", self._in.struct, pull)

    def _clear(self) -> None:
        control = self._memory["control"]
        self._device.upload(control, np.zeros(control.size, np.uint64))

    def _settle(self, level: int) -> NDArray[np.uint64]:
        """Make what was found the frontier; give the control words and the sums behind them."""
        if level == 0:
            self._clear()
        depth = np.array(level, np.uint32)
        self._launch("many_settle", self._out.struct, depth, units=self._num_vertices)
        return self._device.download(self._memory["control"])

    def _launch(self, kernel: str, *arguments: NDArray[Any], units: int | None = None) -> None:
        """Launch with no more blocks than there is work for."""
        blocks = self._device.num_blocks(kernel, BLOCK_THREADS)
        if units is not None:
            blocks = min(blocks, units // BLOCK_THREADS + 1)
        self._device.launch(kernel, blocks, BLOCK_THREADS, (self._struct, *arguments))


def _sums(control: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Give the vertices and the bytes of the frontier by source."""
    sums = control[CONTROL_WORDS:].astype(np.int64)
    return sums[:WIDTH], sums[WIDTH:]


def _mask(chosen: NDArray[np.bool_]) -> int:
    """Give the sources that are chosen as bits of a word."""
    return sum(1 << int(number) for number in np.flatnonzero(chosen))
