"""What cannot be asked for is refused in one line, whichever verb is asked and from wherever."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.batch import jobs as batch
from oocbfs.batch.request import Job
from oocbfs.errors import OocbfsError, QueryError
from oocbfs.generate import generators
from oocbfs.graph.verifier import verify
from oocbfs.search.graph import Graph, open_file
from tests.support.keywords import keywords


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("refusals") / "g.ocg"
    oocbfs.convert(generators.grid2d(8, 8), made, order="degree")
    return made


@pytest.fixture(scope="module")
def graph(path: Path) -> Graph:
    return open_file(path)


BAD_THREADS = [0, -1, 10**9, 1.5, True, "2"]
BAD_CHOICES = ["gpu", "", "CPU", None, 1, ["cpu"]]
BAD: dict[str, list[Any]] = {
    "engine": BAD_CHOICES,
    "direction": ["up", None, 0],
    "emit": ["all", None],
    "strategy": ["alone", None],
    "threads": BAD_THREADS,
    "max_depth": [-1, 2**31, 1.0, True, "3"],
    "order": ["random", None, 1],
    "ids": ["listed", None],
    "codec": ["lz4", None, 3],
    "memory": [1.5, "much", True],
}
VERBS: dict[str, tuple[Callable[..., Any], list[str]]] = {
    "bfs": (
        lambda graph, path, folder, **options: graph.bfs(0, **keywords(options)),
        ["engine", "direction", "threads", "max_depth", "memory"],
    ),
    "bfs_many": (
        lambda graph, path, folder, **options: list(graph.bfs_many([0], **options)),
        ["engine", "emit", "strategy", "threads", "memory"],
    ),
    "components": (
        lambda graph, path, folder, **options: graph.components(**options),
        ["engine", "threads", "memory"],
    ),
    "batch": (
        lambda graph, path, folder, **options: batch.prepare(
            Job(graph=path, output=folder / "out", random=1, **options), resume=False
        ),
        ["engine", "emit", "strategy", "threads"],
    ),
    "convert": (
        lambda graph, path, folder, **options: oocbfs.convert(
            np.array([[0, 1]]), folder / "new.ocg", **options
        ),
        ["order", "ids", "codec", "threads", "memory"],
    ),
    "verify": (lambda graph, path, folder, **options: verify(path, **options), ["threads"]),
    "generate": (
        lambda graph, path, folder, **options: generators.kron(4, **options),
        ["threads"],
    ),
}
CASES = [(verb, name) for verb, (_, names) in VERBS.items() for name in names]


@pytest.mark.parametrize(("verb", "name"), CASES)
def test_options(graph: Graph, path: Path, tmp_path: Path, verb: str, name: str) -> None:
    run, _ = VERBS[verb]
    for value in BAD[name]:
        with pytest.raises(OocbfsError, match=name if name != "memory" else "size") as caught:
            run(graph, path, tmp_path, **{name: value})
        assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_engines_that_only_others_know(graph: Graph) -> None:
    with pytest.raises(QueryError, match="engine cannot be 'disk': it is one of auto, cpu, cuda"):
        graph.bfs_many([0], engine="disk")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["from_", "table", "level_files"])
def test_files_of_batches(path: Path, tmp_path: Path, name: str) -> None:
    wrong: dict[str, Any] = {name: "other"}
    job = Job(graph=path, output=tmp_path / "out", random=1, **wrong)
    with pytest.raises(QueryError, match=f"{name.rstrip('_')} cannot be 'other'"):
        batch.prepare(job, resume=False)


NO_IDS: list[Any] = [
    "12",
    b"12",
    1.7,
    2.0,
    True,
    None,
    [1.7],
    [1, 2.0],
    ["1"],
    [True],
    [[1, 2]],
    np.array([1.0]),
    np.array(["1"]),
    np.array([True]),
    np.array(1.5),
    np.array([[1, 2]]),
    np.float64(1),
    np.True_,
]


@pytest.mark.parametrize("wrong", NO_IDS, ids=repr)
def test_what_is_no_id(graph: Graph, wrong: Any) -> None:
    for question in (
        graph.bfs,
        graph.positions,
        graph._stored.stored,
        lambda ids: list(graph.bfs_many(ids)),
        lambda ids: list(graph.bfs_many([0], emit="pairs", targets=[ids])),
    ):
        with pytest.raises(QueryError, match=r"is not an id|in one row") as caught:
            question(wrong)
        assert "\n" not in str(caught.value)
    if wrong is not None:
        with pytest.raises(QueryError, match=r"is not an id|one id is wanted"):
            graph.bfs(0, target=wrong)


@pytest.mark.parametrize(
    "wrong", [-1, [-1], [0, -5], np.array([3, -1], np.int8), 2**64, [2**64], 64]
)
def test_ids_that_there_are_not(graph: Graph, wrong: Any) -> None:
    with pytest.raises(QueryError, match=r"has no vertex (-1|-5|64|18446744073709551616); its ids"):
        graph.bfs(wrong)


@pytest.mark.parametrize(
    "right", [3, np.uint8(3), np.int64(3), [3], (3,), {3}, iter([3]), np.array([3]), np.array(3)]
)
def test_ids(graph: Graph, right: Any) -> None:
    assert graph.bfs(right).sources == [3]


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.uint32, np.int64, np.uint64])
def test_ids_of_any_width(graph: Graph, dtype: Any) -> None:
    assert graph.positions(np.array([5, 0, 63], dtype)).tolist() == [5, 0, 63]
    assert graph.positions(np.array([])).size == 0
    assert graph.positions([]).size == 0


@pytest.mark.parametrize(
    "several", [[5, 6], (5,), [], np.array([5, 6]), range(2), {1, 2}, *NO_IDS[:5]], ids=repr
)
def test_one_id_means_one(graph: Graph, several: Any) -> None:
    found, components = graph.bfs(0), graph.components()
    for question in (
        graph.neighbors,
        graph.in_neighbors,
        graph._stored.position,
        found.path_to,
        components.label_of,
        components.members,
        lambda target: graph.bfs(0, target=target),
    ):
        with pytest.raises(QueryError, match=r"one id is wanted, not|is not an id") as caught:
            question(several)
        assert "\n" not in str(caught.value)
    ones: list[Any] = [5, np.int16(5), np.array(5)]
    for one in ones:
        assert found.level_of(one) == 5
        assert found.path_to(one)[-1] == 5
        assert graph.degree(one) == graph.neighbors(one).size == 3


@pytest.mark.parametrize("several", [[5, 6], (5, 6), np.array([5, 6]), range(5, 7)], ids=repr)
def test_several_ids_have_several_answers(graph: Graph, several: Any) -> None:
    assert graph.degree(several).tolist() == [graph.degree(5), graph.degree(6)]
    assert graph.bfs(0).level_of(several).tolist() == [5, 6]
    assert graph.degree([]).size == graph.bfs(0).level_of([]).size == 0


@pytest.mark.parametrize("wrong", NO_IDS[:5], ids=repr)
def test_no_id_has_no_answer(graph: Graph, wrong: Any) -> None:
    for question in (graph.degree, graph.bfs(0).level_of):
        with pytest.raises(QueryError, match="is not an id"):
            question(wrong)


def test_settings_that_are_equal_to_known_ones(graph: Graph) -> None:
    """Settings are kept, and what is equal to something allowed need not be allowed."""
    graph.bfs(0, threads=1, max_depth=1)
    with pytest.raises(QueryError, match="threads cannot be True"):
        graph.bfs(0, threads=True)
    for wrong in (True, 1.0):
        with pytest.raises(QueryError, match="max_depth cannot be"):
            graph.bfs(0, max_depth=wrong)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="one id is wanted"):
        graph.bfs(0, target=[1])  # type: ignore[arg-type]
