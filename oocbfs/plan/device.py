"""Decide what of a graph lives in which tier: a pure function of its sizes and the budgets.

Device memory always holds what a traversal touches at random: bitmaps, queues, levels, parents if
they are asked for, heads and starts. What is left holds a fixed window of the tails; the others stay
in pinned host memory. Where the host cannot hold them all, a larger window around the first is the
home of those that it can; the rest stays on disk and passes through a ring of pinned memory.

Where the window lies decides what it saves. Where many rows are shorter than a sector, most slow reads
come from searching bottom-up: a vertex whose head missed reads the first sector of its row, however short
the row is. So the window lies where it holds the most rows. Under the orders by degree these are the last
bytes: on a Kronecker graph, the last tenth of the tails saves more than the first half, in the median of
sources (scripts/bench resident). Where there are no such rows, most reads come from expanding frontiers,
which hubs dominate: the first bytes are best, as they are where rows are alike everywhere (scripts/bench
pcie: on a power law from degree 20 the first tenth saves 58 % and the last 1 %). A window at an edge need
not be pinned as well. Of a directed graph, in-neighbours are searched, so theirs come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import BudgetError
from oocbfs.kernels.constants import SEGMENT_BYTES
from oocbfs.kernels.cuda.source import CONTROL_WORDS, DISK_BLOCK_BYTES, MAX_SMALL_LEVELS, PARTS
from oocbfs.memory import format_size, parse_size

# First byte of the tails that are resident and the one behind the last.
Window = tuple[int, int]

# A sector lies wholly inside or outside of a window.
LINE_BYTES = 128
# What one read moves over the bus, however little of it is wanted.
SECTOR_BYTES = 32
# Host memory is pinned by pages.
PAGE_BYTES = 4096
# The ring: enough slots that reads, kernels and what waits for either have one each, and slots so large
# that a launch or two for each is no matter.
NUM_SLOTS = 4
SLOT_BYTES = 8 << 20
# Of a slot besides: the page behind its piece, what decoders look further, and what aligns it.
SLOT_EXTRA_BYTES = 3 * PAGE_BYTES
# A byte from disk takes as long as so many over the bus: 2 GB/s against 16.
DISK_COST = 8
# CuPy's pool gives memory in such units.
_UNIT_BYTES = 512
# How many times as many rows as the first bytes another place must hold.
_CLEARLY = 1.1

# What the arrays of a traversal are for.
_PURPOSES = {
    "levels": "levels",
    "parents": "parents",
    "queue": "queues",
    "pending": "queues",
    "visited": "bitmaps",
    "claimed": "bitmaps",
    "hubs": "queues",
    "hub_segments": "queues",
    "control": "queues",
    "expanded_blocks": "bitmaps",
    "searched_blocks": "bitmaps",
    "cuts": "queues",
}


class Tails(NamedTuple):
    """One direction's tails: their size, and where evenly spaced rows begin in them, row 0 first.

    ``num_rows`` are all rows, not only those places.
    """

    num_bytes: int
    num_rows: int
    places: NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """What a plan needs to know about a graph; ``tails`` are out and, if directed, in.

    ``on_disk`` says that tails can be read from the file as they are.
    """

    num_vertices: int
    shift: int
    tails: tuple[Tails, ...]
    on_disk: bool = True

    @property
    def tail_bytes(self) -> int:
        """Bytes of all tails."""
        return sum(side.num_bytes for side in self.tails)


@dataclass(frozen=True)
class Plan:
    """Which bytes live where. ``device`` names what device memory always holds.

    ``homes`` are the tails that device or host hold; ``pinned_bytes`` includes the ring, if there is one.
    """

    device: dict[str, int]
    windows: tuple[Window, ...]
    homes: tuple[Window, ...]
    tail_bytes: int
    resident_bytes: int
    pinned_bytes: int
    disk_bytes: int
    vram_bytes: int | None
    why: str

    @property
    def mandatory_bytes(self) -> int:
        """Device memory without which no traversal runs."""
        return sum(self.device.values())

    @property
    def device_bytes(self) -> int:
        """Device memory in all."""
        return self.mandatory_bytes + self.resident_bytes


def search_arrays(
    num_vertices: int, tail_bytes: tuple[int, ...], *, with_parents: bool
) -> dict[str, tuple[int, Any]]:
    """Give size and type of each array that a traversal works on; tails are out and, if directed, in."""
    words = (num_vertices + 31) // 32
    num_hubs = tail_bytes[0] // (SEGMENT_BYTES + 1) + 1
    return {
        "levels": (num_vertices, np.int32),
        "parents": (num_vertices if with_parents else 1, np.uint32),
        "queue": (num_vertices, np.uint32),
        "pending": (num_vertices, np.uint32),
        "visited": (words, np.uint32),
        "claimed": (words, np.uint32),
        "hubs": (num_hubs, np.uint32),
        "hub_segments": (num_hubs, np.uint32),
        # The recorded level ends lie behind the control words: one copy reads both.
        "control": (CONTROL_WORDS + MAX_SMALL_LEVELS // 2, np.uint64),
        "expanded_blocks": (block_words(tail_bytes[0]), np.uint32),
        "searched_blocks": (block_words(tail_bytes[-1]), np.uint32),
        "cuts": (PARTS - 1, np.uint32),
    }


def block_words(tail_bytes: int) -> int:
    """Tell how many words have a bit for every block of tails on disk, and one for another behind."""
    return -(-tail_bytes // DISK_BLOCK_BYTES) // 32 + 1


def align_window(window: Window, tail_bytes: int) -> Window:
    """Move the edges of a window to lines; one that reaches the last line takes it whole."""
    begin, end = (edge // LINE_BYTES * LINE_BYTES for edge in window)
    if window[0] < window[1] and end >= tail_bytes // LINE_BYTES * LINE_BYTES:
        end = -(-tail_bytes // LINE_BYTES) * LINE_BYTES
    return min(begin, end), end


def slow_range(window: Window, home: Window, tail_bytes: int) -> Window:
    """Give the part of the tails that must be mapped: the least, by pages, that holds the rest of home.

    A segment that begins in it may end behind it.
    """
    if home[0] == home[1]:
        return 0, 0
    begin, end = window if window[0] < window[1] else (home[0], home[0])
    stop = min(home[1] + SEGMENT_BYTES, tail_bytes)
    last = stop if end < stop else begin
    first = home[0] if home[0] < begin else min(end, last)
    return first // PAGE_BYTES * PAGE_BYTES if first < last else last, last


def slot_bytes(tail_bytes: int) -> int:
    """Tell how large a slot of the ring is: no larger than the tails."""
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
) -> Plan:
    """Decide what is resident.

    Parameters
    ----------
    vram_bytes
        Device memory that may be used; None is no limit, and no tails unless they are asked for.
    host_bytes
        Host memory that may be pinned; None is no limit.
    resident_tails
        How much of the tails to keep in device memory; None is as much as fits.

    Raises
    ------
    BudgetError
        If a budget is too small; says how much is needed.
    """
    device = _device_bytes(shape, with_parents=with_parents)
    mandatory = sum(device.values())
    if vram_bytes is not None and mandatory > vram_bytes:
        raise BudgetError(
            f"{format_size(vram_bytes)} of device memory are too little for this graph: levels, "
            f"queues, heads and starts take {format_size(mandatory)}; use --engine cpu"
        )
    everything = sum(_allocated(_whole(side)[1]) for side in shape.tails)
    room = 0 if vram_bytes is None else vram_bytes - mandatory
    if resident_tails is not None:
        wanted = parse_resident(resident_tails, shape.tail_bytes)
        wanted = everything if wanted >= shape.tail_bytes else wanted
        if vram_bytes is not None and wanted > room:
            raise BudgetError(
                f"{format_size(vram_bytes)} of device memory hold {format_size(room)} of the tails "
                f"at most, not {format_size(wanted)}: ask for less by --resident-tails"
            )
        room = wanted
    windows = _windows(shape, room)
    homes, pinned = _homes(shape, windows, host_bytes)
    return Plan(
        device=device,
        windows=windows,
        homes=homes,
        tail_bytes=shape.tail_bytes,
        resident_bytes=sum(_allocated(end - begin) for begin, end in windows),
        pinned_bytes=pinned,
        disk_bytes=shape.tail_bytes - sum(end - begin for begin, end in homes),
        vram_bytes=vram_bytes,
        why=_explain(shape, windows),
    )


def _homes(
    shape: Shape, windows: tuple[Window, ...], host_bytes: int | None
) -> tuple[tuple[Window, ...], int]:
    """Decide which tails need not come from disk; give those, and how much the host pins."""
    whole = tuple((0, side.num_bytes) for side in shape.tails)
    pinned = sum(map(_pinned, windows, whole, shape.tails))
    if host_bytes is None or pinned <= host_bytes:
        return whole, pinned
    ring = NUM_SLOTS * (slot_bytes(max(end for _, end in whole)) + SLOT_EXTRA_BYTES)
    # A home has a segment behind it, on two pages at most.
    least = ring + len(shape.tails) * 2 * PAGE_BYTES if shape.on_disk else pinned
    if least > host_bytes:
        raise BudgetError(
            f"{format_size(least)} would have to be pinned in host memory at least, and only "
            f"{format_size(max(0, host_bytes))} are available: use --engine cpu"
        )
    pinned, homes = ring, []
    for window, side in zip(reversed(windows), reversed(shape.tails), strict=True):
        homes.append(_home(side, window, host_bytes - pinned))
        pinned += _pinned(window, homes[-1], side)
    return tuple(reversed(homes)), pinned


def _pinned(window: Window, home: Window, side: Tails) -> int:
    first, last = slow_range(window, home, side.num_bytes)
    return -(-(last - first) // PAGE_BYTES) * PAGE_BYTES


def _home(side: Tails, window: Window, room: int) -> Window:
    """Extend a window to one side by what may be pinned, so that it need not be pinned as well."""
    # What lies behind it for its last segment, and the pages that it cuts, are pinned too.
    room = max(0, room - SEGMENT_BYTES - 2 * PAGE_BYTES)
    begin, end = window[0], min(window[1], side.num_bytes)
    first = _fullest(side, min(end - begin + room, side.num_bytes))
    if begin == end:
        return first, min(first + room, side.num_bytes)
    return (
        (max(0, begin - room), end) if first < begin else (begin, min(end + room, side.num_bytes))
    )


def _device_bytes(shape: Shape, *, with_parents: bool) -> dict[str, int]:
    """Sum up the arrays that are always in device memory by what they are for."""
    tail_bytes = tuple(side.num_bytes for side in shape.tails)
    arrays = search_arrays(shape.num_vertices, tail_bytes, with_parents=with_parents)
    found = dict.fromkeys(("bitmaps", "queues", "levels", "parents"), 0)
    for name, (size, dtype) in arrays.items():
        found[_PURPOSES[name]] += _allocated(max(size, 1) * np.dtype(dtype).itemsize)
    found["heads"] = len(shape.tails) * _allocated(4 * max(shape.num_vertices, 1))
    num_bases = (shape.num_vertices >> shape.shift) + 1
    found["starts"] = len(shape.tails) * (
        _allocated(4 * (shape.num_vertices + 1)) + _allocated(8 * num_bases)
    )
    return found


def _allocated(num_bytes: int) -> int:
    return -(-num_bytes // _UNIT_BYTES) * _UNIT_BYTES


def _windows(shape: Shape, room: int) -> tuple[Window, ...]:
    """Place a window on each direction's tails; those of in-neighbours, the last, are served first."""
    windows = []
    for side in reversed(shape.tails):
        windows.append(_window(side, room))
        begin, end = windows[-1]
        room -= _allocated(end - begin)
    return tuple(reversed(windows))


