"""Whatever happens to a conversion, no file is left that opens, and nothing old is lost."""

import gzip
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oocbfs.errors import FormatError
from oocbfs.formats.container.reader import Container
from oocbfs.generate import generators
from tests.support import children
from tests.support.command_line import Moments, Started, call
from tests.support.exhaustive import ALL


@pytest.fixture(scope="module")
def edges(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("input") / "edges.txt"
    generators.write_stream(generators.kron(15), path)
    return path


def convert(*arguments: object) -> tuple[int, str]:
    """Convert in this process; returns the exit code and what was said."""
    done = call("convert", *arguments)
    return done.returncode, done.stderr


def check_nothing_half_written(folder: Path, finished: bytes) -> None:
    """What is left behind is no graph, or the whole one that was about to be renamed."""
    for path in folder.iterdir():
        if path.suffix == ".ocg":
            Container(path).close()
        elif path.read_bytes() != finished:
            with pytest.raises(FormatError):
                Container(path)


@pytest.mark.long
@pytest.mark.parametrize(
    ("how", "ids"),
    [
        (signal.SIGKILL, "auto"),
        (signal.SIGTERM, "auto"),
        (signal.SIGINT, "auto"),
        (signal.SIGINT, "names"),
    ],
)
def test_killed_at_random_moments(
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    edges: Path,
    how: signal.Signals,
    ids: str,
) -> None:
    said = tmp_path_factory.mktemp("said") / "messages"
    graph = tmp_path / "g.ocg"

    def start(*arguments: object) -> Started:
        return Started(said, "convert", edges, "-o", graph, "--ids", ids, *arguments)

    assert start().finish()[0] == 0  # loads kernels, and may have to compile them
    began = time.perf_counter()
    assert start("--force").finish() == (0, "")
    whole = time.perf_counter() - began
    before = graph.read_bytes()
    moments = Moments(how, whole)
    unfinished = 0
    for _ in range(12 if ALL else 5):
        process = start("--force", "--memory", "600M")
        moments.signal(process, how)
        code, shown = process.finish()
        unfinished += code != 0
        assert graph.read_bytes() == before
        check_nothing_half_written(tmp_path, finished=before)
        if how is not signal.SIGKILL and code:
            assert [path.name for path in tmp_path.iterdir()] == ["g.ocg"], shown
    assert unfinished > 0
    assert start("--force").finish() == (0, "")
    assert [path.name for path in tmp_path.iterdir()] == ["g.ocg"]


@pytest.fixture
def small_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A file system of 512 KiB, too small for the graph, which does not tell how much is free."""
    silent = os.statvfs_result((4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda _: silent)
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or children.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small tmpfs needs root")
    yield folder
    children.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("ids", ["auto", "names"])
def test_full_disk_for_temporary_data(
    small_disk: Path, tmp_path: Path, edges: Path, monkeypatch: pytest.MonkeyPatch, ids: Any
) -> None:
    import oocbfs
    from oocbfs.conversion.plan import ConvertPlan, MemoryWatch
    from oocbfs.errors import OutputError

    monkeypatch.setattr(
        "oocbfs.conversion.converter.make_plan", lambda *_: ConvertPlan(2, 4 << 20, MemoryWatch())
    )
    with pytest.raises(OutputError, match=r"No space left.*tmp"):
        oocbfs.convert(str(edges), tmp_path / "g.ocg", tmp=small_disk, ids=ids)
    assert not list(small_disk.iterdir())
    assert not list(tmp_path.glob("*.ocg"))


def test_read_only_folder(tmp_path: Path, edges: Path) -> None:
    folder = tmp_path / "locked"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "ro,size=1m", "tmpfs", str(folder)]
    if os.geteuid() == 0:
        if children.run(command, capture_output=True, check=False).returncode:
            pytest.skip("root writes to any folder, and no read-only one can be mounted here")
    else:
        folder.chmod(0o555)
    try:
        code, shown = convert(edges, "-o", folder / "g.ocg")
        assert code == 1
        assert "cannot be written" in shown.splitlines()[-1]
        assert not list(folder.iterdir())
    finally:
        if os.geteuid() == 0:
            children.run(["umount", str(folder)], check=True)


def test_truncated_gzip_is_an_error_not_a_shorter_graph(tmp_path: Path, edges: Path) -> None:
    packed = gzip.compress(edges.read_bytes()[:1_000_000], 1)
    for size in (10, 1000, len(packed) // 2, len(packed) - 8, len(packed) - 1):
        (tmp_path / "edges.gz").write_bytes(packed[:size])
        code, shown = convert(tmp_path / "edges.gz", "-o", tmp_path / "g.ocg")
        assert code == 1, size
        assert "edges.gz" in shown.splitlines()[-1]
        assert [path.name for path in tmp_path.iterdir()] == ["edges.gz"]
