"""Budgets that hold for components too: under the kernel's own limit nothing is killed."""

import json
import os
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.errors import BudgetError
from oocbfs.generate import generators
from tests.support.crafting import make_archive
from tests.support.memory_limit import needed_bytes, run_limited
from tests.support.shared import SharedGraphs


@pytest.fixture(scope="module")
def graph(shared_graphs: SharedGraphs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sparse, so that there are many components, and stored by degree, so that names need room.

    A link in a folder of this worker's own, in which no run may leave anything.
    """
    path = tmp_path_factory.mktemp("budget") / "sparse.ocg"
    os.link(shared_graphs.make("sparse", lambda: generators.uniform(21, 1), order="degree"), path)
    return path


def command(graph: Path, *arguments: object) -> list[str]:
    return [sys.executable, "-m", "oocbfs", "components", str(graph), *map(str, arguments)]


@cache
def asked_for(graph: Path, engine: str) -> int:
    """Return the bytes that a refusal asks for, where labels are to be written."""
    labels = graph.with_name("labels.npy")
    words = ("--engine", engine, "--json", "--labels", labels, "--memory", "1M")
    refused = run_limited(command(graph, *words), 1 << 30)
    assert refused.returncode == 1
    assert not labels.exists()
    return needed_bytes(refused.stderr, "finding components")


@pytest.mark.parametrize("extra_bytes", [0, 12 << 20, 64 << 20])
@pytest.mark.parametrize("engine", ["disk", "cpu"])
def test_what_a_refusal_asks_for_is_enough(
    graph: Path, tmp_path: Path, engine: str, extra_bytes: int
) -> None:
    labels = tmp_path / "labels.npy"
    arguments = ("--engine", engine, "--json", "--labels", labels, "--memory")
    budget = asked_for(graph, engine) + extra_bytes
    done = run_limited(command(graph, *arguments, budget), int(1.1 * budget))
    assert done.returncode == 0, done
    assert json.loads(done.stdout)["engine"] == engine
    with oocbfs.open(graph) as opened:
        np.testing.assert_array_equal(np.load(labels), opened.components().labels)
    assert not list(graph.parent.glob("tmp*"))


def test_a_budget_below_the_file_reads_from_disk(graph: Path) -> None:
    with oocbfs.open(graph) as opened:
        assert opened.components(memory="8G").stats.engine == "cpu"
        with pytest.raises(BudgetError, match=r"finding components needs .* may take 1.0 MB"):
            opened.components(memory="1M")


def test_archives_are_not_read_from_disk(tmp_path: Path) -> None:
    oocbfs.convert(generators.kron(10), tmp_path / "g.ocg", codec="raw")
    make_archive(tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg") as opened:
        assert opened.components(memory="8G").num_components > 1
        with pytest.raises(BudgetError, match="convert it again"):
            opened.components(engine="disk")
