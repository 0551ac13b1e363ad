"""Breadth-first search from up to 64 sources at once on a device: the host's part.

Every source chooses its own direction, as on the CPU (kernels/many/levels.py). A level is at most
five launches, or some more where these are bounded, and one small read-back, which says how large
the frontier of each source is.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import BudgetError
from oocbfs.gpu.device import Argument, Device, u32, u64
from oocbfs.gpu.load import Budget, load_graph, make_device, usable_bytes
from oocbfs.gpu.rows import OnDevice, Placement, struct_of
from oocbfs.kernels.cuda.source import (
    CONTROL_WORDS,
    MANY_KERNELS,
    MANY_PLANES,
    MANY_STRUCT,
    MOST_MANY_LEVELS,
    Control,
    KernelOptions,
)
from oocbfs.kernels.many.search import MANY_RECORD, WIDTH, ManyFound
from oocbfs.kernels.rows import Rows
from oocbfs.memory import available_bytes, format_size
from oocbfs.plan.launches import pieces
from oocbfs.plan.search_arrays import ArrayShape, search_arrays
from oocbfs.plan.shape import shape_of, sides_of
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

# A frontier whose rows hold at most an eighth of a byte a vertex goes top-down: it is not worth to
# ask all vertices.
_SPARSE_SHIFT = 3


def many_arrays(
    num_vertices: int, tail_bytes: tuple[int, ...], *, with_levels: bool
) -> dict[str, ArrayShape]:
    """List the arrays of a search from many sources; tails as for ``search_arrays``."""
    shared = search_arrays(num_vertices, tail_bytes, with_parents=False)
    return {
        "seen": ArrayShape(num_vertices, np.uint64),
        "frontier": ArrayShape(num_vertices, np.uint64),
        "next_frontier": ArrayShape(num_vertices, np.uint64),
        "planes": ArrayShape(MANY_PLANES * num_vertices if with_levels else 1, np.uint64),
        # The queue first holds the sources, which may be more than vertices.
        "queue": ArrayShape(max(num_vertices, WIDTH), np.uint32),
        **{name: shared[name] for name in ("pending", "hubs", "hub_segments")},
        # The control words, then the vertices and the bytes of the frontier by source.
        "control": ArrayShape(CONTROL_WORDS + 2 * WIDTH, np.uint64),
    }


class GpuMany(OnDevice):
    """Searches from many sources of one graph on one device."""

    def __init__(
        self,
        device: Device,
        rows: Rows,
        in_rows: Rows | None = None,
        *,
        with_levels: bool = True,
        **placement: Unpack[Placement],
    ) -> None:
        self._with_levels = with_levels
        super().__init__(device, rows, in_rows, placement)

    def _prepare(self, stack: ExitStack) -> None:
        tail_bytes = (self.out_rows.tail_bytes, self.in_rows.tail_bytes)
        arrays = many_arrays(self.num_vertices, tail_bytes, with_levels=self._with_levels)
        self._memory = self._allocate(arrays)
        self._struct = struct_of(MANY_STRUCT, self._memory)
        if not self._with_levels:
            self._struct["planes"] = 0

    def run(
        self,
        sources: NDArray[np.uint32],
        *,
        alpha: float = 30.0,
        max_levels: int = MOST_MANY_LEVELS,
    ) -> ManyFound:
        """Search from up to 64 stored vertices; give up a graph that has more levels.

        A source goes bottom-up when its frontier's rows have more bytes than those of all vertices
        that it has not seen, divided by alpha.
        """
        n = self.num_vertices
        self._launch("many_initialise", u64(n), num_threads=n)
        self.device.upload(self._memory["queue"], sources)
        self._launch("many_sources", u64(sources.size), num_threads=sources.size)
        control = self._commit(0)
        counts, weights = _sums(control)
        unexplored = np.full(WIDTH, self.out_rows.tail_bytes + 4 * n, np.int64)
        sizes, records = [counts], []
        while counts.any() and len(sizes) <= max_levels and not control[Control.DAMAGED]:
            rising = (counts > 0) & (alpha * weights >= np.maximum(weights, unexplored))
            if weights.sum() <= n >> _SPARSE_SHIFT:
                rising[:] = False
            unexplored -= weights
            top_down, bottom_up = _mask((counts > 0) & ~rising), _mask(rising)
            records.append((top_down, bottom_up, int(weights.sum()), 0, 0, 0, 0.0))
            self._expand(top_down, bottom_up, int(control[Control.QUEUE_END]))
            control = self._commit(len(sizes))
            counts, weights = _sums(control)
            sizes.append(counts)
        planes = None
        if self._with_levels:
            used = len(sizes).bit_length()
            planes = self.device.download(self._memory["planes"], used * n).reshape(used, n)
        return ManyFound(
            sizes=np.array(sizes)[:, : sources.size],
            planes=planes,
            records=np.array(records, MANY_RECORD),
            malformed=bool(control[Control.DAMAGED]),
            too_deep=bool(counts.any()),
        )

    def _expand(self, top_down: int, bottom_up: int, num_queued: int) -> None:
        """Find the next level: first what goes top-down, then what goes bottom-up."""
        top_down_mask, bottom_up_mask = u64(top_down), u64(bottom_up)
        out_rows, in_rows = self.out_rows.struct, self.in_rows.struct
        self._clear()
        if top_down:
            for begin, end in pieces(0, num_queued, self.out_rows.rows_a_launch):
                bounds = u64(begin), u64(end)
                self._launch(
                    "many_top_down", out_rows, *bounds, top_down_mask, num_threads=end - begin
                )
            for begin, end in self.out_rows.hub_pieces():
                self._launch("many_top_down_hubs", out_rows, u64(begin), u64(end), top_down_mask)
        if bottom_up:
            n = self.num_vertices
            self._launch("many_heads", in_rows, bottom_up_mask, num_threads=n)
            for begin, end in pieces(0, n, self.in_rows.rows_a_launch):
                bounds = u64(begin), u64(end)
                self._launch(
                    "many_tails", in_rows, *bounds, bottom_up_mask, num_threads=end - begin
                )

    def _clear(self) -> None:
        control = self._memory["control"]
        self.device.upload(control, np.zeros(control.size, np.uint64))

    def _commit(self, level: int) -> NDArray[np.uint64]:
        """Make what was found the frontier; return the control words and the sums after them."""
        if level == 0:
            self._clear()
        self._launch("many_commit", self.out_rows.struct, u32(level), num_threads=self.num_vertices)
        return self.device.download(self._memory["control"])

    def _launch(self, kernel: str, *arguments: Argument, num_threads: int | None = None) -> None:
        self.device.launch_threads(kernel, (self._struct, *arguments), num_threads)


def _sums(control: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the vertices and the bytes of the frontier by source."""
    sums = control[CONTROL_WORDS:].astype(np.int64)
    return sums[:WIDTH], sums[WIDTH:]


