"""The rows of a graph on a device."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from functools import cached_property
from typing import Any, Self, TypedDict

import numpy as np

from oocbfs.gpu.device import Argument, Device, Memory
from oocbfs.kernels.cuda.source import ROWS_STRUCT
from oocbfs.kernels.rows import Rows
from oocbfs.plan.launches import most_segments, pieces, rows_a_launch, segments_a_launch
from oocbfs.plan.ranges import ByteRange, align_range, slow_range
from oocbfs.plan.search_arrays import ArrayShape
from oocbfs.plan.shape import tails_of


class Placement(TypedDict, total=False):
    """Where the tails of a graph live, first those of out-neighbours, last those of in-neighbours.

    Without ranges, the host holds all tails. ``copied`` is called with the bytes of each piece
    copied.
    """

    device_ranges: tuple[ByteRange, ...]
    host_ranges: tuple[ByteRange | None, ...]
    copied: Callable[[int], object]


def struct_of(dtype: np.dtype[Any], memories: dict[str, Memory]) -> Argument:
    """Return an argument of kernels whose fields are addresses of device memory; others are 0."""
    struct = np.zeros((), dtype)
    for name, memory in memories.items():
        struct[name] = memory.address
    return struct


def _let_go(memories: Iterable[Memory]) -> None:
    """Let device memory be freed, also where something still refers to what showed it."""
    for memory in memories:
        memory.owner = None


class ResidentRows:
    """Rows as kernels take them: heads, starts and the device range of the tails are copied.

    The other tails of the host range are mapped. Tails outside of it are neither.
    """

    def __init__(
        self,
        device: Device,
        rows: Rows,
        stack: ExitStack,
        device_range: ByteRange,
        host_range: ByteRange | None,
        copied: Callable[[int], object],
    ) -> None:
        self.host = rows
        self.num_vertices = rows.heads.size
        self.tail_bytes = rows.tails.size
        self.host_range = (0, self.tail_bytes) if host_range is None else host_range
        begin, end = align_range(device_range, rows.tails.size)
        memories = {
            name: device.copy_in(array, copied=copied)
            for name, array in (
                ("heads", rows.heads),
                ("starts", rows.starts),
                ("bases", rows.bases),
            )
        }
        if begin < end:
            memories["fast"] = device.copy_in(rows.tails[begin:end], end - begin, copied)
        stack.callback(_let_go, memories.values())
        self.struct = struct_of(ROWS_STRUCT, memories)
        first, last = slow_range((begin, end), self.host_range, rows.tails.size)
        if first < last:
            mapped = stack.enter_context(device.map_host(rows.tails[first:last]))
            self.struct["slow"] = (mapped - first) % (1 << 64)
        self.struct["fast_begin"], self.struct["fast_end"] = begin, end
        self.struct["readable_begin"], self.struct["readable_end"] = self.host_range
        self.struct["num_vertices"], self.struct["shift"] = rows.heads.size, rows.shift
        self.struct["num_ids"] = rows.num_ids
        self._launch_bytes = device.launch_bytes

    @cached_property
    def rows_a_launch(self) -> int | None:
        """How many rows one launch reads at most; None is all."""
        most = self._launch_bytes
        return None if most is None else rows_a_launch(tails_of(self.host), most)

    def hub_pieces(self) -> Iterator[tuple[int, int]]:
        """Cut the segments that hubs may have into what one launch reads."""
        most = self._launch_bytes
        segments = most_segments(self.tail_bytes)
        return pieces(0, segments, None if most is None else segments_a_launch(most))


class OnDevice:
    """Work on a graph that a device holds; a context manager, because tails are mapped.

    ``in_rows`` are ``out_rows`` unless the graph is directed. ``note`` says what is not as it was
    planned.
    """

    note: str | None = None

    def __init__(
        self, device: Device, rows: Rows, in_rows: Rows | None, placement: Placement
    ) -> None:
        device_ranges = placement.get("device_ranges", ((0, 0),))
        host_ranges = placement.get("host_ranges", (None,))
        copied = placement.get("copied", lambda _: None)
        self.device = device
        self._memories: list[Memory] = []
        with ExitStack() as stack:
            stack.callback(device.trim)
            stack.callback(_let_go, self._memories)
            self.out_rows = self.in_rows = ResidentRows(
                device, rows, stack, device_ranges[0], host_ranges[0], copied
            )
            if in_rows is not None and in_rows is not rows:
                self.in_rows = ResidentRows(
                    device, in_rows, stack, device_ranges[-1], host_ranges[-1], copied
                )
            self.num_vertices = self.out_rows.num_vertices
            self._prepare(stack)
            self._stack = stack.pop_all()

    def _allocate(self, arrays: dict[str, ArrayShape]) -> dict[str, Memory]:
        made = {name: self.device.allocate(*array, name) for name, array in arrays.items()}
        self._memories += made.values()
        return made

    def _prepare(self, stack: ExitStack) -> None:
        """Allocate what the work needs besides; the stack gives it back, also if this fails."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()
