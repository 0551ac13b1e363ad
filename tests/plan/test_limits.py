"""A plan is what a search then does, and at every edge of it the search keeps to its budget."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from oocbfs.generate import generators
from tests.support import children
from tests.support.exhaustive import ALL
from tests.support.memory_limit import run_at_limit
from tests.support.shared import SharedGraphs

GRAPHS: dict[str, tuple[Any, dict[str, Any]]] = {
    "kron20": (lambda: generators.kron(20, 4), {}),
    "rmat19": (lambda: generators.rmat(19, 4), {"directed": True}),
    "grid600": (lambda: generators.grid2d(600, 600), {}),
}


@pytest.fixture(scope="module")
def graphs(shared_graphs: SharedGraphs) -> dict[str, Path]:
    return {
        name: shared_graphs.make(name, make, **options) for name, (make, options) in GRAPHS.items()
    }


@pytest.mark.long
def test_a_search_does_what_is_planned(graphs: dict[str, Path], tmp_path: Path) -> None:
    """In a process of its own: what tests import and leave in memory counts too."""
    links = [tmp_path / f"{name}.ocg" for name in (graphs if ALL else ["kron20"])]
    for link in links:
        link.hardlink_to(graphs[link.stem])
    done = children.run(
        [sys.executable, "-m", "tests.support.planned", *links],
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr


def plan(path: Path, *options: object) -> dict[str, Any]:
    """Plan in a process of its own, as a search is run."""
    command = [sys.executable, "-m", "oocbfs", "plan", path, "--samples", "0", "--json", *options]
    done = children.run(list(map(str, command)), capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout)["cpu"]
    return found


EDGES = [
    ("auto", ["--source", "@largest"], []),
    ("cpu", ["--source", "7"], []),
    ("disk", ["--source", "7"], ["--parents"]),
    *([("disk", ["--source", "7"], []), ("auto", ["--source", "7"], ["--parents"])] * ALL),
]


@pytest.mark.parametrize(("engine", "source", "parents"), EDGES)
@pytest.mark.parametrize("name", GRAPHS if ALL else ["kron20"])
def test_a_budget_is_a_limit_at_its_edge(
    graphs: dict[str, Path],
    tmp_path: Path,
    name: str,
    engine: str,
    source: list[str],
    parents: list[str],
) -> None:
    """In a control group of exactly the least budget, and no byte resident beyond it."""
    largest = source if "@largest" in source else []
    options = ["--engine", engine, *parents, *largest]
    least = plan(graphs[name], *options, "--memory", "1M")["needed_bytes"]
    files = ["--parents", tmp_path / "parents.npy"] if parents else []
    search = [sys.executable, "-m", "oocbfs", "bfs", graphs[name], "--engine", engine]
    done = run_at_limit([*search, *source, *files, "--memory", least, "--tmp", tmp_path], least)
    assert done.returncode == 0, done.stderr


@pytest.mark.long
@pytest.mark.skipif(not ALL, reason="compiles for a minute: only with --all")
@pytest.mark.parametrize("verb", ["components", "bfs --source @largest", "bfs --source 7"])
def test_compiling_keeps_to_a_budget(graphs: dict[str, Path], tmp_path: Path, verb: str) -> None:
    """Without compiled code, too: as little as is enough for compiling, and one byte less."""
    name, *arguments = verb.split()
    search = [sys.executable, "-m", "oocbfs", name, graphs["grid600"], *arguments, "--memory"]
    cache = {"NUMBA_CACHE_DIR": str(tmp_path)}
    refused = run_at_limit([*search, "200M"], 200 << 20, **cache)
    assert refused.returncode == 1
    assert "compiling kernels, once, needs 296.0 MB" in refused.stderr
    budget = 296 << 20
    done = run_at_limit([*search, budget], budget, **cache)
    assert done.returncode == 0, done.stderr
    assert "compiling kernels" in done.stderr
    again = run_at_limit([*search, "200M"], 200 << 20, **cache)
    assert again.returncode == 0, again.stderr
    assert "compiling" not in again.stderr
