"""Workers that spin for the next search, and results that are too large for caches."""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from numba import njit

from oocbfs.kernels import region
from oocbfs.kernels.bfs import search as bfs
from oocbfs.kernels.bfs.finish import ToIds
from oocbfs.kernels.bfs.search import BfsScratch, search
from oocbfs.kernels.bfs.state import NUM_LOCAL_QUEUES
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.parking import BUSY, EMPTY, SPINNING, WOKEN, Parking, cancel_wake, wake
from oocbfs.kernels.rows import Rows, read_only
from tests.support.plain_rows import Graph, make_rows, random_graph

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLOT = 8


@njit
def _wake(mailbox):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    wake(mailbox, 1, 2, 3, 4, 5, 6)


@njit
def _cancel_wake(mailbox):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    cancel_wake(mailbox)


def rows_of(graph: Graph) -> Rows:
    return make_rows(graph, [len(row) for row in graph])


def levels_from(rows: Rows, source: int, kept: list[BfsScratch], threads: int) -> NDArray[Any]:
    levels = np.full(rows.heads.size, 77, np.int32)
    search(rows, rows, np.array([source], np.uint32), levels, threads=threads, kept=kept)
    return levels


def wait_until(condition: Any, seconds: float = 300.0) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0)
    return True


@pytest.fixture
def rows() -> Rows:
    return rows_of(random_graph(3, 3000, 12000))


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have workers come to any search."""
    for name in ("ALONE_EDGES", "EARLY_EDGES", "WAKE_EDGES"):
        monkeypatch.setattr(bfs, name, -1)


@pytest.mark.parametrize(("num_edges", "num_calls"), [(2_000, 0), (100_000, 1)])
def test_a_small_search_wakes_nobody(
    monkeypatch: pytest.MonkeyPatch, num_edges: int, num_calls: int
) -> None:
    calls = []

    def run_together(*arguments: Any, **options: Any) -> int:
        calls.append(arguments)
        return region.run_together(*arguments, **options)

    monkeypatch.setattr(bfs, "run_together", run_together)
    rows = rows_of(random_graph(5, 1000, num_edges))
    np.testing.assert_array_equal(levels_from(rows, 1, [], 1), levels_from(rows, 1, [], 2))
    assert len(calls) == num_calls


@pytest.mark.usefixtures("eager")
def test_a_worker_waits_for_the_next_search_and_then_goes(rows: Rows) -> None:
    kept: list[BfsScratch] = []
    expected = levels_from(rows, 1, [], 1)
    woken = False
    for _ in range(2000):
        np.testing.assert_array_equal(levels_from(rows, 1, kept, 2), expected)
        (scratch,) = kept
        if wait_until(lambda mailbox=scratch.parking.mailbox: mailbox[SLOT] == SPINNING, 0.001):
            woken = scratch.parking.absent("arguments", 2) == []
        if woken:
            break
    assert woken, "no worker ever waited for the next search"
    mailbox = kept[0].parking.mailbox
    assert wait_until(lambda: mailbox[SLOT] == EMPTY), "a worker waits for ever"


def test_arguments_stay_as_long_as_a_slow_worker_may_read_them() -> None:
    parking = Parking(4)
    first, second = object(), object()
    parking.mailbox[SLOT::SLOT] = SPINNING, WOKEN, EMPTY
    assert parking.absent(first, 4) == [2, 3]
    parking.mailbox[SLOT] = BUSY
    assert parking.absent(second, 4) == [1, 2, 3]
    assert parking.absent(second, 2) == [1]
    assert parking._arguments == [None, first, None, None]


def test_a_worker_that_comes_late_is_not_woken_beside_another() -> None:
    parking = Parking(3)
    mailbox = parking.mailbox
    mailbox[[SLOT, 2 * SLOT]] = BUSY, SPINNING
    assert parking.absent(None, 3) == [1]
    mailbox[SLOT] = SPINNING
    _wake(mailbox)
    assert mailbox[[SLOT, 2 * SLOT]].tolist() == [SPINNING, WOKEN]
    assert mailbox[2 * SLOT + 1 : 2 * SLOT + 7].tolist() == [1, 2, 3, 4, 5, 6]
    _cancel_wake(mailbox)
    assert parking.absent(None, 2) == []
    _wake(mailbox)
    assert mailbox[[SLOT, 2 * SLOT]].tolist() == [WOKEN, SPINNING]
    _cancel_wake(mailbox)
    assert parking.absent(None, 3) == []
    _wake(mailbox)
    assert mailbox[[SLOT, 2 * SLOT]].tolist() == [WOKEN, WOKEN]


def test_a_forked_process_waits_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    parking = Parking(2)
    parking.mailbox[SLOT] = SPINNING
    assert parking.absent(None, 2) == []
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert parking.absent(None, 2) == [1]


def test_fewer_threads_use_the_memory_of_more_in_as_many_parts_as_they_are(rows: Rows) -> None:
    made = BfsScratch.take([], rows, rows, 4)
    assert BfsScratch.take([made], rows, rows, 2) is made
    assert made.control[NUM_LOCAL_QUEUES] == 2
    assert BfsScratch.take([made], rows, rows, 5) is not made


@pytest.mark.usefixtures("eager")
def test_many_searches_one_after_the_other(rows: Rows) -> None:
    expected = [levels_from(rows, source, [], 1) for source in range(40)]
    kept: list[BfsScratch] = []

    def check(number: int) -> None:
        threads = 2 + number % 2
        for source, levels in enumerate(expected):
            np.testing.assert_array_equal(levels_from(rows, source, kept, threads), levels)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(check, range(9)))


def test_rows_are_counted_up_to_the_last_tail() -> None:
    generator = np.random.default_rng(5)
    for _ in range(50):
        seed, num_vertices = (int(number) for number in generator.integers(1, 40, 2))
        rows = rows_of(random_graph(seed, num_vertices, 20))
        begins = rows.bases[np.arange(rows.heads.size + 1) >> rows.shift] + rows.starts
        tailed = np.flatnonzero(np.diff(begins.astype(np.int64)))
        assert read_only(rows).num_tailed == (tailed[-1] + 1 if tailed.size else 0)


@pytest.mark.parametrize("first_id", [0, 7])
@pytest.mark.parametrize("threads", [1, 3])
def test_results_that_are_written_past_the_caches(threads: int, first_id: int) -> None:
    few = rows_of(random_graph(11, 500, 900))
    num_vertices = (1 << 21) + 77
    order = np.random.default_rng(1).permutation(num_vertices).astype(np.uint32)
    stored_at = np.empty_like(order)
    stored_at[order] = np.arange(num_vertices, dtype=np.uint32)
    to_ids = ToIds(stored_at, order, np.empty(0, np.uint64), first_id)
    levels, parents = np.empty(num_vertices, np.int32), np.empty(num_vertices, np.int64)
    source = np.array([0], np.uint32)
    search(few, few, source, levels, parents, to_ids=to_ids, threads=threads)
    stored, stored_parents = np.empty(500, np.int32), np.empty(500, np.uint32)
    search(few, few, source, stored, stored_parents)
    np.testing.assert_array_equal(levels[order[:500]], stored)
    assert (levels[order[500:]] == -1).all()
    found = parents[order[:500]]
    reached = stored >= 0
    assert (found[~reached] == -1).all()
    assert (parents[order[500:]] == -1).all()
    by_position = stored_at[found[reached] - first_id]
    # Which parent is found may differ from run to run, its level may not.
    np.testing.assert_array_equal(stored[by_position], np.maximum(stored[reached] - 1, 0))
    assert (stored_parents[~reached] == NO_HEAD).all()
