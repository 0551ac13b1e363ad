"""The plan as a pure function, and that a device allocates what it says."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from oocbfs.errors import BudgetError
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.device import Memory
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.plan.device import plan
from oocbfs.plan.ranges import LINE_BYTES, PAGE_BYTES, align_range, slow_range
from oocbfs.plan.search_arrays import RESULT_SLOTS, result_slot_bytes
from oocbfs.plan.shape import Shape, Tails, tails_of
from tests.support.gpu.emulated import library
from tests.support.gpu.gpu_graphs import levels_by_scipy, mixed_graph, rows_of


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Graphs by their sizes: some rows, with some bytes of tails between them, one or two ways."""
    lengths = st.lists(st.integers(0, 20_000), min_size=1, max_size=40)
    sides = draw(st.lists(lengths, min_size=1, max_size=2))
    num_vertices, shift = draw(st.integers(0, 3000)), draw(st.integers(0, 6))
    num_results = draw(st.sampled_from([0, num_vertices, num_vertices + 500]))
    ordered = num_results > 0 and draw(st.booleans())
    every_side = tuple(map(tails, sides))
    return Shape(num_vertices, shift, every_side, num_results=num_results, ordered=ordered)


def tails(lengths: list[int], rows_each: int = 1) -> Tails:
    """Tails of so many rows in each of some lengths."""
    offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return Tails(int(offsets[-1]), len(lengths) * rows_each, offsets[:-1])


