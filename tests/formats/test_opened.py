"""A graph is the file that was opened: changed, closed or dropped, it gives no wrong answer."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.batch import jobs as batch
from oocbfs.batch import sources as choice
from oocbfs.batch.request import Job
from oocbfs.cli import main
from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.container.layout import Kind
from oocbfs.generate import generators
from oocbfs.graph.verifier import verify
from oocbfs.plan import prediction
from oocbfs.search.graph import Graph, open_file
from tests.support.crafting import section_place


@pytest.fixture(scope="module")
def kron(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A graph whose vertices are reordered and whose ids have gaps."""
    path = tmp_path_factory.mktemp("opened") / "kron.ocg"
    edges = next(generators.kron(12).batches())
    oocbfs.convert((7 * edges.sources, 7 * edges.targets), path, order="degree", ids="compact")
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, kron: bytes) -> Path:
    (tmp_path / "g.ocg").write_bytes(kron)
    return tmp_path / "g.ocg"


def cut(path: Path) -> None:
    """Cut a file short, to less than any of its sections but the first."""
    os.truncate(path, 4096)


def overwrite(path: Path) -> None:
    """Give a file other tails, valid and of the same size, at the same place."""
    data = path.read_bytes()
    offset, size = section_place(data, Kind.TAILS)
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(bytes(size))
    # Clocks of file systems tick some hundred times a second only.
    status = os.stat(path)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


CHANGES = {
    cut: "cannot be read any more",
    overwrite: "changed by another program while it was open",
}
change = pytest.mark.parametrize("change", CHANGES)


def hub(graph: Graph) -> int:
    return int(graph._stored.ids_of(np.array([0]))[0])


QUESTIONS: dict[str, Callable[[Graph], Any]] = {
    "bfs": lambda graph: graph.bfs(0, engine="cpu"),
    "bfs disk": lambda graph: graph.bfs(0, engine="disk"),
    "bfs emulator": lambda graph: graph.bfs(0, engine="emulator"),
    "bfs_many": lambda graph: list(graph.bfs_many([0, 7] * 20, emit="levels")),
    "bfs_many alone": lambda graph: list(graph.bfs_many([0, 7], strategy="one-per-core")),
    "components": lambda graph: graph.components(engine="cpu"),
    "components disk": lambda graph: graph.components(engine="disk"),
    "components emulator": lambda graph: graph.components(engine="emulator"),
    "degree": lambda graph: graph.degree(0),
    "neighbors": lambda graph: graph.neighbors(0),
    "in_neighbors": lambda graph: graph.in_neighbors(0),
    "edges": lambda graph: list(graph.edges()),
    "to_scipy": lambda graph: graph.to_scipy(),
    "positions": lambda graph: graph.positions([0, 7]),
    "stored": lambda graph: graph._stored.stored([0, 7]),
    "ids_of": lambda graph: graph._stored.ids_of(np.array([0])),
    "ids": lambda graph: graph.ids(),
}


@change
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("before", [False, True], ids=["cold", "used"])
def test_every_way_in_notices(path: Path, question: str, before: bool, change: Any) -> None:
    if "emulator" in question and shutil.which("g++") is None:
        pytest.skip("the emulator needs a C++ compiler")
    with open_file(path) as graph:
        if before:
            QUESTIONS[question](graph)
        change(path)
        with pytest.raises(FormatError, match=CHANGES[change]):
            QUESTIONS[question](graph)


@change
def test_results_ask_the_graph_too(path: Path, change: Any) -> None:
    with open_file(path) as graph:
        far = int(graph.ids()[graph.bfs(0).levels == 2][0])
        found, components = graph.bfs(0), graph.components()
        change(path)
        for question in (
            lambda: found.parents,
            lambda: found.path_to(far),
            lambda: found.level_of(far),
            lambda: components.members(0),
            lambda: components.largest_edges,
            lambda: components.in_largest(np.array([0])),
        ):
            with pytest.raises(FormatError, match=CHANGES[change]):
                question()


@change
@pytest.mark.parametrize("strategy", ["together", "one-per-core"])
@pytest.mark.parametrize("memory", [None, "4T"])
def test_many_sources_stop_at_the_change(
    path: Path, change: Any, strategy: Any, memory: str | None
) -> None:
    """What was handed out before the change is right, and nothing is handed out behind it."""
    with open_file(path) as graph:
        sources = graph.ids()[:192].tolist()
        expected = [result.level_sizes.tolist() for result in graph.bfs_many(sources)]
        results = graph.bfs_many(sources, strategy=strategy, memory=memory)
        assert next(results).level_sizes.tolist() == expected[0]
        change(path)
        with pytest.raises(FormatError, match=CHANGES[change]):
            next(results)


