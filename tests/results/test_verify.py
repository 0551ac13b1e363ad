"""With OOCBFS_VERIFY=1 nothing wrong is handed out, whatever was asked, and wherever it ran.

Files are damaged and signed again, so that engines find what is not so: what they then find is
given without the variable, and refused with it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest

import oocbfs
from oocbfs.cluster.sharding import shard
from oocbfs.errors import QueryError
from oocbfs.formats.container.layout import TRANSPOSED, Kind
from oocbfs.networkx import open as open_networkx
from tests.support.command_line import call, said
from tests.support.crafting import rewrite
from tests.support.keywords import keywords

SIZE = 10
# Vertex 9 says that 0 is its neighbour, and 0 does not.
WRONG_HEAD = (Kind.HEADS, SIZE - 1, 0)
ALL_SOURCES = range(SIZE)

Ask = Callable[[Path, Path], object]


def ask_bfs(**options: Any) -> Ask:
    def ask(path: Path, _: Path) -> object:
        with oocbfs.open(path) as graph:
            return graph.bfs(0, **keywords(options))

    return ask


def ask_many(**options: Any) -> Ask:
    def ask(path: Path, _: Path) -> object:
        with oocbfs.open(path) as graph:
            return list(graph.bfs_many(ALL_SOURCES, **options))

    return ask


def ask_sharded(cluster: str | None = None, **options: Any) -> Ask:
    def ask(_: Path, folder: Path) -> object:
        with oocbfs.open(folder, cluster=cluster) as graph:
            return graph.bfs(0, **keywords(options))

    return ask


def ask_many_sharded(emit: Any) -> Ask:
    def ask(_: Path, folder: Path) -> object:
        with oocbfs.open(folder, cluster=None) as graph:
            return list(graph.bfs_many(ALL_SOURCES, emit=emit))

    return ask


def ask_networkx(function: Callable[[Any], object]) -> Ask:
    def ask(path: Path, _: Path) -> object:
        return function(open_networkx(path))

    return ask


TARGETS = {"emit": "pairs", "targets": [[0, 9]] * SIZE}
SEARCHES: dict[str, Ask] = {
    "cpu": ask_bfs(engine="cpu"),
    "parents": ask_bfs(engine="cpu", parents=True),
    "bottom-up": ask_bfs(engine="cpu", direction="bottom-up"),
    "target": ask_bfs(engine="cpu", target=9),
    "max-depth": ask_bfs(engine="cpu", max_depth=9),
    "memory": ask_bfs(memory="2G", parents=True),
    "disk": ask_bfs(engine="disk"),
    "emulator": ask_bfs(engine="emulator"),
    "devices": ask_bfs(engine="emulator", devices=[0, 1]),
    "method": ask_bfs(engine="cpu", method="list"),
    "summary": ask_many(),
    "levels": ask_many(emit="levels", strategy="together"),
    "pairs": ask_many(**TARGETS),
    "one-per-core": ask_many(strategy="one-per-core"),
    "many-memory": ask_many(memory="2G"),
    "parts": ask_sharded(),
    "not-gathered": ask_sharded(gather=False, parents=True),
    "processes": ask_sharded("local:2"),
    "parts-devices": ask_sharded(engine="emulator", devices=[0, 1]),
    "parts-summary": ask_many_sharded("summary"),
    "parts-levels": ask_many_sharded("levels"),
    "networkx": ask_networkx(lambda graph: list(nx.bfs_edges(graph, 0))),
    "networkx-path": ask_networkx(lambda graph: nx.shortest_path(graph, 0, 9)),
}


@pytest.fixture(scope="module")
def path_and_folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return a path of ten vertices, damaged, in one file and in two shards."""
    folder = tmp_path_factory.mktemp("verify")
    edges = np.array([(u, u + 1) for u in range(SIZE - 1)])
    oocbfs.convert(edges, folder / "g.ocg", order="natural")
    rewrite(folder / "g.ocg", *WRONG_HEAD)
    shard(folder / "g.ocg", folder / "parts", parts=2)
    return folder / "g.ocg", folder / "parts"


@pytest.mark.parametrize("search", SEARCHES)
def test_a_wrong_search_is_refused(
    search: str, path_and_folder: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = SEARCHES[search]
    monkeypatch.delenv("OOCBFS_VERIFY", raising=False)
    ask(*path_and_folder)
    monkeypatch.setenv("OOCBFS_VERIFY", "1")
    with pytest.raises(QueryError, match="validation failed"):
        ask(*path_and_folder)


@pytest.mark.parametrize("is_sharded", [False, True])
def test_a_batch_writes_nothing_wrong(
    is_sharded: bool,
    path_and_folder: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OOCBFS_VERIFY", "1")
    out = tmp_path / "out"
    done = call("batch", path_and_folder[is_sharded], "--random", SIZE, "-o", out)
    assert done.returncode == 1
    (line,) = said(done)
    assert "validation failed" in line
    assert not (out / "summary.csv").exists()


@pytest.mark.parametrize("engine", ["cpu", "disk", "emulator", "parts"])
def test_wrong_components_are_refused(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two components that only a damaged transpose joins."""
    path, folder = tmp_path / "g.ocg", tmp_path / "parts"
    edges = np.array([(0, 1), (1, 2), (3, 4), (4, 5)])
    oocbfs.convert(edges, path, order="natural", directed=True)
    rewrite(path, Kind(Kind.HEADS + TRANSPOSED), 4, 2)
    shard(path, folder, parts=2)
    is_sharded = engine == "parts"
    options: dict[str, Any] = {} if is_sharded else {"engine": engine}

    def ask() -> int:
        with oocbfs.open(folder if is_sharded else path) as graph:
            return graph.components(**options).num_components

    monkeypatch.delenv("OOCBFS_VERIFY", raising=False)
    assert ask() == 1
    monkeypatch.setenv("OOCBFS_VERIFY", "1")
    with pytest.raises(QueryError, match="validation failed at vertex 3"):
        ask()


def test_the_command_line_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    oocbfs.convert(np.array([(0, 1), (1, 2)]), tmp_path / "g.ocg")
    for value in ("1", "0", ""):
        monkeypatch.setenv("OOCBFS_VERIFY", value)
        done = call("bfs", tmp_path / "g.ocg", "--source", 0)
        assert done.returncode == 0
        assert ("validated" in done.stdout) == (value == "1")