def whole_pages(size: int) -> int:
    return -(-size // PAGE_BYTES) * PAGE_BYTES


@given(shapes(), st.integers(0, 2_000_000), st.booleans())
def test_never_more_than_device_memory(shape: Shape, vram: int, with_parents: bool) -> None:
    least = plan(shape, vram_bytes=None, with_parents=with_parents).mandatory_bytes
    if least > vram:
        with pytest.raises(BudgetError, match="too little"):
            plan(shape, vram_bytes=vram, with_parents=with_parents)
        return
    found = plan(shape, vram_bytes=vram, with_parents=with_parents)
    assert found.device_bytes <= vram
    assert found.mandatory_bytes + found.order_bytes + found.resident_bytes == found.device_bytes
    for (begin, end), side in zip(found.device_ranges, shape.tails, strict=True):
        assert 0 <= begin <= end <= -(-side.num_bytes // LINE_BYTES) * LINE_BYTES
        assert begin % LINE_BYTES == end % LINE_BYTES == 0
        first, last = slow_range((begin, end), (0, side.num_bytes), side.num_bytes)
        assert first % PAGE_BYTES == 0 or first == last
        outside = set(range(0, side.num_bytes, 64)) - set(range(begin, end, 64))
        assert all(first <= offset < last for offset in outside)


@given(shapes(), st.integers(0, 500_000), st.integers(0, 500_000))
@example(
    Shape(525, 0, (Tails(1, 1, np.array([0])),), on_disk=True, num_results=1025, ordered=True),
    512,
    4608,
)
def test_more_memory_never_holds_less(shape: Shape, less: int, more: int) -> None:
    least = plan(shape, vram_bytes=None).mandatory_bytes
    small, large = (
        plan(shape, vram_bytes=least + extra) for extra in (min(less, more), max(less, more))
    )
    assert small.order_bytes <= large.order_bytes
    assert small.device_bytes <= large.device_bytes
    # The order goes first, where it fits, and may take the place of tails.
    assert small.order_bytes < large.order_bytes or all(
        s[1] - s[0] <= g[1] - g[0]
        for s, g in zip(small.device_ranges, large.device_ranges, strict=True)
    )


@given(shapes())
def test_a_graph_that_fits_is_resident_and_nothing_is_pinned(shape: Shape) -> None:
    asked = plan(shape, vram_bytes=None, resident_tails="100%")
    exact = plan(shape, vram_bytes=asked.device_bytes)
    assert exact.device_ranges == asked.device_ranges
    assert exact.order_bytes == asked.order_bytes
    results = exact.pinned_bytes  # which come through pinned memory in any case
    assert results == RESULT_SLOTS * whole_pages(result_slot_bytes(shape.num_results))
    assert exact.why == "the whole graph is resident"
    if shape.tail_bytes:
        short = plan(shape, vram_bytes=asked.device_bytes - 1)
        assert short.pinned_bytes > results


@given(shapes(), st.integers(0, 40_000), st.booleans())
def test_the_order_goes_before_tails_that_nobody_asked_for(
    shape: Shape, free: int, with_parents: bool
) -> None:
    without_limit = plan(shape, vram_bytes=None, with_parents=with_parents)
    least, order = without_limit.mandatory_bytes, without_limit.order_bytes
    stored_at, placed = (-(-4 * n // 512) * 512 for n in (shape.num_results, shape.num_vertices))
    assert order == (stored_at + with_parents * placed if shape.ordered else 0)
    found = plan(shape, vram_bytes=least + free, with_parents=with_parents)
    assert found.order_bytes == (order if order <= free else 0)
    tails_first = plan(
        shape, vram_bytes=least + free, with_parents=with_parents, resident_tails="0%"
    )
    assert tails_first.order_bytes == found.order_bytes


def test_tails_that_somebody_asks_for_go_before_the_order() -> None:
    shape = Shape(1000, 4, (tails([10_240]),), num_results=1000, ordered=True)
    asked = plan(shape, vram_bytes=None, resident_tails="100%")
    exact = plan(shape, vram_bytes=asked.device_bytes, resident_tails="100%")
    short = plan(shape, vram_bytes=asked.device_bytes - 1, resident_tails="100%")
    assert (exact.order_bytes, short.order_bytes) == (asked.order_bytes, 0)
    assert exact.resident_bytes == short.resident_bytes == asked.resident_bytes


@given(shapes(), st.integers(0, 300_000), st.integers(0, 300_000))
def test_asking_for_an_amount_gives_it_or_an_error(shape: Shape, amount: int, free: int) -> None:
    least = plan(shape, vram_bytes=None).mandatory_bytes
    try:
        found = plan(shape, vram_bytes=least + free, resident_tails=amount)
    except BudgetError:
        assert free < max(
            amount, plan(shape, vram_bytes=None, resident_tails="100%").resident_bytes
        )
        return
    assert found.resident_bytes <= free
    if amount < shape.tail_bytes:
        assert found.resident_bytes <= amount


@given(shapes(), st.integers(0, 1_000_000))
def test_host_memory_bounds_what_is_pinned(shape: Shape, host: int) -> None:
    needed = plan(shape, vram_bytes=None).pinned_bytes
    if needed > host:
        with pytest.raises(BudgetError, match="pinned in host memory"):
            plan(shape, vram_bytes=None, host_bytes=host)
    else:
        assert plan(shape, vram_bytes=None, host_bytes=host).pinned_bytes == needed


def test_the_device_range_lies_where_most_rows_are() -> None:
    def device_range(lengths: list[int], amount: int, rows_each: int = 1000) -> tuple[int, int]:
        shape = Shape(1000, 4, (tails(lengths, rows_each),))
        return plan(shape, vram_bytes=None, resident_tails=amount).device_ranges[0]

    by_degree = [64_000, 32_000, 16_000, 8_000, 0, 0]
    end = -(-sum(by_degree) // LINE_BYTES) * LINE_BYTES
    assert device_range(by_degree, 8192) == (end - 8192, end)
    begin, end = device_range([64_000, 64_000, 8_000, 64_000], 7168)
    assert 128_000 - LINE_BYTES <= begin < end <= 136_000 + LINE_BYTES
    assert device_range([8_000, 8_100, 8_050, 8_200], 8192) == (0, 8192)
    # Rows of 80 bytes and more waste little of a sector: expanding hubs costs most.
    assert device_range(by_degree, 8192, rows_each=100) == (0, 8192)


def test_ranges_move_to_lines() -> None:
    assert align_range((0, 0), 3) == (0, 0)
    assert align_range((0, 3), 3) == (0, 128)
    assert align_range((130, 400), 1000) == (128, 384)
    assert align_range((130, 999), 1000) == (128, 1024)


class CountingDevice(EmulatorDevice):
    """Sums up what is allocated, in the units of CuPy's pool."""

    allocated_bytes = 0
    mapped_bytes = 0

    def allocate(self, size: int, dtype: Any, name: str = "") -> Memory:
        memory = super().allocate(size, dtype, name)
        self.allocated_bytes += -(-memory.owner.nbytes // 512) * 512
        return memory

    def map_host(self, array: Any) -> Any:
        self.mapped_bytes += whole_pages(array.nbytes)
        return super().map_host(array)

    def allocate_host(self, size: int) -> Any:
        self.mapped_bytes += whole_pages(size)
        return super().allocate_host(size)


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs a C++ compiler")
@given(st.integers(0, 60_000), st.integers(1, 2))
@settings(max_examples=20, deadline=None)
def test_a_device_allocates_what_the_plan_says(extra: int, sides: int) -> None:
    matrix = mixed_graph(1, directed=sides == 2)
    rows = rows_of(matrix)
    in_rows = rows_of(matrix.T.tocsr()) if sides == 2 else rows
    both = tuple(tails_of(side) for side in (rows, in_rows)[:sides])
    num_vertices = rows.heads.size
    shape = Shape(num_vertices, rows.shift, both, num_results=num_vertices, ordered=True)
    least = plan(shape, vram_bytes=None, with_parents=True).mandatory_bytes
    found = plan(shape, vram_bytes=least + extra, with_parents=True)
    device = CountingDevice(library=library())
    order = np.arange(num_vertices, dtype=np.uint32) if found.order_bytes else None
    with GpuBfs(device, rows, in_rows, device_ranges=found.device_ranges, order=order) as search:
        assert device.allocated_bytes == found.device_bytes <= least + extra
        assert device.mapped_bytes == found.pinned_bytes
        result = search.run(np.array([17], np.uint32))
    np.testing.assert_array_equal(result.levels, levels_by_scipy(matrix, [17]))
