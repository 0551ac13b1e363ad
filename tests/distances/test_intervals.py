"""Stated intervals hold: on graphs whose distances are known, over a thousand samples."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import oocbfs
from oocbfs.distances.distribution import distribution_of
from oocbfs.distances.estimates import Estimates
from oocbfs.distances.intervals import Figure, band, mean_of, sources_for
from oocbfs.distances.scope import ALL, scope_of
from oocbfs.distances.searches import Searches
from oocbfs.distances.sources import Sources, choose
from oocbfs.generate import generators
from oocbfs.search.graph import Graph, open_file

_RUNS = 1000


class Known:
    """Sources whose figures were found before, so that a thousand samples take no searches."""

    def __init__(self, graph: Graph, **scope: Any) -> None:
        self.stored = graph._stored
        self.scope = scope_of(graph, **scope)
        with Searches(graph, self.scope) as searches:
            self.sizes = [one.sizes for one in searches.sizes(self.scope.positions())]
            self.all = Sources(searches, self.scope.positions())
            self.all.run()
            self.searches = searches
        self.most = float(self.all.pairs.size - 1)
        self.exact = distribution_of(self.stored, self.all, 0.95, self.most)

    def sample(self, count: int, seed: int, confidence: float) -> Any:
        numbers = np.searchsorted(self.scope.positions(), choose(self.scope, count, seed))
        found = Sources(self.searches, self.scope.positions()[numbers])
        for name in ("reached", "totals", "harmonic", "depths"):
            getattr(found, name)[:] = getattr(self.all, name)[numbers]
        for number in numbers.tolist():
            found._count(self.sizes[number])
        return distribution_of(self.stored, found, confidence, self.most + 3)


def edges_of_two_worlds() -> NDArray[np.int64]:
    """A dense part, a long path at it, and another component: sources differ a lot."""
    path = np.stack((np.arange(60, 100), np.arange(61, 101)), axis=1)
    other = np.stack((np.arange(120, 140), np.arange(121, 141)), axis=1)
    dense = np.random.default_rng(5).integers(0, 61, (200, 2))
    return np.concatenate((dense, path, other))


@pytest.mark.parametrize("component", ["largest", ALL])
@pytest.mark.parametrize("confidence", [0.95, 0.5])
def test_coverage(tmp_path: Path, component: str, confidence: float) -> None:
    oocbfs.convert(edges_of_two_worlds(), tmp_path / "g.ocg")
    with open_file(tmp_path / "g.ocg") as graph:
        known = Known(graph, component=component)
    exact = known.exact
    held: dict[str, int] = {}
    for seed in range(_RUNS):
        found = known.sample(40, seed, confidence)
        assert not found.is_exact
        size = found.pairs.size
        # Beyond the largest distance that was found, shares are those within it.
        true = exact.shares
        pad = max(0, true.size - size)
        low, high = (np.pad(bound, (0, pad), mode="edge") for bound in (found.low, found.high))
        figures = {
            "average": (found.average, exact.average),
            "reachable": (found.reachable, exact.reachable),
            "harmonic": (found.harmonic_mean, exact.harmonic_mean),
            "median": (found.median(), exact.median()),
            "effective": (found.effective_diameter(), exact.effective_diameter()),
        }
        outcomes = {
            name: one.low <= all_.value <= one.high for name, (one, all_) in figures.items()
        }
        outcomes["shares"] = bool(((low - 1e-12 <= true) & (true <= high + 1e-12)).all())
        for name, holds in outcomes.items():
            held[name] = held.get(name, 0) + holds
    assert all(count >= confidence * _RUNS for count in held.values()), held


def test_intervals_say_something(tmp_path: Path) -> None:
    """Bounds that always hold are easy; these narrow with the number of sources."""
    oocbfs.convert(generators.kron(10), tmp_path / "g.ocg")
    with open_file(tmp_path / "g.ocg") as graph:
        known = Known(graph)
    few, many = (known.sample(count, 1, 0.95) for count in (50, 500))
    assert many.error < few.error / 2
    assert many.average.error < few.average.error / 2 < 2
    assert many.effective_diameter().error < 1


def test_mean_of_numbers_at_the_ends() -> None:
    """Half of the numbers are 0, half 1: the largest variance there is."""
    rng = np.random.default_rng(3)
    held = sum(
        abs(mean_of(rng.integers(0, 2, 50).astype(float), 0.0, 1.0, 10**6, 0.9).value - 0.5)
        <= mean_of(np.array([0.0, 1.0] * 25), 0.0, 1.0, 10**6, 0.9).error
        for _ in range(_RUNS)
    )
    assert held >= 0.9 * _RUNS


def test_number_of_sources_for_an_error() -> None:
    for error, confidence in ((0.1, 0.95), (0.01, 0.95), (0.05, 0.5)):
        count = sources_for(error, confidence)
        half = (1 + confidence) / 2
        assert band(count, half) <= error < band(count - 1, half)


def test_words() -> None:
    assert Figure.exactly(3.25).text() == "3.25, exact"
    assert Figure(3.0, 2.5, 3.25, 0.95).text() == "3, sampled, ± 0.5 at 95 %"
    assert Figure(3.0, 2.5, 9.25, 0.95).text() == "3, sampled, 2.5 to 9.25 at 95 %"
    assert Figure(3.0, 2.5, math.inf, 0.9).text() == "3, sampled, at least 2.5 at 90 %"


@pytest.mark.parametrize("directed", [False, True])
def test_coverage_of_estimated_centralities(tmp_path: Path, directed: bool) -> None:
    """All vertices at once are within their intervals, in as many samples as is stated."""
    edges = np.random.default_rng(7).integers(0, 40, (110, 2))
    oocbfs.convert(edges, tmp_path / "g.ocg", directed=directed)
    with open_file(tmp_path / "g.ocg") as graph:
        scope = scope_of(graph)
        positions = scope.positions()
        n = positions.size
        assert n > 20
        with Searches(graph, scope) as searches:
            levels = [np.array(one.levels) for one in searches.levels(positions)]
        distances = np.array([row[positions] for row in levels])
        ids = graph.ids()[positions]
        closeness = graph.closeness(ids, component="largest")
        harmonic = graph.harmonic(ids, component="largest")
        # What a search finds is what the estimates are made of.
        every = graph.estimated_centralities(n)
        assert every["closeness"].values == pytest.approx(closeness)
        assert every["harmonic"].values == pytest.approx(harmonic)
        assert every["harmonic"].error == 0
        some = graph.estimated_centralities(12, seed=3)
        outward = graph.estimated_centralities(n, inward=False)["harmonic"].values
        assert outward == pytest.approx(graph.harmonic(ids, inward=False, component="largest"))
    held, most = 0, float(distances.max())
    for seed in range(_RUNS):
        found = Estimates(scope, 1)
        chosen = np.searchsorted(positions, choose(scope, 12, seed))
        for number in chosen.tolist():
            found.add(levels[number])
        one, other = found.closeness(12, 0.6, most), found.harmonic(12, 0.6)
        assert one is not None
        held += bool(
            (one.low - 1e-12 <= closeness).all()
            and (closeness <= one.high + 1e-12).all()
            and (other.low - 1e-12 <= harmonic).all()
            and (harmonic <= other.high + 1e-12).all()
        )
        if seed == 3:
            assert found.harmonic(12, 0.95).values == pytest.approx(some["harmonic"].values)
    assert held >= 0.6 * _RUNS


def test_estimated_centralities_narrow(tmp_path: Path) -> None:
    oocbfs.convert(generators.kron(9), tmp_path / "g.ocg")
    with open_file(tmp_path / "g.ocg") as graph:
        few, many = (graph.estimated_centralities(count) for count in (20, 320))
        assert "closeness" not in graph.estimated_centralities(5, component="all")
    # Without room for both, the interval would be cut at the ends.
    assert many["harmonic"].error < few["harmonic"].error / 2
    assert 0 < many["closeness"].error < few["closeness"].error
