"""Files that are not in the page cache are read from disk, unless something else is asked for."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.formats.io.page_cache import cached_share
from oocbfs.generate import generators
from tests.support.command_line import call


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("cold") / "g.ocg"
    oocbfs.convert(generators.kron(19), path, codec="raw")
    return path


@pytest.fixture
def cold(path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that no page is cached of, and that is large enough for that to matter."""
    descriptor = os.open(path, os.O_RDWR)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    share = cached_share(descriptor, 0, path.stat().st_size)
    os.close(descriptor)
    if share is None or share > 0.1:
        pytest.skip("this file system keeps the file in memory, or does not tell")
    monkeypatch.setattr("oocbfs.plan.host._LEAST_COLD_BYTES", 0)
    return path


def test_the_share_of_a_file_that_is_read_is_known(cold: Path) -> None:
    size = cold.stat().st_size
    with cold.open("rb", buffering=0) as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
        file.read(size // 2)
        share = cached_share(file.fileno(), 0, size)
        assert share is not None
        assert 0.3 < share < 0.7
        file.read(size)
        share = cached_share(file.fileno(), 0, size)
        assert share is not None
        assert share > 0.99  # the system may let go of a page at any time


def test_cold_files_are_read_from_disk_once(cold: Path) -> None:
    with oocbfs.open(cold) as graph:
        first = graph.bfs(0)
        assert first.stats.engine == "disk"
        assert "not in memory" in str(first.stats.engine_reason)
        again = graph.bfs(0)
        assert (again.stats.engine, again.stats.engine_reason) == ("cpu", None)
        np.testing.assert_array_equal(first.levels, again.levels)


@pytest.mark.parametrize("options", [{"engine": "cpu"}, {"memory": "1G"}])
def test_what_is_asked_for_is_used(cold: Path, options: dict[str, str]) -> None:
    with oocbfs.open(cold) as graph:
        stats = graph.bfs(0, **options).stats  # type: ignore[arg-type]
        assert (stats.engine, stats.engine_reason) == ("cpu", None)


def test_files_larger_than_memory_stay_on_disk(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with oocbfs.open(cold) as graph:
        graph.bfs(0)
        monkeypatch.setattr("oocbfs.memory.available_bytes", lambda: 1000)
        monkeypatch.setattr("oocbfs.graph.stored.StoredGraph.cached_share", lambda self: 0.2)
        assert graph.bfs(0).stats.engine == "disk"


def test_components_and_the_command_line_say_so(cold: Path) -> None:
    done = call("components", cold, "--json")
    assert done.returncode == 0
    assert "reading from disk: " in done.stderr
    assert json.loads(done.stdout)["engine"] == "disk"
    assert "not in memory" in json.loads(done.stdout)["engine_reason"]
