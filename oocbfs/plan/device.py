"""Decide what of a graph lives in which tier: a pure function of its sizes and the budgets.

Device memory always holds what a search touches at random: bitmaps, queues, levels, parents if
they are asked for, heads and starts. Where there is room, it then holds the order of the vertices,
by which results are brought into that of ids: the host takes longer for that than most searches
take. The rest of it holds one range of the tails, the *device range*. The other tails stay in
pinned host memory. Where the host cannot hold them all, it holds what a larger range adds to the
device range: the *host range*, which includes the device range. The tails outside stay on disk and
pass through a ring of pinned memory.

Where the device range lies decides what it saves. Where many rows are shorter than a sector, most
slow reads come from searching bottom-up: a vertex whose head missed reads the first sector of its
row, however short the row is. So the range lies where it holds the most rows. Under the orders by
degree these are the last bytes: on a Kronecker graph, the last tenth of the tails saves more than
the first half, in the median of sources (scripts/bench resident). Where there are no such rows,
most reads come from expanding frontiers, and hubs dominate: the first bytes are best, as they are
where rows are alike everywhere (scripts/bench pcie: on a power law from degree 20 the first tenth
saves 58 % and the last 1 %). A range at an edge need not be pinned as well. In a directed graph,
in-neighbours are searched, so their tails come first.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import BudgetError
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.cuda.source import DISK_BLOCK_BYTES
from oocbfs.memory import format_size, parse_size
from oocbfs.plan.ranges import LINE_BYTES, PAGE_BYTES, ByteRange, align_range, slow_range
from oocbfs.plan.rates import SECTOR_BYTES
from oocbfs.plan.search_arrays import (
    RESULT_SLOTS,
    UNIT_BYTES,
    allocated_bytes,
    mandatory_bytes,
    order_bytes,
    result_slot_bytes,
)
from oocbfs.plan.shape import Shape, Tails

# The ring has enough slots that reads, kernels and what waits for either have one each. Slots are
# so large that a launch or two for each does not matter.
NUM_SLOTS = 4
SLOT_BYTES = 8 << 20
# What a slot has besides: the page after its piece, what decoders read ahead, and what aligns it.
SLOT_EXTRA_BYTES = 3 * PAGE_BYTES
# How many times as many rows as the first bytes another range must hold to be better.
_CLEARLY = 1.1


@dataclass(frozen=True)
class DevicePlan:
    """Which bytes live where. ``device`` names what device memory always holds.

    ``host_ranges`` are the tails that device or host hold. ``pinned_bytes`` includes the ring, if
    there is one, and the slots of results. Without ``order_bytes`` on the device, the host brings
    results into the order of ids, unless they are stored in it.
    """

    device: dict[str, int]
    order_bytes: int
    device_ranges: tuple[ByteRange, ...]
    host_ranges: tuple[ByteRange, ...]
    tail_bytes: int
    resident_bytes: int
    pinned_bytes: int
    disk_bytes: int
    vram_bytes: int | None
    why: str

    @property
    def mandatory_bytes(self) -> int:
        """Device memory without which no search runs."""
        return sum(self.device.values())

    @property
    def device_bytes(self) -> int:
        """Device memory in all."""
        return self.mandatory_bytes + self.order_bytes + self.resident_bytes

    @property
    def copied_bytes(self) -> int:
        """What is copied to the device before a search: heads, starts, order, device ranges."""
        rows = self.device["heads"] + self.device["starts"]
        return rows + self.order_bytes + self.resident_bytes


def slot_bytes(tail_bytes: int) -> int:
    """Return how large a slot of the ring is: no larger than the tails."""
    return min(SLOT_BYTES, -(-tail_bytes // DISK_BLOCK_BYTES) * DISK_BLOCK_BYTES)


def parse_resident(text: str | int, tail_bytes: int) -> int:
    """Read an amount of tails, ``25%`` or ``512M``, in bytes."""
    if isinstance(text, str) and text.strip().endswith("%"):
        try:
            percent = float(text.strip()[:-1])
        except ValueError:
            percent = -1.0
        if not 0 <= percent <= 100:
            raise BudgetError(f"cannot read {text!r} as a share: write it as 25% or 512M")
        return int(tail_bytes * percent / 100)
    return parse_size(text)


def plan(
    shape: Shape,
    *,
    vram_bytes: int | None,
    host_bytes: int | None = None,
    resident_tails: str | int | None = None,
    with_parents: bool = False,
    pinned_results: bool = True,
) -> DevicePlan:
    """Decide what is resident.

    Parameters
    ----------
    vram_bytes
        Device memory that may be used; None is no limit, and no tails unless they are asked for.
    host_bytes
        Host memory that may be pinned; None is no limit.
    resident_tails
        How much of the tails to keep in device memory; None is as much as fits.
    pinned_results
        Whether results come through pinned memory, too, which is faster.

    Raises
    ------
    BudgetError
        If a budget is too small; says how much is needed.
    """
    device = mandatory_bytes(shape, with_parents=with_parents)
    mandatory = sum(device.values())
    if vram_bytes is not None and mandatory > vram_bytes:
        raise BudgetError(
            f"{format_size(vram_bytes)} of device memory are too little for this graph: levels, "
            f"queues, heads and starts take {format_size(mandatory)}; use --engine cpu"
        )
    everything = sum(allocated_bytes(_whole(side)[1]) for side in shape.tails)
    free_bytes = 0 if vram_bytes is None else vram_bytes - mandatory
    order = order_bytes(shape, with_parents=with_parents)
    if resident_tails is not None:
        wanted = parse_resident(resident_tails, shape.tail_bytes)
        wanted = everything if wanted >= shape.tail_bytes else wanted
        if vram_bytes is not None and wanted > free_bytes:
            raise BudgetError(
                f"{format_size(vram_bytes)} of device memory hold {format_size(free_bytes)} of the "
                f"tails at most, not {format_size(wanted)}: ask for less by --resident-tails"
            )
        # Tails that somebody asked for go before the order.
        has_room = vram_bytes is None or order <= free_bytes - wanted
        order, free_bytes = order if has_room else 0, wanted
    elif vram_bytes is not None:
        order = order if order <= free_bytes else 0
        free_bytes -= order
    device_ranges = _choose_device_ranges(shape, free_bytes)
    slots = RESULT_SLOTS * _whole_pages(result_slot_bytes(shape.num_results))
    host_ranges, pinned = _choose_host_ranges(
        shape, device_ranges, host_bytes, slots if pinned_results else 0
    )
    return DevicePlan(
        device=device,
        order_bytes=order,
        device_ranges=device_ranges,
        host_ranges=host_ranges,
        tail_bytes=shape.tail_bytes,
        resident_bytes=sum(allocated_bytes(end - begin) for begin, end in device_ranges),
        pinned_bytes=pinned,
        disk_bytes=shape.tail_bytes - sum(end - begin for begin, end in host_ranges),
        vram_bytes=vram_bytes,
        why=_explain(shape, device_ranges),
    )


def _choose_host_ranges(
    shape: Shape, device_ranges: tuple[ByteRange, ...], host_bytes: int | None, slots: int
) -> tuple[tuple[ByteRange, ...], int]:
    """Choose the tails that need not come from disk; return their ranges, and what the host pins.

    The slots of results are pinned too.
    """
    whole = tuple((0, side.num_bytes) for side in shape.tails)
    pinned = slots + sum(map(_pinned, device_ranges, whole, shape.tails))
    if host_bytes is None or pinned <= host_bytes:
        return whole, pinned
    ring = slots + NUM_SLOTS * (slot_bytes(max(end for _, end in whole)) + SLOT_EXTRA_BYTES)
    # A segment follows each host range, on two pages at most.
    least = ring + len(shape.tails) * 2 * PAGE_BYTES if shape.on_disk else pinned
    if least > host_bytes:
        raise BudgetError(
            f"{format_size(least)} would have to be pinned in host memory at least, and only "
            f"{format_size(max(0, host_bytes))} are available: use --engine cpu"
        )
    pinned, host_ranges = ring, []
    for device_range, side in zip(reversed(device_ranges), reversed(shape.tails), strict=True):
        host_ranges.append(_choose_host_range(side, device_range, host_bytes - pinned))
        pinned += _pinned(device_range, host_ranges[-1], side)
    return tuple(reversed(host_ranges)), pinned


def _pinned(device_range: ByteRange, host_range: ByteRange, side: Tails) -> int:
    first, last = slow_range(device_range, host_range, side.num_bytes)
    return _whole_pages(last - first)


def _whole_pages(num_bytes: int) -> int:
    return -(-num_bytes // PAGE_BYTES) * PAGE_BYTES


def _choose_host_range(side: Tails, device_range: ByteRange, free_bytes: int) -> ByteRange:
    """Extend a device range to one side by what may be pinned: then it need not be pinned too."""
    # The rest of its last segment, and the pages that it cuts, are pinned too.
    free_bytes = max(0, free_bytes - SEGMENT_BYTES - 2 * PAGE_BYTES)
    begin, end = device_range[0], min(device_range[1], side.num_bytes)
    first = _fullest(side, min(end - begin + free_bytes, side.num_bytes))
    if begin == end:
        return first, min(first + free_bytes, side.num_bytes)
    if first < begin:
        return max(0, begin - free_bytes), end
    return begin, min(end + free_bytes, side.num_bytes)


def _choose_device_ranges(shape: Shape, free_bytes: int) -> tuple[ByteRange, ...]:
    """Choose a range of each direction's tails; those of in-neighbours, the last, come first."""
    device_ranges: list[ByteRange] = []
    for side in reversed(shape.tails):
        device_ranges.append(_choose_device_range(side, free_bytes))
        begin, end = device_ranges[-1]
        free_bytes -= allocated_bytes(end - begin)
    return tuple(reversed(device_ranges))


