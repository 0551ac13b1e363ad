"""The search kernels against a plain search, on rows that a plain encoder wrote."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numba import njit

from oocbfs.kernels import atomics
from oocbfs.kernels.bfs import search as bfs
from oocbfs.kernels.bfs import state
from oocbfs.kernels.bfs.plain import plain_bfs
from oocbfs.kernels.bfs.search import AUTO, BOTTOM_UP, TOP_DOWN, BfsScratch, ToIds, search
from oocbfs.kernels.bitmaps import UNREACHED
from oocbfs.kernels.gather import take_varint
from tests.support.plain_rows import (
    NONE,
    SEGMENT,
    Graph,
    both_decoded,
    both_ways,
    check_parents,
    encode_tail,
    make_rows,
    plain_levels,
    random_graph,
    stretched,
    varint,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


DIRECTIONS = (AUTO, TOP_DOWN, BOTTOM_UP)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every level worth sharing and every long row a hub, however small the graph is."""
    monkeypatch.setattr(bfs, "ALONE_EDGES", -1)
    monkeypatch.setattr(bfs, "WAKE_EDGES", -1)
    monkeypatch.setattr(bfs, "MOST_LOCAL_EDGES", 64)
    monkeypatch.setattr(bfs, "FIRST_LOCAL_QUEUES", 0)
    monkeypatch.setattr(state, "SHARED_SEGMENTS", 1)


def check(
    graph: Graph, directed: bool, sources: Sequence[int], threads: int, direction: int
) -> None:
    levels = np.full(len(graph), 77, np.int32)
    parents = np.full(len(graph), 77, np.uint32)
    expected = plain_levels(graph, sources)
    encoded = both_ways(graph, directed)
    for rows_out, rows_in in (encoded, both_decoded(*encoded)):
        for wanted in (None, parents):
            levels.fill(77)
            done = search(
                rows_out,
                rows_in,
                np.array(sources),
                levels,
                wanted,
                threads=threads,
                direction=direction,
            )
            assert levels.tolist() == expected
            assert not done.malformed
            # A vertex that two threads found at the same time is in the frontier twice.
            sizes = np.bincount(levels[levels >= 0])
            assert done.sizes.tolist() == sizes.tolist()
            repeats = done.records["frontier"] - sizes
            assert repeats.min() == 0
            assert threads > 1 or repeats.max() == 0
        check_parents(graph, sources, levels, parents)
    assert done.records["tail_bytes"].sum() == 0


@settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(
    n=st.integers(1, 200),
    density=st.floats(0, 4),
    directed=st.booleans(),
    threads=st.sampled_from([1, 2, 4]),
    direction=st.sampled_from(DIRECTIONS),
    seed=st.integers(0, 1 << 32),
    data=st.data(),
)
def test_small_graphs(
    n: int,
    density: float,
    directed: bool,
    threads: int,
    direction: int,
    seed: int,
    data: st.DataObject,
) -> None:
    graph = random_graph(seed, n, int(n * density), directed=directed)
    sources = data.draw(st.lists(st.integers(0, n - 1), min_size=1, max_size=4))
    check(graph, directed, sources, threads, direction)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("dense_shift", [0, 8, 62], ids=["sparse", "mixed", "dense"])
@pytest.mark.parametrize("direction", DIRECTIONS, ids=["auto", "down", "up"])
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_shared_levels(
    monkeypatch: pytest.MonkeyPatch,
    directed: bool,
    threads: int,
    direction: int,
    dense_shift: int,
) -> None:
    monkeypatch.setattr(bfs, "DENSE_SHIFT", dense_shift)
    for seed in range(4):
        graph = random_graph(seed, 3000 + seed, 6000, hubs=3, directed=directed)
        check(graph, directed, [seed, 2 * seed + 1], threads, direction)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_the_plain_twin_finds_the_same_levels(directed: bool) -> None:
    """On rows with several segments, whichever way the twin is made to go."""
    graph = random_graph(11, 4000, 9000, hubs=2, directed=directed)
    rows_out, rows_in = both_ways(graph, directed)
    levels = np.empty(len(graph), np.int32)
    for sources in ([3], [0, 17, 3999]):
        expected = plain_levels(graph, sources)
        for alpha, beta in ((15.0, 18.0), (1e-9, 1.0), (1e9, 1e9)):
            assert plain_bfs(rows_out, rows_in, sources, alpha=alpha, beta=beta) == expected
        for direction in DIRECTIONS:
            search(rows_out, rows_in, np.array(sources), levels, threads=2, direction=direction)
            assert levels.tolist() == plain_bfs(rows_out, rows_in, sources)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_stretched_varints(direction: int) -> None:
    rng = np.random.default_rng(9)
    n = 70_000
    graph: Graph = [[] for _ in range(n)]
    for hub in range(40):
        graph[hub] = sorted(rng.choice(np.arange(40, n), 1300, replace=False).tolist())
        for v in graph[hub]:
            graph[v].append(hub)
    tails = [encode_tail(row[1:]) for row in graph[:40]]
    assert all(len(tail) > SEGMENT for tail in tails)
    assert any(tail[SEGMENT - 1] == 0 and tail[SEGMENT - 2] > 128 for tail in tails)
    check(graph, False, [1], 2, direction)


