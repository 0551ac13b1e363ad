"""Memory of results, which comes back when nobody holds them any more."""

import gc
from pathlib import Path

import numpy as np

import oocbfs
from oocbfs.arrays import ResultPool


def test_memory_comes_back_with_the_last_view() -> None:
    pool = ResultPool()
    first = pool.allocate(100_000, np.int32)
    first[:] = 7
    address = first.ctypes.data
    view = first[10:20]
    del first
    gc.collect()
    second = pool.allocate(100_000, np.int32)
    assert second.ctypes.data != address
    second[:] = 8
    assert view.tolist() == [7] * 10
    del view
    gc.collect()
    assert pool.allocate(100_000, np.int32).ctypes.data == address


def test_results_that_are_kept_stay_as_they_are(tmp_path: Path) -> None:
    """While others are made in the memory of those that are not."""
    ring = np.stack([np.arange(50_000), np.roll(np.arange(50_000), 1)], axis=1)
    oocbfs.convert(ring, tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        kept = [graph.bfs(source, parents=True) for source in range(0, 50_000, 5_000)]
        for _ in range(10):
            graph.bfs(1, parents=True)
    distance = np.abs(np.arange(50_000)[:, None] - np.arange(0, 50_000, 5_000))
    expected = np.minimum(distance, 50_000 - distance)
    for i, result in enumerate(kept):
        np.testing.assert_array_equal(result.levels, expected[:, i])
        reached = np.flatnonzero(result.levels > 0)
        assert (result.levels[result.parents[reached]] == result.levels[reached] - 1).all()