def _mask(chosen: NDArray[np.bool_]) -> int:
    """Return the sources that are chosen as bits of a word."""
    return sum(1 << int(number) for number in np.flatnonzero(chosen))


def open_many(graph: StoredGraph, engine: str, settings: Settings, *, with_levels: bool) -> GpuMany:
    """Bring the graph to a device, for searches from many sources; close what it gives."""
    graph.release_device()
    device = make_device(engine, KernelOptions(with_parents=False), MANY_KERNELS)
    vram_bytes = usable_bytes(device, settings.vram)
    if vram_bytes is not None:
        # The plan counts the arrays of one source.
        sizes = graph.num_vertices, tuple(side.tails.size for side in sides_of(graph))
        one = search_arrays(*sizes, with_parents=False)
        vram_bytes += _num_bytes(one) - _num_bytes(many_arrays(*sizes, with_levels=with_levels))
        if vram_bytes < 0:
            raise BudgetError(
                f"the words of {WIDTH} sources need {format_size(-vram_bytes)} more device memory; "
                "use --engine cpu"
            )
    # These kernels know no tails on disk.
    shape = shape_of(graph, whole=True).of_rows()
    budget = Budget(shape, vram_bytes, available_bytes(), settings.resident_tails)
    return load_graph(GpuMany, device, graph, budget, whole=True, with_levels=with_levels)


def _num_bytes(arrays: dict[str, ArrayShape]) -> int:
    return sum(array.num_bytes for array in arrays.values())
