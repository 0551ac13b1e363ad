"""Compiling is counted, once, and is no part of what a search takes."""

import time

import numba
import numpy as np
import pytest

from oocbfs.generate import generators
from oocbfs.kernels.compiling import clock, compile_seconds, counting
from oocbfs.kernels.results import levels as kernels
from oocbfs.tools.shared.searches import Stopwatch, compiling
from tests.support.shared import SharedGraphs


def test_numba_is_counted() -> None:
    before, start, since = compile_seconds(), time.perf_counter(), clock()

    inner = numba.njit(lambda x: x + 1)
    outer = numba.njit(lambda x: inner(x) + 1)
    assert outer(1) == 3
    wall, compiled = time.perf_counter() - start, compile_seconds() - before
    # A function that another one calls is compiled while that one is.
    assert 0 < compiled <= wall
    assert clock() - since < wall
    outer(2)
    assert compile_seconds() - before == compiled


def test_blocks_inside_of_blocks_count_once() -> None:
    before, start = compile_seconds(), time.perf_counter()
    with pytest.raises(ValueError, match="no"), counting(), counting():
        raise ValueError("no")
    assert 0 < compile_seconds() - before <= time.perf_counter() - start
    assert clock() <= clock()


def test_a_command_counts_it_apart() -> None:
    watch = Stopwatch()
    with counting():
        time.sleep(0.05)
    took = watch.values()
    assert took["compile_seconds"] >= 0.05 > took["seconds"]
    assert dict(compiling(took["compile_seconds"]))["compiling"].endswith("once on this machine")
    assert not list(compiling(0.0))


def test_a_search_says_what_compiling_took(
    shared_graphs: SharedGraphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kernel of the search is compiled anew, as if it never had been."""
    path = shared_graphs.make("clock-kron8", lambda: generators.kron(8))
    import oocbfs

    with oocbfs.open(path) as graph:
        graph.bfs(1, engine="disk")
        assert graph.bfs(1, engine="disk").stats.compile_seconds == 0
        slow = numba.njit(kernels.count_levels.py_func)
        monkeypatch.setattr(kernels, "count_levels", slow)
        stats = graph.bfs(1, engine="disk").stats
        assert stats.compile_seconds > 0
        parts = stats.load_seconds, stats.search_seconds, stats.to_ids_seconds
        assert sum(parts) == pytest.approx(stats.seconds)
        assert min(parts) >= 0
        assert stats.edges_per_second == stats.edges_traversed / stats.seconds
        assert np.isclose(graph.bfs(1, engine="disk").stats.compile_seconds, 0)