def test_many_sources_from_disk_stop_at_the_change(path: Path) -> None:
    with open_file(path) as graph:
        sources = graph.ids()[:16].tolist()
        from oocbfs.plan.many import DiskShare, ManyPlan
        from oocbfs.search.many import Searches

        plan = ManyPlan("together", 2, disk=DiskShare(8, 1 << 40))
        with Searches(graph._stored, "summary", plan) as work:
            results = work.run(sources)
            next(results)
            overwrite(path)
            with pytest.raises(FormatError, match="changed by another program"):
                next(results)


@change
def test_batch_records_nothing_behind_the_change(path: Path, tmp_path: Path, change: Any) -> None:
    job = Job(graph=path, output=tmp_path / "out", random=192)
    plan = batch.prepare(job, resume=False)
    done = []

    def advance(count: int) -> None:
        done.append(count)
        if sum(done) == 65:  # the second group has begun
            change(path)

    with pytest.raises(FormatError, match=CHANGES[change]):
        batch.run(plan, advance=advance)
    assert sorted(os.listdir(tmp_path / "out" / "groups")) == ["000000.json"]


def test_choosing_sources_and_plans_notice(
    path: Path,
    tmp_path: Path,
    kron: bytes,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The file changes while sources are chosen by their degrees, or levels are sampled."""

    def changing(function: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **options: Any) -> Any:
            found = function(*arguments, **options)
            overwrite(path)
            return found

        return run

    for target, function in (
        ("oocbfs.batch.jobs.choose_random", choice.choose_random),
        ("oocbfs.batch.jobs.choose_hubs", choice.choose_hubs),
        ("oocbfs.graph500.choose_random", choice.choose_random),
        ("oocbfs.plan.prediction.predict_seconds", prediction.predict_seconds),
        ("oocbfs.graph.verifier._check_ids", lambda container: None),
    ):
        monkeypatch.setattr(target, changing(function))
    for number, chosen in enumerate(("random", "all_hubs")):
        count: dict[str, Any] = {chosen: 3}
        job = Job(graph=path, output=tmp_path / str(number), **count)
        with pytest.raises(FormatError, match="changed by another program"):
            batch.prepare(job, resume=False)
    from oocbfs import graph500

    with (
        open_file(path) as graph,
        pytest.raises(FormatError, match="changed by another program"),
    ):
        graph500._roots(graph, 3, 1)
    path.write_bytes(kron)
    with pytest.raises(FormatError, match="changed by another program"):
        verify(path)
    path.write_bytes(kron)
    assert main(["plan", str(path), "--gpu", "4090"]) == 1
    assert "changed by another program" in capsys.readouterr().err


def test_reading_and_replacing_are_no_change(path: Path, tmp_path: Path) -> None:
    """Reads that set its atime, a rename, or a new file of its name leave the open one as it is."""
    with open_file(path) as graph:
        expected = graph.bfs(0).levels
        path.read_bytes()
        os.utime(path, ns=(1, os.stat(path).st_mtime_ns))
        path.rename(tmp_path / "moved.ocg")
        path.write_bytes(b"something else")
        np.testing.assert_array_equal(graph.bfs(0, engine="cpu").levels, expected)
        assert graph.neighbors(0).size


@pytest.mark.parametrize("question", [q for q in QUESTIONS if "emulator" not in q])
@pytest.mark.parametrize("before", [False, True], ids=["cold", "used"])
def test_closed(path: Path, question: str, before: bool) -> None:
    graph = open_file(path)
    if before:
        QUESTIONS[question](graph)
    graph.close()
    graph.close()
    with pytest.raises(QueryError, match=r"g\.ocg: is closed: open it again"):
        QUESTIONS[question](graph)


def test_results_of_a_closed_graph(path: Path, tmp_path: Path) -> None:
    with open_file(path) as graph:
        found, many = graph.bfs(0), graph.bfs_many([0] * 70)
        next(many)
        components = graph.components()
    for question in (
        lambda: found.parents,
        lambda: found.path_to(7),
        lambda: components.members(0),
        lambda: components.largest_edges,
        lambda: list(many),
    ):
        with pytest.raises(QueryError, match="is closed"):
            question()
    assert found.reached == found.level_sizes.sum()
    # Where ids are consecutive, their places are known without the file.
    oocbfs.convert(np.array([[0, 1], [1, 2]]), tmp_path / "small.ocg", order="natural")
    with open_file(tmp_path / "small.ocg") as graph:
        found = graph.bfs(0)
    assert found.level_of(2) == 2


@pytest.mark.parametrize("verb", ["info", "verify", "bfs", "components", "export", "plan"])
def test_what_is_no_file_is_refused(
    tmp_path: Path, verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    more = {"bfs": ["--source", "0"], "export": ["-o", str(tmp_path / "out.txt")]}.get(verb, [])
    for name, problem in (("pipe", "is a folder, a pipe or a device"), (".", "is a folder")):
        assert main([verb, str(tmp_path / name), *more]) == 1
        (line,) = capsys.readouterr().err.splitlines()
        assert problem in line
