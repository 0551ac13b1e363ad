"""Budgets that hold for distances of a whole graph: nothing is outside of the plan."""

import csv
import json
import re
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.arrays import ResultArrays, is_mapped, over_pieces, pieces_of
from oocbfs.distances.job import Job, Question
from oocbfs.distances.state import read_state, write_state
from oocbfs.errors import BudgetError
from oocbfs.generate import generators
from oocbfs.plan.distances import distances_needs
from oocbfs.search.graph import open_file
from tests.support.memory_limit import needed_bytes, run_at_limit
from tests.support.shared import SharedGraphs

_GRAPHS: dict[str, tuple[Any, dict[str, Any]]] = {
    "kron21": (lambda: generators.kron(21, 2), {"order": "degree"}),
    "rmat19": (lambda: generators.rmat(19, 4), {"directed": True}),
}
# What is written for every vertex takes time: of the smaller graph.
_QUESTIONS = {
    "kron21": ("--exact", "diameter"),
    "rmat19": ("--exact", "diameter,radius", "--closeness"),
}


@pytest.fixture(scope="module")
def graphs(
    shared_graphs: SharedGraphs, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    return shared_graphs.linked(tmp_path_factory.mktemp("budget"), _GRAPHS)


def command(graph: Path, *words: object) -> list[str]:
    question = (*_QUESTIONS[graph.stem], "--samples", 16, "--json")
    return [sys.executable, "-m", "oocbfs", "distances", str(graph), *map(str, question + words)]


@cache
def expected(graph: Path) -> dict[str, Any]:
    """Return the figures that do not depend on memory; all code is compiled then."""
    with oocbfs.open(graph, memory="4G") as opened:
        answer = Job(opened, Question(exact=("diameter",), samples=16)).run()
    assert answer.extremes is not None
    assert answer.distribution is not None
    return {
        "diameter": answer.extremes.diameter[0],
        "scope_vertices": answer.scope.num_vertices,
        "distribution": answer.distribution.summary(),
    }


@cache
def asked_for(graph: Path) -> int:
    """Return the bytes that a refusal asks for, which nothing precedes."""
    expected(graph)
    refused = run_at_limit(command(graph, "--memory", "1M"), 1 << 30)
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
    return needed_bytes(refused.stderr, "finding distances")


@pytest.mark.parametrize(
    ("name", "extra_bytes"), [("kron21", 0), ("kron21", 40 << 20), ("rmat19", 0)]
)
def test_what_a_refusal_asks_for_is_enough(
    graphs: dict[str, Path], tmp_path: Path, name: str, extra_bytes: int
) -> None:
    graph, out = graphs[name], tmp_path / "out.csv"
    budget = asked_for(graph) + extra_bytes
    done = run_at_limit(command(graph, "--memory", budget, "-o", out), budget)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name: found[name] for name in expected(graph)} == expected(graph)
    if "--closeness" in _QUESTIONS[name]:
        with out.open() as file:
            rows = list(csv.DictReader(file))
        assert len(rows) == found["scope_vertices"]
        assert all(float(row["harmonic_low"]) <= float(row["harmonic"]) for row in rows)
    assert sorted(graph.parent.iterdir()) == sorted(graphs.values())


