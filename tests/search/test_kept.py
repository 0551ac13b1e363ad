"""Errors, graphs and results in the hands of others: caught, kept, copied, pickled."""

import copy
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs import errors
from oocbfs.formats.container.reader import Container
from oocbfs.graph.stored import StoredGraph
from oocbfs.search.graph import Graph
from oocbfs.settings import Settings


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("kept") / "g.ocg"
    edges = np.random.default_rng(3).integers(0, 20_000, (60_000, 2))
    oocbfs.convert(edges, path, order="degree", directed=True)
    oocbfs.shard(path, path.parent / "parts", parts=2)
    return path


def test_every_error_is_exported() -> None:
    kinds = {kind for kind in vars(errors).values() if isinstance(kind, type)}
    public = {kind for kind in kinds if issubclass(kind, errors.OocbfsError)}
    named = {kind.__name__ for kind in public if not issubclass(kind, OSError)}
    assert named - set(oocbfs.__all__) == set()
    assert all(getattr(oocbfs, name) is getattr(errors, name) for name in named)


ERRORS: dict[str, tuple[Callable[[Path], object], type, type]] = {
    "no graph": (lambda at: oocbfs.open(at / "no.ocg"), oocbfs.FormatError, FileNotFoundError),
    "no input": (lambda at: convert(at / "o", at / "no"), oocbfs.InputError, FileNotFoundError),
    "no folder": (lambda at: convert(at / "no" / "o"), oocbfs.OutputError, FileNotFoundError),
    "there": (lambda at: convert(at / "there"), oocbfs.OutputError, FileExistsError),
    "folder": (lambda at: convert(at), oocbfs.OutputError, IsADirectoryError),
    "no manifest": (lambda at: oocbfs.open(at), oocbfs.FormatError, FileNotFoundError),
    "query": (lambda at: oocbfs.open(convert(at / "g")).bfs(99), oocbfs.QueryError, ValueError),
}  # fmt: skip


def convert(output: Path, inputs: Any = ((1, 2),)) -> Path:
    oocbfs.convert(inputs, output)
    return output


@pytest.mark.parametrize("case", ERRORS)
def test_errors_are_those_of_python_too(tmp_path: Path, case: str) -> None:
    (tmp_path / "there").write_text("")
    cause, ours, theirs = ERRORS[case]
    with pytest.raises(ours) as caught:
        cause(tmp_path)
    assert isinstance(caught.value, theirs)
    assert isinstance(caught.value, oocbfs.OocbfsError)
    assert "[Errno" not in str(caught.value)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (type(again), str(again)) == (type(caught.value), str(caught.value))


def test_a_damaged_file_is_no_error_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "g.ocg").write_bytes(b"no graph" * 1000)
    with pytest.raises(oocbfs.FormatError) as caught:
        oocbfs.open(tmp_path / "g.ocg")
    assert not isinstance(caught.value, OSError)


@pytest.mark.parametrize("name", ["g.ocg", "parts"])
def test_graphs_are_pickled_by_their_path(
    path: Path, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(path.parent)
    with oocbfs.open(name, memory="16G") as graph:
        pickled = pickle.dumps(graph)
        assert len(pickled) < 1000
        expected = graph.bfs(7).levels
        assert copy.copy(graph) is graph
        assert copy.deepcopy(graph) is graph
    monkeypatch.chdir(tmp_path)
    with pickle.loads(pickled) as again:
        assert type(again) is type(graph)
        np.testing.assert_array_equal(again.bfs(7).levels, expected)


def test_graphs_that_are_turned_around_stay_so(path: Path) -> None:
    with oocbfs.open(path) as graph, pickle.loads(pickle.dumps(graph.reversed())) as again:
        np.testing.assert_array_equal(again.neighbors(7), graph.in_neighbors(7))


def test_another_graph_at_the_path_is_refused(tmp_path: Path) -> None:
    oocbfs.convert([(1, 2)], tmp_path / "g.ocg")
    pickled = pickle.dumps(oocbfs.open(tmp_path / "g.ocg"))
    oocbfs.convert([(1, 3)], tmp_path / "g.ocg", force=True)
    with pytest.raises(oocbfs.FormatError, match="another graph than the one that was pickled"):
        pickle.loads(pickled)


def test_a_graph_without_a_file_is_not_pickled(path: Path) -> None:
    with path.open("rb") as file, Graph(StoredGraph(Container("made.ocg", file.fileno()))) as graph:
        for one in (graph, graph.reversed()):
            with pytest.raises(oocbfs.QueryError, match="has no file"):
                pickle.dumps(one)


def reached(graph: oocbfs.AnyGraph, source: int) -> int:
    return graph.bfs(source, threads=1).reached


def test_processes(path: Path) -> None:
    """As joblib and multiprocessing do it."""
    with oocbfs.open(path) as graph:
        expected = [graph.bfs(source).reached for source in (1, 2, 3)]
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            assert list(pool.map(reached, [graph] * 3, (1, 2, 3))) == expected


RESULTS: dict[str, Callable[[oocbfs.AnyGraph], Any]] = {
    "bfs": lambda graph: graph.bfs(7),
    "bfs with parents": lambda graph: graph.bfs(7, parents=True),
    "bfs from disk": lambda graph: graph.bfs(7, engine="disk"),
    "components": lambda graph: graph.components(),
    "many": lambda graph: next(graph.bfs_many([7], emit="levels")),
}


@pytest.mark.parametrize("name", ["g.ocg", "parts"])
@pytest.mark.parametrize("kind", RESULTS)
def test_results_are_pickled_and_copied(path: Path, name: str, kind: str) -> None:
    with oocbfs.open(path.parent / name) as graph:
        result = RESULTS[kind](graph)
        for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), copy.deepcopy(result)):
            assert type(again) is type(result)
            assert again.title == result.title
            if kind == "components":
                np.testing.assert_array_equal(again.labels, result.labels)
                continue
            np.testing.assert_array_equal(again.levels, result.levels)
            if kind.startswith("bfs"):
                assert again.summary() == result.summary()
                again.graph.bfs(7, parents=True)
                assert (again.parents >= 0).sum() == result.reached


def test_sharded_results_that_were_not_gathered(path: Path) -> None:
    with oocbfs.open(path.parent / "parts") as graph:
        result = graph.bfs(7, options=Settings(gather=False))
        again = pickle.loads(pickle.dumps(result))
        np.testing.assert_array_equal(again.levels, result.levels)


def test_results_stay_as_they_are(path: Path) -> None:
    """What is kept is never written over, whatever is searched next."""
    with oocbfs.open(path) as graph:
        kept = [graph.bfs(source, parents=True) for source in (1, 2)]
        many = graph.bfs_many(range(130), emit="levels")
        first = [next(many) for _ in range(64)]
        before = [copy.deepcopy((one.levels, one.summary())) for one in kept]
        levels = [one.levels.copy() for one in first if one.levels is not None]
        assert len(levels) == 64
        rest = list(many)
        for source in range(10):
            graph.bfs(source, parents=True)
        for one, (was, summary) in zip(kept, before, strict=True):
            np.testing.assert_array_equal(one.levels, was)
            assert one.summary() == summary
        for result, expected in zip(first, levels, strict=True):
            np.testing.assert_array_equal(result.levels, expected)
        assert len(rest) == 66
