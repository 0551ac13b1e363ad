"""Rows decoded many ids at a time, threads that wait, and what a search makes of communities."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import njit

from oocbfs.graph.rows import decode_rows
from oocbfs.kernels.bfs import search as bfs
from oocbfs.kernels.bfs import state
from oocbfs.kernels.bfs.plain import plain_bfs
from oocbfs.kernels.bfs.search import search
from oocbfs.kernels.bfs.state import BfsScratch
from oocbfs.kernels.gather import BATCH, NOT_BEGUN, gather_rows
from oocbfs.kernels.region import ALONE, DONE, REGION_WORDS, STARTED, wait_for
from oocbfs.kernels.rows import Rows, read_only
from tests.support.plain_rows import NONE, Graph, both_ways, make_rows


@njit  # type: ignore[untyped-decorator]
def gathered(rows: Any, queue: Any, ids: Any, owners: Any) -> Any:
    end = np.int64(queue.size)
    q, _, count, _ = gather_rows(
        rows, queue, np.int64(0), np.int64(NOT_BEGUN), end, ids, owners, np.int64(0), True
    )
    return q, count


@pytest.mark.parametrize("decode", [lambda rows: rows, decode_rows], ids=["encoded", "decoded"])
@pytest.mark.parametrize("largest", [100, 300, 20_000, 66_000])
def test_rows_of_any_length_and_gaps_of_any_width_are_gathered(
    largest: int, decode: Callable[[Rows], Rows]
) -> None:
    """One byte, two and three, in tails that end within a word, with one and after it."""
    n = 70_000
    rng = np.random.default_rng(largest)
    graph: Graph = [[] for _ in range(n)]
    for u in range(200):
        steps = rng.integers(1, largest, size=u % 40 + u // 150 * 300)
        graph[u] = [int(v) for v in np.unique(rng.integers(0, 9) + np.cumsum(steps)) if v < n]
    rows = read_only(decode(make_rows(graph, [0] * n)))
    ids, owners = np.zeros(BATCH, np.uint32), np.zeros(BATCH, np.uint32)
    for first in range(0, 200, 4):
        queue = np.arange(first, first + 4, dtype=np.uint32)
        q, count = gathered(rows, queue, ids, owners)
        assert q == 4
        pairs = sorted(zip(owners[:count].tolist(), ids[:count].tolist(), strict=True))
        assert pairs == [(u, v) for u in range(first, first + 4) for v in graph[u]]


def test_short_rows_that_are_damaged_are_noticed() -> None:
    """A gap without an end, and an id that is no vertex, in tails that are decoded at once."""
    for tail in (b"\x05\x81", b"\x05\x01\x80", b"\x05\xff\x7f", b"\xff\xff\x03", b"\x85"):
        heads = np.array([1, NONE, NONE], np.uint32)
        starts = np.array([0, len(tail), len(tail), len(tail)], np.uint32)
        tails = np.frombuffer(tail + bytes(32), np.uint8)[: len(tail)]
        degrees = np.zeros(3, np.uint32)
        rows = Rows(heads, np.zeros(1, np.uint64), starts, tails, degrees, 8, 3, 3, 3)
        ids, owners = np.zeros(BATCH, np.uint32), np.zeros(BATCH, np.uint32)
        _, count = gathered(read_only(rows), np.zeros(1, np.uint32), ids, owners)
        assert count == -1, tail
        assert decode_rows(rows._replace(degrees=np.array([3, 0, 0], np.uint32))).firsts.size == 0


@njit(nogil=True)  # type: ignore[untyped-decorator]
def waited(control: Any) -> None:
    wait_for(control, DONE, 1)


def test_a_leader_that_waits_for_long_works_alone_afterwards() -> None:
    control = np.zeros(REGION_WORDS, np.int64)
    control[DONE] = 1
    waited(control)
    assert control[ALONE] == 0
    control[DONE], control[STARTED] = 0, time.monotonic_ns()
    late = threading.Timer(0.05, lambda: control.__setitem__(DONE, 1))
    late.start()
    waiting = threading.Thread(target=waited, args=(control,))
    waiting.start()
    waiting.join()
    assert control[ALONE] == 1


@pytest.mark.parametrize("threads", [1, 2])
def test_communities_are_not_searched_again_and_again(threads: int) -> None:
    """Bottom-up, all other communities would be looked at in vain, level after level."""
    rng = np.random.default_rng(5)
    size, number = 800, 12
    graph: Graph = [[] for _ in range(size * number)]
    for u, v in rng.integers(0, size, size=(size * 20, 2)).tolist():
        for base in range(0, size * number, size):
            graph[base + u].append(base + v)
            graph[base + v].append(base + u)
    graph = [sorted(set(row) - {u}) for u, row in enumerate(graph)]
    rows, _ = both_ways(graph, False)
    levels = np.empty(len(graph), np.int32)
    scratch: list[BfsScratch] = []
    for source in range(0, len(graph), 700):
        done = search(rows, rows, np.array([source]), levels, threads=threads, kept=scratch)
        assert levels.tolist() == plain_bfs(rows, rows, [source])
        assert done.records["edges"].sum() <= 1.2 * rows.num_arcs / number
        assert done.edges == sum(len(graph[u]) for u in np.flatnonzero(levels >= 0))
        assert done.sizes.tolist() == np.bincount(levels[levels >= 0]).tolist()
    assert len(scratch) == 1


def test_levels_beyond_the_records_are_counted_though_parts_found_some_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a long grid, whose parts meet, and with memory that a shorter one has used before."""
    monkeypatch.setattr(bfs, "ALONE_EDGES", -1)
    monkeypatch.setattr(bfs, "WAKE_EDGES", -1)
    monkeypatch.setattr(bfs, "FIRST_LOCAL_QUEUES", 0)
    monkeypatch.setattr(state, "MAX_RECORDS", 40)
    width, length = 40, 300
    graph: Graph = [[] for _ in range(width * length)]
    for u in range(width * length):
        for v in (u + 1,) * (u % width < width - 1) + (u + width,) * (u + width < len(graph)):
            graph[u].append(v)
            graph[v].append(u)
    graph = [sorted(row) for row in graph]
    rows, _ = both_ways(graph, False)
    levels = np.empty(len(graph), np.int32)
    kept: list[BfsScratch] = []
    for source in (0, len(graph) // 2, 7):
        expected = plain_bfs(rows, rows, [source])
        done = search(rows, rows, np.array([source]), levels, threads=2, kept=kept)
        assert levels.tolist() == expected
        assert done.records.size == 40
        assert done.sizes.tolist() == np.bincount(expected).tolist()