@pytest.fixture
def in_files(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Let all arrays live in files, and return the list of their sizes."""
    seen: list[int] = []

    def allocate(self: ResultArrays, size: int, dtype: Any) -> np.ndarray[Any, Any]:
        seen.append(size)
        return self._mapped(size, size * np.dtype(dtype).itemsize, dtype)

    monkeypatch.setattr(ResultArrays, "allocate", allocate)
    return seen


def _resident_of_unnamed_files() -> int:
    """Return how many bytes of mapped files without a name are in memory of this process."""
    smaps = Path("/proc/self/smaps").read_text()
    found = re.findall(
        r"^\S+ rw-s .*\(deleted\)\n(?:\w+:.*\n)*?Rss: +(\d+) kB", smaps, re.MULTILINE
    )
    return 1024 * sum(map(int, found))


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="Linux tells what is resident")
def test_no_page_of_a_file_stays_between_searches(
    graphs: dict[str, Path], in_files: list[int]
) -> None:
    """A page that is looked up here and there may bring hundreds of its neighbours along."""
    before, resident = _resident_of_unnamed_files(), []

    def look(answer: object) -> None:
        resident.append(_resident_of_unnamed_files() - before)
        if len(resident) == 3:
            raise KeyboardInterrupt

    with oocbfs.open(graphs["kron21"], memory="4G") as graph:
        job = Job(graph, Question(exact=("diameter", "eccentricities")))
        with pytest.raises(KeyboardInterrupt):
            job.run(look)
    assert len(in_files) >= 4
    assert max(resident) < 256 << 10


@pytest.mark.parametrize("directed", [False, True])
def test_arrays_without_room_are_in_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, in_files: list[int], directed: bool
) -> None:
    """Whatever lives in files, the answer is the same, and its state is written and read."""
    oocbfs.convert(generators.kron(10), tmp_path / "g.ocg", directed=directed, order="degree")
    exact = ("diameter", "radius", "center", "eccentricities")
    question = Question(exact=exact, samples=40, closeness=True, top=3)
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        wanted = Job(graph, question).run()
    monkeypatch.setattr("oocbfs.distances.job.SAVE_SECONDS", 0.0)
    monkeypatch.setattr("oocbfs.distances.job._SAVING_SHARE", 0)
    state, stops = tmp_path / "state", 0

    def stop(answer: object) -> None:
        nonlocal stops
        stops += 1
        if stops % 2 == 0:
            raise KeyboardInterrupt

    with oocbfs.open(tmp_path / "g.ocg", memory="4G") as graph:
        while True:
            try:
                found = Job(graph, question, state=state, resume=True).run(stop)
                break
            except KeyboardInterrupt:
                assert state.exists()
    assert stops > 2
    assert len(in_files) > 10
    assert found.center == wanted.center
    assert found.top == wanted.top
    assert is_mapped(found.eccentricities)
    np.testing.assert_array_equal(found.eccentricities, wanted.eccentricities)
    assert found.harmonic is not None
    assert wanted.harmonic is not None
    np.testing.assert_array_equal(found.harmonic.low, wanted.harmonic.low)


def test_a_budget_is_refused_before_anything_is_searched(tmp_path: Path) -> None:
    oocbfs.convert(generators.kron(10), tmp_path / "g.ocg")
    with (
        oocbfs.open(tmp_path / "g.ocg", memory="1M") as graph,
        pytest.raises(BudgetError, match=r"g\.ocg: finding distances needs .* may take 1.0 MB"),
    ):
        graph.diameter()
    with open_file(tmp_path / "g.ocg") as graph:
        with pytest.raises(BudgetError, match="finding distances needs"):
            Job(graph, Question(exact=("closeness",)), memory="1M")
        # Sources are counted, too.
        some, more = (
            distances_needs(graph._stored, threads=2, num_sources=number).held_bytes
            for number in (0, 1000)
        )
    assert more - some == 40_000


def test_pieces_of_arrays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    arrays = ResultArrays(0, tmp_path)
    numbers = arrays.allocate(40, np.int64)
    for part in pieces_of(numbers, size=7):
        numbers[part] = np.arange(part.start, part.stop)
    assert numbers.tolist() == list(range(40))

    def total(some: np.ndarray[Any, Any], first: int, stop: int) -> int:
        assert not is_mapped(some)
        return int(some[first:stop].sum())

    assert sum(over_pieces(total, 40, 2, numbers)) == 780
    assert not is_mapped(numbers.astype(np.int8))
    write_state(tmp_path / "state", {"what": 1}, {"n": numbers, "none": np.empty((0, 2))})
    known = read_state(tmp_path / "state", {"what": 1}, arrays)
    assert known is not None
    assert known["n"].tolist() == numbers.tolist()
    assert known["none"].shape == (0, 2)
