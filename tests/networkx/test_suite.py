"""networkx's own tests, with its functions dispatched to the backend."""

from __future__ import annotations

import json
import os
import sys
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

from oocbfs.networkx import backend
from oocbfs.networkx.info import FUNCTIONS, ON_FILES
from tests.support import children
from tests.support.exhaustive import ALL

ROOT = Path(__file__).parents[2]
MODULES = (
    "centrality.tests.test_closeness_centrality",
    "centrality.tests.test_harmonic_centrality",
    "components.tests.test_connected",
    "components.tests.test_weakly_connected",
    "shortest_paths.tests.test_generic",
    "shortest_paths.tests.test_unweighted",
    "tests.test_dag",
    "tests.test_distance_measures",
    "traversal.tests.test_bfs",
)
# Hundreds of random graphs, in --all only.
LONG = "use_bounds_on_off_consistency"


def run_suite(folder: Path, *arguments: str) -> dict[str, Any]:
    """Run tests of networkx with the backend, and give what was counted."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.support.dispatch_count"]
    options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-c", os.devnull, "--rootdir", "."]
    counts = folder / "counts.json"
    environment = {
        **os.environ,
        "NETWORKX_TEST_BACKEND": "oocbfs",
        "NETWORKX_FALLBACK_TO_NX": "True",
        "OOCBFS_DISPATCH_COUNT": str(counts),
        "PYTHONPATH": str(ROOT),
    }
    environment.pop("PYTEST_ADDOPTS", None)
    done = children.run(
        [*command, *options, *arguments],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert counts.exists(), done.stdout + done.stderr
    found: dict[str, Any] = json.loads(counts.read_text())
    assert not found["failed"], done.stdout[-5000:]
    assert done.returncode == 0, done.stdout[-5000:]
    return found


@pytest.fixture(autouse=True)
def installed() -> None:
    """networkx finds backends by what the installation says."""
    for group in ("networkx.backends", "networkx.backend_info"):
        found = [entry.name for entry in entry_points(group=group)]
        assert "oocbfs" in found, "install oocbfs again: pip install --no-deps -e ."


@pytest.mark.long
def test_its_tests_of_our_functions(tmp_path: Path) -> None:
    modules = [f"networkx.algorithms.{module}" for module in MODULES]
    chosen = [] if ALL else ["-k", f"not {LONG}"]
    counts = run_suite(tmp_path, *chosen, "--pyargs", *modules)
    assert counts["outcomes"] == {"passed": counts["outcomes"]["passed"]}
    assert counts["outcomes"]["passed"] >= (770 if ALL else 270)
    # Every function was run by the backend, and none that it has by networkx but for weights.
    assert set(counts["ran"]) == FUNCTIONS.keys() - ON_FILES
    assert set(counts["left_to_networkx"]) & set(FUNCTIONS) <= {*backend.REFUSED, *ON_FILES}


@pytest.mark.long
@pytest.mark.skipif(not ALL, reason="all of networkx's tests take long: scripts/test --all")
def test_all_its_tests(tmp_path: Path) -> None:
    counts = run_suite(tmp_path, "--pyargs", "networkx")
    assert counts["outcomes"]["passed"] > 5000
    assert set(counts["ran"]) == FUNCTIONS.keys() - ON_FILES
    assert set(counts["left_to_networkx"]) & set(FUNCTIONS) <= {*backend.REFUSED, *ON_FILES}
    print(counts["outcomes"], counts["reasons"])


def test_the_backend_is_what_it_says() -> None:
    helpers = {"can_run", "should_run", "convert_from_nx", "convert_to_nx"}
    assert set(backend.__all__) == {*FUNCTIONS, *helpers}
    algorithms = set(nx.utils.backends._registered_algorithms)
    assert algorithms & set(vars(backend)) == set(FUNCTIONS) <= algorithms
    assert "oocbfs" in nx.bfs_edges.__wrapped__.backends
    assert "Without ``sort_neighbors`` only." in nx.bfs_edges.__doc__


def test_asking_costs_nothing() -> None:
    """A priority that is set for all programs delays those that need no search."""
    program = (
        "import sys, networkx as nx\n"
        "nx.config.backend_priority = ['oocbfs']\n"
        "print(nx.shortest_path(nx.path_graph(9), 0, 5), 'numba' in sys.modules)\n"
        "print(nx.has_path(nx.path_graph(3), 0, 2, backend='oocbfs'), 'numba' in sys.modules)\n"
    )
    done = children.run_python(program)
    assert done.stdout.splitlines() == ["[0, 1, 2, 3, 4, 5] False", "True True"]


def calls(graph: Any, log: pytest.LogCaptureFixture, name: str, *args: Any, **kwargs: Any) -> bool:
    """Return whether networkx ran the backend."""
    log.clear()
    with log.at_level("DEBUG", "networkx.utils.backends"), nx.config(backend_priority=["oocbfs"]):
        value = getattr(nx, name)(graph, *args, **kwargs)
        list(value) if hasattr(value, "__next__") else None
    return any(entry.startswith("Using backend 'oocbfs'") for entry in log.messages)


def test_small_graphs_are_left_to_networkx(caplog: pytest.LogCaptureFixture) -> None:
    graph = nx.path_graph(100)
    assert not calls(graph, caplog, "bfs_edges", 0)
    assert not calls(graph, caplog, "closeness_centrality")
    larger = nx.path_graph(1_500)
    assert calls(larger, caplog, "eccentricity", [0])
    assert not calls(nx.path_graph(1_500), caplog, "shortest_path_length", 0)
    # Components need a file, which pays later than arrays do.
    assert not calls(nx.path_graph(32_000), caplog, "number_connected_components")
    assert set(backend._LEAST_EDGES_OF) <= set(FUNCTIONS)
    ours = backend.convert_from_nx(graph)
    assert calls(ours, caplog, "bfs_edges", 0)
    assert calls(ours, caplog, "has_path", 0, 99)


def test_what_networkx_converts_it_keeps(caplog: pytest.LogCaptureFixture) -> None:
    graph = nx.path_graph(32_000)
    assert not calls(graph, caplog, "has_path", 0, 5)
    assert not calls(graph, caplog, "shortest_path", 0, 5)
    assert calls(graph, caplog, "single_source_shortest_path_length", 0)
    with nx.config(warnings_to_ignore={"cache"}):
        assert calls(graph, caplog, "has_path", 0, 5)
        assert calls(graph, caplog, "shortest_path_length", 0, 5)
        graph.add_edge(0, 5)
        assert not calls(graph, caplog, "has_path", 0, 5)
        assert nx.shortest_path_length(graph, 0, 6, backend="oocbfs") == 2


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [
        ("shortest_path", (0, 2), {"weight": "weight"}),
        ("shortest_path_length", (0, 2, "weight"), {}),
        ("shortest_path_length", (0,), {"weight": lambda *_: 1}),
        ("closeness_centrality", (), {"distance": "weight"}),
        ("harmonic_centrality", (None, "weight"), {}),
        ("eccentricity", (0,), {"weight": "weight"}),
        ("eccentricity", (0, {0: {0: 0, 1: 1, 2: 2}}), {}),
        ("diameter", ({0: 2, 1: 1, 2: 2},), {}),
        ("center", (), {"weight": "weight"}),
        ("bfs_edges", (0,), {"sort_neighbors": sorted}),
        ("bfs_successors", (0, None, sorted), {}),
    ],
)
def test_what_only_networkx_knows(
    caplog: pytest.LogCaptureFixture, name: str, args: Any, kwargs: Any
) -> None:
    graph = nx.path_graph(3)
    assert isinstance(backend.can_run(name, (graph, *args), kwargs), str)
    with pytest.raises(NotImplementedError):
        getattr(nx, name)(graph, *args, backend="oocbfs", **kwargs)
    # A file is not taken apart behind anybody's back, but may be.
    ours = backend.convert_from_nx(graph)
    with pytest.raises(NotImplementedError):
        getattr(nx, name)(ours, *args, **kwargs)
    with nx.config(fallback_to_nx=True):
        assert not calls(ours, caplog, name, *args, **kwargs)
