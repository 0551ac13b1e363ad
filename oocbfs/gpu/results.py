"""From a device to the host: what a search found, in the order of ids where the device knows it.

Kernels bring a piece of the results into a slot of device memory, from where it is copied into
pinned memory. Meanwhile all threads of the host take the piece before. Levels cross the bus as
bytes, parents as positions: the host writes every result once in any case, and makes levels of
four bytes, and ids, from them on the way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.io.ordered import over_ranges
from oocbfs.gpu.device import Argument, Device, Memory, u64
from oocbfs.gpu.pinned import PinError
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.cuda.source import TO_IDS_STRUCT
from oocbfs.kernels.results import levels as kernels
from oocbfs.plan.search_arrays import RESULT_SLOTS, result_slot_bytes

_NO_IDS = np.empty(0, np.uint64)


class Into(NamedTuple):
    """The arrays to fill, by position, and how: parents as ids if they are of 64 bits.

    ``ids`` are those of the positions, by default consecutive from ``first_id``.
    """

    levels: NDArray[np.int32]
    parents: NDArray[Any] | None = None
    ids: NDArray[np.uint64] = _NO_IDS
    first_id: int = 0
    threads: int = 1


class _Slot(NamedTuple):
    """Device memory for a piece, and pinned memory that it is copied to, if there is any."""

    memory: Memory
    pinned: NDArray[np.uint8] | None


class _Piece(NamedTuple):
    """Results from a position on that are on their way, and a mark after their copy."""

    first: int
    copied: NDArray[Any]
    mark: Any


def _pin(device: Device, size: int, stack: ExitStack) -> NDArray[np.uint8] | None:
    """Return pinned memory, or None where the driver pins no more: copies then wait."""
    try:
        return stack.enter_context(device.allocate_host(size))[0]
    except PinError:
        return None


class DeviceResults:
    """What brings results to the host; the order of ids only if it is given."""

    def __init__(
        self,
        device: Device,
        num_vertices: int,
        order: NDArray[np.uint32] | None,
        *,
        with_parents: bool,
        stack: ExitStack,
        copied: Callable[[int], object],
        largest_slot: int,
    ) -> None:
        self._device, self._num_vertices = device, num_vertices
        self.in_order = order is not None
        self._size = num_vertices if order is None else order.size
        size = min(largest_slot, result_slot_bytes(self._size))
        self._slots = [
            _Slot(device.allocate(size // 4, np.uint32, "results"), _pin(device, size, stack))
            for _ in range(RESULT_SLOTS)
        ]
        self._names = np.zeros((), TO_IDS_STRUCT)
        self._names["num_vertices"] = num_vertices
        self.memories = [slot.memory for slot in self._slots]
        if order is not None:
            self._keep("stored_at", self._invert(order, copied))
            if with_parents:
                self._keep("order", device.copy_in(order[:num_vertices], copied=copied))

    def _keep(self, name: str, memory: Memory) -> None:
        self.memories.append(memory)
        self._names[name] = memory.address

    def _invert(self, order: NDArray[np.uint32], copied: Callable[[int], object]) -> Memory:
        """Find the stored vertex at each position on the device: the host may have no room."""
        stored_at = self._device.allocate(order.size, np.uint32, "stored_at")
        slot = self._slots[0].memory
        for first in range(0, order.size, slot.size):
            piece = np.ascontiguousarray(order[first : first + slot.size])
            self._device.upload(slot, piece)
            arguments = (u64(stored_at.address), u64(slot.address), u64(first), u64(piece.size))
            self._device.launch_threads("invert_order", arguments, piece.size)
            copied(piece.nbytes)
        return stored_at

    def fill(self, search: Argument, into: Into, *, deep: bool) -> None:
        """Fill the arrays; deep levels are where ``deep_levels`` left them."""
        if deep:
            self._bring("deep_levels_to_ids", search, np.uint32, into.levels, into)
        else:
            self._bring("levels_to_ids", search, np.uint8, into.levels, into)
        into.levels[self._size :] = -1
        if into.parents is not None:
            self._bring("parents_to_ids", search, np.uint32, into.parents, into)
            into.parents[self._size :] = -1 if into.parents.itemsize == 8 else NO_HEAD

    def _bring(
        self, kernel: str, search: Argument, dtype: Any, out: NDArray[Any], into: Into
    ) -> None:
        """Have a kernel fill slot after slot, and take each while the next one is filled."""
        waiting: _Piece | None = None
        step = 4 * self._slots[0].memory.size // np.dtype(dtype).itemsize
        for number, first in enumerate(range(0, self._size, step)):
            slot = self._slots[number % RESULT_SLOTS]
            count = min(step, self._size - first)
            arguments = (u64(slot.memory.address), search, self._names, u64(first), u64(count))
            self._device.launch_threads(kernel, arguments, count)
            started = _Piece(first, self._copy(slot, count, dtype), self._device.mark())
            if waiting is not None:
                self._take(waiting, out, into)
            waiting = started
        if waiting is not None:
            self._take(waiting, out, into)

    def _copy(self, slot: _Slot, count: int, dtype: Any) -> NDArray[Any]:
        """Start to copy what a slot holds, or wait for it where its copy is not pinned."""
        if slot.pinned is None:
            return self._device.download(slot.memory.seen_as(dtype), count)
        target: NDArray[Any] = slot.pinned.view(dtype)[:count]
        self._device.start_download(slot.memory, target)
        return target

    def _take(self, piece: _Piece, out: NDArray[Any], into: Into) -> None:
        """Write a piece to its place, with all threads."""
        self._device.wait_for(piece.mark)
        count = piece.copied.size
        if piece.copied.itemsize == 1:
            over_ranges(kernels.widen_levels, count, into.threads, out, piece.first, piece.copied)
        else:
            names = (into.ids, into.first_id)
            over_ranges(
                kernels.place_words, count, into.threads, out, piece.first, piece.copied, *names
            )
