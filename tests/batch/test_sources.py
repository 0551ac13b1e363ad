"""Vertices to start from: the same as from a list of all candidates, in less memory."""

import tracemalloc

import numpy as np
import pytest

from oocbfs.batch import sources as choice
from oocbfs.batch.sources import choose_hubs, choose_random


@pytest.fixture(params=[7, 100, 1 << 20])
def degrees(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    """Return 1,000 degrees, half of them 0, and pieces of this size."""
    monkeypatch.setattr(choice, "_PIECE", request.param)
    rng = np.random.default_rng(1)
    return (rng.integers(0, 20, 1000) * rng.integers(0, 2, 1000)).astype(np.uint32)


@pytest.mark.parametrize("count", [0, 1, 30, 300, 5000])
@pytest.mark.parametrize("third", [False, True])
def test_random_ones(degrees: np.ndarray, count: int, third: bool) -> None:
    candidates = np.flatnonzero(degrees)
    if third:
        candidates = candidates[candidates % 3 == 0]
        chosen = choose_random(degrees, count, 5, lambda vertices: vertices % 3 == 0)
    else:
        chosen = choose_random(degrees, count, 5)
    expected = np.random.default_rng(5).choice(
        candidates, min(count, candidates.size), replace=False
    )
    np.testing.assert_array_equal(chosen, expected)


@pytest.mark.parametrize("count", [0, 1, 30, 5000])
def test_hubs(degrees: np.ndarray, count: int) -> None:
    expected = np.argsort(-degrees.astype(np.int64), kind="stable")[:count]
    np.testing.assert_array_equal(choose_hubs(degrees, count), expected)


def test_nothing_to_choose_from() -> None:
    nothing = np.zeros(5, np.uint32)
    assert choose_random(nothing, 3, 1).size == 0
    assert choose_hubs(nothing[:0], 3).size == 0


def test_memory_does_not_grow_with_the_vertices() -> None:
    degrees = np.ones(30_000_000, np.uint32)
    tracemalloc.start()
    choose_random(degrees, 100, 1)
    choose_hubs(degrees, 100)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 64 << 20
