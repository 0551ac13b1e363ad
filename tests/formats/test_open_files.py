"""What a graph keeps open and loads: nothing longer than it is used, nothing twice."""

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.errors import QueryError
from oocbfs.formats.io import direct
from oocbfs.generate import generators
from oocbfs.search.graph import open_file


@pytest.fixture
def path(tmp_path: Path) -> Path:
    oocbfs.convert(generators.kron(12), tmp_path / "g.ocg", order="degree")
    return tmp_path / "g.ocg"


def descriptors() -> Iterator[str]:
    """What this process has open, but for what it has open to find out."""
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            yield os.readlink(f"/proc/self/fd/{name}")


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="counts descriptors in /proc")
def test_nothing_stays_open_when_a_graph_is_dropped(path: Path) -> None:
    def use() -> None:
        graph = open_file(path)
        graph.bfs(0, engine="disk")
        graph.bfs(0, engine="cpu")

    use()
    gc.collect()
    assert str(path) not in set(descriptors())


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="counts descriptors in /proc")
def test_nothing_stays_open_where_direct_reads_are_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some file systems open a file for direct reads and then refuse the first."""
    monkeypatch.setattr(os, "preadv", refuse)
    file = direct.DirectFile(path)
    monkeypatch.undo()
    assert not file.direct
    assert list(descriptors()).count(str(path)) == 2
    file.close()
    assert str(path) not in set(descriptors())


def refuse(*arguments: object) -> int:
    raise OSError(22, "Invalid argument")


def test_close_lets_a_search_finish(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It neither waits for the other thread nor takes away its descriptor, which others may get."""
    graph = open_file(path)
    expected = graph.bfs(0, engine="disk").levels
    reading, closed = threading.Event(), threading.Event()
    from oocbfs.disk.step import Readers

    run = Readers.run

    def step(*arguments: Any) -> Any:
        reading.set()
        assert closed.wait(60)
        return run(*arguments)

    monkeypatch.setattr(Readers, "run", step)
    found = []
    thread = threading.Thread(target=lambda: found.append(graph.bfs(0, engine="disk")))
    thread.start()
    assert reading.wait(60)
    graph.close()
    others = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]
    with pytest.raises(QueryError, match="is closed"):
        graph.neighbors(0)
    closed.set()
    thread.join()
    for descriptor in others:
        os.close(descriptor)
    np.testing.assert_array_equal(found[0].levels, expected)
    gc.collect()
    assert str(path) not in set(descriptors())


def test_threads_load_a_part_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that share a graph share what it loads, also if Python locks no cached property."""
    from oocbfs.graph import disk_rows
    from oocbfs.graph.rows import load_rows
    from oocbfs.graph.stored import StoredGraph

    loads = []
    start = threading.Barrier(4)

    def load(*arguments: Any, **options: Any) -> Any:
        loads.append(threading.get_ident())
        return load_rows(*arguments, **options)

    monkeypatch.setattr("oocbfs.graph.rows.load_rows", load)
    for name in ("rows", "in_rows", "order", "stored_at", "disk_rows", "kept_search"):
        assert not isinstance(getattr(StoredGraph, name), cached_property)
    assert not any(isinstance(p, cached_property) for p in vars(disk_rows.DiskRows).values())
    with open_file(path) as opened:
        parts: list[int] = []

        def ask() -> None:
            start.wait(60)
            parts.extend(
                (
                    id(opened._stored.rows),
                    id(opened._stored.disk_rows),
                    id(opened._stored.kept_search),
                )
            )

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(set(parts)) == 3
        assert len(loads) == 1