def _whole(side: Tails) -> ByteRange:
    return align_range((0, side.num_bytes), side.num_bytes)


def _choose_device_range(side: Tails, free_bytes: int) -> ByteRange:
    """Choose a range of at most so many bytes."""
    whole = _whole(side)
    if allocated_bytes(whole[1]) <= free_bytes:
        return whole
    size = free_bytes // UNIT_BYTES * UNIT_BYTES
    if not size:
        return 0, 0
    begin = _fullest(side, size) // LINE_BYTES * LINE_BYTES
    # The last line is rounded up: a range that touches it takes it whole.
    if begin + size > side.num_bytes - LINE_BYTES:
        begin = whole[1] - size
    return begin, begin + size


def _fullest(side: Tails, size: int) -> int:
    """Find where a range of this size holds the most rows, if some are shorter than a sector."""
    part = min(size, side.num_bytes // 16)
    _, densest = _rows_held(side, part)
    has_short = part < SECTOR_BYTES * float(densest.max())
    begins, held = _rows_held(side, size)
    best = int(np.argmax(held))
    return int(begins[best]) if has_short and held[best] > _CLEARLY * held[0] else 0


def _rows_held(side: Tails, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count the rows in ranges of this size that begin or end at a known offset."""
    edges = np.append(side.offsets.astype(np.float64), float(side.num_bytes))
    # Rows without a tail take no bytes and are never read.
    rows = np.concatenate([[0.0], np.cumsum(np.diff(edges) > 0)])
    rows *= side.num_rows / max(1, side.offsets.size)
    begins = np.unique(np.clip(np.concatenate([edges, edges - size]), 0, side.num_bytes - size))
    return begins, np.interp(begins + size, edges, rows) - np.interp(begins, edges, rows)


def _explain(shape: Shape, device_ranges: tuple[ByteRange, ...]) -> str:
    if device_ranges == tuple(map(_whole, shape.tails)):
        return "the whole graph is resident"
    if all(begin == end for begin, end in device_ranges):
        return "none"
    where = (
        "the first" if all(begin == 0 for begin, _ in device_ranges) else "where rows are shortest"
    )
    return f"{where}, those of in-neighbours before all others" if len(device_ranges) > 1 else where