@pytest.mark.parametrize("fast", [False, True])
def test_varints_of_every_length(monkeypatch: pytest.MonkeyPatch, fast: bool) -> None:
    """Both where the processor extracts bits and where they are shifted."""
    if fast and not atomics.extracts_fast():
        pytest.skip("this processor extracts no bits, or slowly")
    monkeypatch.setattr(atomics, "extracts_fast", lambda: fast)
    take = njit(take_varint.py_func)
    values = [0, 1, 127, 128, 16383, 16384, 2**21, 2**28 - 1, 2**28, 2**32 - 1]
    for value in values:
        code = varint(value)
        for length in range(len(code), min(len(code) + 4, 9) + 1):
            data = stretched(code, length) + b"\xff" * 8
            assert take(np.frombuffer(data, np.uint8), 0) == (value, length)
    assert ("pext" in next(iter(take.inspect_asm().values()))) == fast


@pytest.mark.parametrize("threads", [2, 3])
def test_parts_that_grow_and_shrink(monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """A strip of changing width, entered in the middle and at an end.

    Frontiers stay small for long, and one thread's share of them grows while the other's dies out.
    """
    monkeypatch.setattr(bfs, "ALONE_EDGES", 2)
    monkeypatch.setattr(bfs, "WAKE_EDGES", -1)
    rng = np.random.default_rng(3)
    names: dict[tuple[int, int], int] = {}
    for x in range(1500):
        for y in range(int(rng.integers(1, 12))):
            names[x, y] = len(names)
    steps = ((-1, 0), (0, -1), (0, 1), (1, 0))
    graph = [
        sorted(names[x + i, y + j] for i, j in steps if (x + i, y + j) in names) for x, y in names
    ]
    for sources in (
        [names[750, 0]],
        [0, len(graph) - 1],
        [names[x, 0] for x in range(0, 1500, 50)],
    ):
        for direction in (AUTO, TOP_DOWN):
            check(graph, False, sources, threads, direction)


def test_wide_ids_and_a_long_path() -> None:
    n = 70_000
    graph: Graph = [[v for v in (u - 1, u + 1) if 0 <= v < n] for u in range(n)]
    graph[0] = [1, *range(2, n, 3)]
    for v in range(2, n, 3):
        graph[v] = [0, *graph[v]]
    for threads in (1, 2):
        check(graph, False, [n - 1], threads, AUTO)
    path: Graph = [[v for v in (u - 1, u + 1) if 0 <= v < n] for u in range(n)]
    levels = np.empty(n, np.int32)
    rows = make_rows(path, [0] * n)
    for threads in (1, 2):
        levels.fill(77)
        done = search(rows, rows, np.array([0]), levels, threads=threads)
        assert levels.tolist() == list(range(n))
        assert done.depth == n
        assert len(done.records) == bfs.MAX_RECORDS
        assert done.records["frontier"].sum() == n


def test_without_a_transpose_every_level_is_top_down() -> None:
    graph = random_graph(5, 500, 4000, directed=True)
    rows, _ = both_ways(graph, True)
    levels = np.empty(500, np.int32)
    done = search(rows, None, np.array([3]), levels, direction=BOTTOM_UP)
    assert levels.tolist() == plain_levels(graph, [3])
    assert not done.records["direction"].any()


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_depth_and_target_stop_early(direction: int) -> None:
    graph = random_graph(6, 400, 500)
    rows, _ = both_ways(graph, False)
    expected = plain_levels(graph, [0])
    levels = np.empty(400, np.int32)
    for depth in range(4):
        done = search(rows, rows, np.array([0]), levels, direction=direction, max_depth=depth)
        assert levels.tolist() == plain_levels(graph, [0], depth)
        assert done.depth == depth
    for target in (0, expected.index(2), expected.index(3)):
        done = search(rows, rows, np.array([0]), levels, direction=direction, target=target)
        assert done.depth == levels[target] == expected[target]
        assert levels.max() == expected[target]


@pytest.mark.parametrize("threads", [1, 2])
def test_what_few_reach_is_clear_for_the_next_search(threads: int) -> None:
    """Where few are reached, only they are named and cleared, so that any one left behind shows."""
    rng = np.random.default_rng(17)
    sizes = [1, 2, 5, 40, 300, 2000]
    graph: Graph = []
    for size in sizes:
        first = len(graph)
        graph += [[] for _ in range(size)]
        for a, b in rng.integers(first, first + size, (3 * size, 2)):
            graph[a].append(int(b))
    graph = [sorted(set(row)) for row in graph]
    rows_out, rows_in = both_ways(graph, directed=True)
    order = rng.permutation(len(graph)).astype(np.uint32)
    ids = np.cumsum(rng.integers(1, 9, order.size)).astype(np.uint64)
    levels, parents = np.empty(order.size, np.int32), np.empty(order.size, np.int64)
    to_ids = ToIds(np.argsort(order).astype(np.uint32), order, ids, 0)
    kept: list[BfsScratch] = []
    were_clear = []
    for _ in range(60):
        component = rng.integers(len(sizes))
        source = int(sum(sizes[:component]) + rng.integers(sizes[component]))
        max_depth = int(rng.choice([-1, 0, 1, 3]))
        wanted = parents if rng.random() < 0.5 else None
        levels.fill(77)
        parents.fill(77)
        done = search(
            rows_out,
            rows_in,
            np.array([source]),
            levels,
            wanted,
            to_ids=to_ids,
            threads=threads,
            max_depth=max_depth,
            kept=kept,
        )
        expected = np.array(plain_levels(graph, [source], max_depth))
        assert levels[order].tolist() == expected.tolist()
        assert done.sizes.tolist() == np.bincount(expected[expected >= 0]).tolist()
        assert done.edges == sum(len(graph[v]) for v in np.flatnonzero(expected >= 0))
        if wanted is not None:
            known = np.where(parents < 0, NONE, np.searchsorted(ids, parents))[order]
            stored = np.append(to_ids.stored_at, NONE)[np.minimum(known, order.size)]
            check_parents(graph, [source], expected.astype(np.int32), stored)
        (scratch,) = kept
        were_clear.append(bool((scratch.levels == UNREACHED).all()))
        assert were_clear[-1] == bool(scratch.control[state.LEVELS_CLEAR])
    assert set(were_clear) == {False, True}


def test_one_graph_serves_many_threads_at_once() -> None:
    graph = random_graph(7, 2000, 9000, hubs=1)
    rows, _ = both_ways(graph, False)
    wrong: list[int] = []

    def search_once(source: int) -> None:
        levels = np.empty(2000, np.int32)
        search(rows, rows, np.array([source]), levels, threads=2)
        if levels.tolist() != plain_levels(graph, [source]):
            wrong.append(source)

    searches = [threading.Thread(target=search_once, args=(source,)) for source in range(8)]
    for thread in searches:
        thread.start()
    for thread in searches:
        thread.join()
    assert not wrong


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_any_tail_bytes_end_without_harm(direction: int, threads: int) -> None:
    graph = random_graph(8, 3000, 6000, hubs=2)
    rows, _ = both_ways(graph, False)
    malformed = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        tails = rows.tails.copy()
        for place in rng.integers(0, tails.size - 16, 1 << seed):
            tails[place] = rng.integers(0, 256)
        if seed == 11:
            tails[:] = 0x80
        levels = np.empty(3000, np.int32)
        parents = np.empty(3000, np.uint32)
        bad = rows._replace(tails=tails, max_degree=1, degrees=rows.degrees // 50)
        done = search(
            bad, bad, np.array([0]), levels, parents, threads=threads, direction=direction
        )
        malformed += done.malformed
        assert levels.max() < 3000
    assert malformed > 0


def test_a_bad_id_is_reported() -> None:
    rows = make_rows([[1, 2], [0, 2], [0, 1]], [2, 2, 2])
    tails = rows.tails.copy()
    tails[0] = 3
    levels = np.empty(3, np.int32)
    for direction in (TOP_DOWN, AUTO):
        assert search(
            rows._replace(tails=tails), None, np.array([0]), levels, direction=direction
        ).malformed
