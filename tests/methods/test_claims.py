"""What the papers claim of their methods, as counts: the evolution of v3.3, culling, async."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import numpy as np
import pytest

from oocbfs.generate import generators
from oocbfs.results.bfs import BfsResult
from oocbfs.results.counts import Counts
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import DEFAULT_SCHEDULE, Schedule, Settings
from tests.support.exhaustive import ALL
from tests.support.shared import SharedGraphs

SCHEDULES = [Schedule(seed=1), Schedule(seed=2), Schedule(3, blocks=4, resident_blocks=3)]
EVOLUTION = ("v1", "v3.1", "v3.2", "v3.3", "auto")
KRONECKER, SMALLER = 14, 12


def kronecker(shared_graphs: SharedGraphs, scale: int) -> Path:
    return shared_graphs.make(f"methods-kron{scale}", lambda: generators.kron(scale, 16, seed=1))


def largest_source(graph: Graph) -> int:
    largest = graph.components().largest_component
    assert largest is not None
    return int(largest.label)


def counted(graph: Graph, method: str, schedule: Schedule = DEFAULT_SCHEDULE) -> Counts:
    done = searched(graph, method, schedule)
    assert done.stats.counts is not None
    return done.stats.counts


def searched(graph: Graph, method: str, schedule: Schedule = DEFAULT_SCHEDULE) -> BfsResult:
    return graph.bfs(
        largest_source(graph), engine="emulator", options=Settings(method=method, schedule=schedule)
    )


def check_evolution(path: Path, methods: tuple[str, ...] = EVOLUTION) -> dict[str, Counts]:
    """Assert that every step of the evolution moves fewer bytes over PCIe."""
    with open_file(path) as graph:
        counts = {method: counted(graph, method) for method in methods}
    sectors = [counts[method].pcie_sectors or 0 for method in methods]
    assert all(sectors)
    assert sectors == sorted(sectors, reverse=True), dict(zip(methods, sectors, strict=True))
    assert len(set(sectors[-3:])) == 3
    return counts


def test_evolution_of_v33(shared_graphs: SharedGraphs) -> None:
    counts = check_evolution(kronecker(shared_graphs, KRONECKER))
    before, after = counts["v3.2"], counts["v3.3"]
    assert before.atomics_by_array is not None
    assert after.atomics_by_array is not None
    # Positions in the queue are taken by warps; vertices are still claimed one by one.
    assert after.atomics_by_array["words"] * 10 < before.atomics_by_array["words"]
    assert (after.atomics or 0) * 5 < (before.atomics or 0)


@pytest.mark.long
@pytest.mark.skipif(not ALL, reason="takes minutes: scripts/test --all")
def test_evolution_on_larger_graphs(shared_graphs: SharedGraphs) -> None:
    counts = check_evolution(kronecker(shared_graphs, 18))
    assert (counts["v3.3"].atomics or 0) * 16 <= (counts["v3.2"].atomics or 0)
    powerlaw = shared_graphs.make(
        "methods-powerlaw", lambda: generators.powerlaw(1_000_000, 55.0, 5214)
    )
    check_evolution(powerlaw)


def test_v33_has_no_pass_over_all_vertices_besides_the_search(shared_graphs: SharedGraphs) -> None:
    """Bottom-up levels are one launch each; v3.2 needs bitmaps before and a rebuilt queue after."""
    with open_file(kronecker(shared_graphs, KRONECKER)) as graph:
        launches = {
            method: {
                level.direction: level.counts.launches
                for level in searched(graph, method).stats.levels
                if level.counts is not None
            }
            for method in ("v3.2", "v3.3")
        }
    assert launches["v3.2"] == {"top-down": 1, "bottom-up": 3}
    assert launches["v3.3"] == {"top-down": 1, "bottom-up": 1}


def redundancy(graph: Graph, method: str) -> float:
    """Return the edges expanded over those of the vertices reached: the median of three."""
    logical = counted(graph, "v3.1").edges_examined or 0
    return median(
        (counted(graph, method, schedule).edges_examined or 0) / logical for schedule in SCHEDULES
    )


@pytest.mark.parametrize("method", ["expand-contract", "two-phase"])
def test_culling_on_a_grid(shared_graphs: SharedGraphs, method: str) -> None:
    path = shared_graphs.make("methods-grid", lambda: generators.grid2d(20, 128))
    with open_file(path) as graph:
        assert redundancy(graph, f"{method}:filter=none") > 2
        assert redundancy(graph, f"{method}:filter=warp+history") < 1.05
        assert redundancy(graph, method) < 1.05


def test_culling_on_a_kronecker_graph(shared_graphs: SharedGraphs) -> None:
    with open_file(kronecker(shared_graphs, KRONECKER)) as graph:
        assert redundancy(graph, "two-phase") < 1.05


def test_asynchronous_levels_save_edge_checks(shared_graphs: SharedGraphs) -> None:
    """The paper's table spans 1 to 51 per cent; nothing is saved where one level is bottom-up."""
    with open_file(kronecker(shared_graphs, SMALLER)) as graph:
        drawn = np.random.default_rng(3).choice(graph.ids(), 40).tolist()
        sources = [source for source in drawn if graph.degree(source)][:8]
        checks = {
            method: sum(
                level.edges_examined or 0
                for source in sources
                for level in graph.bfs(
                    source, engine="emulator", options=Settings(method=method)
                ).stats.levels
                if level.direction == "bottom-up"
            )
            for method in ("xbfs", "async")
        }
    assert 0.01 <= 1 - checks["async"] / checks["xbfs"] <= 0.51


def test_aggregation_and_balance(shared_graphs: SharedGraphs) -> None:
    """Lanes that fetch 32 at a time need a 32nd of the atomics for work that threads need."""
    with open_file(kronecker(shared_graphs, SMALLER)) as graph:
        words = [
            (counted(graph, f"scan-free:balance={balance}").atomics_by_array or {})["words"]
            for balance in ("stride", "fetch32", "fetch1")
        ]
    assert words[0] < words[1] < words[2]
    assert words[2] - words[0] > 16 * (words[1] - words[0])


def test_launches_and_read_backs(shared_graphs: SharedGraphs) -> None:
    """As the papers say: so many launches a level, one read-back."""
    launches = {"simple": 1, "harish": 2, "queue": 1, "v1": 1, "two-phase": 2, "scan": 4}
    with open_file(kronecker(shared_graphs, 10)) as graph:
        for method, number in launches.items():
            levels = searched(graph, method).stats.levels
            for level in levels:
                assert level.counts is not None
                assert level.counts.launches == number, method
                assert level.counts.read_backs == (2 if method == "two-phase" else 1), method


def test_plain_claims_count_duplicates_and_atomics_none(shared_graphs: SharedGraphs) -> None:
    with open_file(kronecker(shared_graphs, SMALLER)) as graph:
        for method in ("simple", "harish"):
            counts = counted(graph, method)
            assert counts.atomics == 0
            assert (counts.duplicates or 0) > 0
        exact = searched(graph, "v1")
        total = exact.stats.counts
        assert total is not None
        assert total.duplicates == 0
        found = int(np.sum(exact.level_sizes)) - 1
        assert total.claims_won == total.queue_writes == found
        assert total.edges_examined == (total.claims_lost or 0) + found
