"""Budgets that hold: under the kernel's limit no search is killed, small ones are refused."""

import itertools
import json
import random
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.arrays import ResultArrays, is_mapped
from oocbfs.errors import BudgetError, OutputError
from oocbfs.generate import generators
from tests.support import children
from tests.support.crafting import make_archive
from tests.support.exhaustive import ALL
from tests.support.memory_limit import needed_bytes, run_limited
from tests.support.shared import SharedGraphs

GRAPHS: dict[str, tuple[Any, dict[str, Any]]] = {
    "kron20": (lambda: generators.kron(20, 4), {}),
    "uniform21": (lambda: generators.uniform(21, 2), {"order": "degree"}),
    "grid1200": (lambda: generators.grid2d(1200, 1200), {}),
    "rmat19": (lambda: generators.rmat(19, 4), {"directed": True}),
}
WAYS = list(itertools.product(GRAPHS, ("disk", "auto", "disk", "cpu")))
NUM_RUNS = 60 if ALL else len(WAYS)


@pytest.fixture(scope="module")
def graphs(
    shared_graphs: SharedGraphs, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    return shared_graphs.linked(tmp_path_factory.mktemp("budget"), GRAPHS)


def command(graph: Path, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "oocbfs", "bfs", str(graph), *map(str, arguments)]


@pytest.mark.parametrize("seed", range(NUM_RUNS))
def test_never_killed(graphs: dict[str, Path], tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    name, engine = WAYS[seed % len(WAYS)]
    source, threads = rng.randrange(100_000), rng.choice([1, 2, 3, 8])
    files = [tmp_path / "levels.npy", tmp_path / "parents.npy"][: rng.randrange(3)]
    arguments: list[object] = ["--engine", engine, "--source", source, "--threads", threads]
    for option, file in zip(("--levels", "--parents"), files, strict=False):
        arguments += [option, file]
    if rng.random() < 0.2:
        arguments.append("--validate")
    budget = rng.randrange(235 << 20, 330 << 20)
    done = run_limited(command(graphs[name], *arguments, "--memory", budget, "--json"), budget)
    if done.returncode == 1:
        assert needed_bytes(done.stderr) > budget
        assert not list(tmp_path.iterdir())
        return
    assert done.returncode == 0, done
    found = json.loads(done.stdout)
    with oocbfs.open(graphs[name]) as graph:
        expected = graph.bfs(source)
        assert found["level_sizes"] == expected.level_sizes.tolist()
        if files:
            np.testing.assert_array_equal(np.load(files[0]), expected.levels)
        if len(files) == 2:
            parents = np.load(files[1])
            others = np.flatnonzero(expected.levels > 0)
            assert (expected.levels[parents[others]] == expected.levels[others] - 1).all()
    assert not list(graphs[name].parent.glob("tmp*"))


@pytest.mark.parametrize("engine", ["auto", "cpu", "disk"])
def test_what_a_refusal_asks_for_is_enough(graphs: dict[str, Path], engine: str) -> None:
    arguments = ("--engine", engine, "--source", 7, "--memory")
    refused = children.run(
        command(graphs["kron20"], *arguments, "1M"), capture_output=True, text=True, check=False
    )
    assert refused.returncode == 1
    budget = needed_bytes(refused.stderr)
    done = run_limited(command(graphs["kron20"], *arguments, budget), budget)
    assert done.returncode == 0, done
    assert "reached" in done.stdout


def check_mapped_results(path: str) -> None:
    """Search with hardly more memory than is needed."""
    with oocbfs.open(path) as graph:
        expected = graph.bfs(7, parents=True)
        with pytest.raises(BudgetError, match="needs") as refusal:
            graph.bfs(7, engine="disk", memory="1M", parents=True)
        budget = needed_bytes(str(refusal.value)) + (1 << 20)
        found = graph.bfs(7, engine="disk", memory=budget, parents=True)
        assert is_mapped(found.levels)
        np.testing.assert_array_equal(found.levels, expected.levels)
        # Parents may differ, but not where they are.
        levels, parents = expected.levels, found.parents
        others = np.flatnonzero(levels > 0)
        assert (
            levels[graph.positions(parents[others].astype(np.uint64))] + 1 == levels[others]
        ).all()
        assert ((parents < 0) == (levels < 0)).all()


def test_results_without_room_are_mapped(graphs: dict[str, Path]) -> None:
    """In a process of its own: what other tests left in this one's memory counts too."""
    code = "import sys; from tests.plan.test_budget import check_mapped_results as check; "
    code += "check(sys.argv[1])"
    done = children.run(
        [sys.executable, "-c", code, graphs["uniform21"]],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_budget_of_a_graph_and_of_one_search(graphs: dict[str, Path]) -> None:
    with oocbfs.open(graphs["kron20"], memory="8G") as graph:
        assert graph.bfs(1).stats.engine == "cpu"
        assert graph.bfs(1, engine="disk").stats.engine == "disk"
        for engine in ("auto", "cpu", "disk"):
            with pytest.raises(
                BudgetError, match=r"kron20\.ocg: a search needs .* may take 1.0 MB"
            ):
                graph.bfs(1, engine=engine, memory="1M")
        with pytest.raises(BudgetError, match="cannot read"):
            graph.bfs(1, memory="a lot")


def test_archives_are_not_read_from_disk(tmp_path: Path) -> None:
    oocbfs.convert(generators.kron(10), tmp_path / "g.ocg", codec="raw")
    make_archive(tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        assert graph.bfs(1, memory="8G").reached > 1
        with pytest.raises(BudgetError, match="convert it again"):
            graph.bfs(1, memory="1M")
        with pytest.raises(BudgetError, match="convert it again"):
            graph.bfs(1, engine="disk")


def test_no_place_for_results(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"none: no place for 4,000 bytes.*tmp"):
        ResultArrays(10, tmp_path / "none").allocate(1000, np.int32)