def _whole(side: Tails) -> Window:
    return align_window((0, side.num_bytes), side.num_bytes)


def _window(side: Tails, room: int) -> Window:
    """Place a window of at most so many bytes."""
    whole = _whole(side)
    if _allocated(whole[1]) <= room:
        return whole
    size = room // _UNIT_BYTES * _UNIT_BYTES
    if not size:
        return 0, 0
    begin = _fullest(side, size) // LINE_BYTES * LINE_BYTES
    # The last line is rounded up: a window that touches it takes it whole.
    if begin + size > side.num_bytes - LINE_BYTES:
        begin = whole[1] - size
    return begin, begin + size


def _fullest(side: Tails, size: int) -> int:
    """Find where a window of this size holds the most rows, if there are any shorter than a sector."""
    part = min(size, side.num_bytes // 16)
    _, densest = _rows_held(side, part)
    has_short = part < SECTOR_BYTES * float(densest.max())
    begins, held = _rows_held(side, size)
    best = int(np.argmax(held))
    return int(begins[best]) if has_short and held[best] > _CLEARLY * held[0] else 0


def _rows_held(side: Tails, size: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Count the rows in windows of this size that begin or end where a row was looked at."""
    edges = np.append(side.places.astype(np.float64), float(side.num_bytes))
    # Rows without a tail take no room and are never read.
    rows = np.concatenate([[0.0], np.cumsum(np.diff(edges) > 0)])
    rows *= side.num_rows / max(1, side.places.size)
    begins = np.unique(np.clip(np.concatenate([edges, edges - size]), 0, side.num_bytes - size))
    return begins, np.interp(begins + size, edges, rows) - np.interp(begins, edges, rows)


def _explain(shape: Shape, windows: tuple[Window, ...]) -> str:
    if windows == tuple(map(_whole, shape.tails)):
        return "the whole graph is resident"
    if all(begin == end for begin, end in windows):
        return "none"
    where = "the first" if all(begin == 0 for begin, _ in windows) else "where rows are shortest"
    return f"{where}, those of in-neighbours before all others" if len(windows) > 1 else where
