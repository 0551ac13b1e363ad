"""Inputs without an end are refused in one line, in little memory and disk."""

from __future__ import annotations

import gzip
import os
import re
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from oocbfs.errors import InputError, OocbfsError, QueryError
from oocbfs.formats.io.limits import InputLimits
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.id_lines import read_sources
from oocbfs.formats.readers.open import open_edges
from oocbfs.plan.messages import read_frontiers
from tests.support import children

ZEROS, NOISE = "/dev/zero", "/dev/urandom"
PROPERTIES = """graphclass=it.unimi.dsi.webgraph.BVGraph
version=0
nodes=1000000
arcs=10000000
windowsize=7
maxrefcount=3
minintervallength=4
zetak=3
compressionflags=
"""
# A process may write files of so many bytes.
MOST_BYTES = 1 << 20
LIMITED = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, ({MOST_BYTES}, {MOST_BYTES}))
from oocbfs.cli import main

sys.exit(main(sys.argv[1:]))
"""


def pipe(beginning: bytes, rest: bytes = bytes(1 << 16)) -> int:
    """Open a pipe that never ends, until it is closed."""
    reading, writing = os.pipe()

    def write() -> None:
        with open(writing, "wb", buffering=0) as file:
            try:
                file.write(beginning)
                while True:
                    file.write(rest)
            except BrokenPipeError:
                pass

    threading.Thread(target=write, daemon=True).start()
    return reading


def refusal(path: str, format: str | None = None, folder: Path | None = None) -> str:
    """Read an input; return what is said when it is refused."""
    limits = InputLimits(line_bytes=1 << 22, folder=None if folder is None else str(folder))
    with pytest.raises(OocbfsError) as caught:
        for _ in open_edges([path], format=format, limits=limits).batches():
            pass
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def nearly_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the system say that 4 MB of the disk are free."""
    status = os.statvfs_result((4096, 4096, 10_000, 1024, 1024, 1000, 1000, 1000, 0, 255))
    monkeypatch.setattr(os, "fstatvfs", lambda _: status)


@pytest.mark.usefixtures("nearly_full")
@pytest.mark.parametrize("device", [ZEROS, NOISE])
@pytest.mark.parametrize(
    "format", [None, "sg", "npy", "npz", "parquet", "arrow", "mtx", "metis", "edges"]
)
def test_devices(device: str, format: str | None, tmp_path: Path) -> None:
    said = refusal(device, format, tmp_path)
    assert said.startswith(device)
    assert "copied" not in said


@pytest.mark.usefixtures("nearly_full")
@pytest.mark.parametrize(
    "beginning", [b"PK\x03\x04", b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff\x10\0\0\0"], ids=repr
)
def test_a_copy_leaves_room_on_the_disk(beginning: bytes, tmp_path: Path) -> None:
    reading = pipe(beginning)
    said = refusal(f"/dev/fd/{reading}", folder=tmp_path)
    os.close(reading)
    assert f"copied before it is read: {tmp_path} has room for 3 MB" in said
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("nearly_full")
def test_who_names_no_folder_is_told_of_the_system_s() -> None:
    reading = pipe(b"PAR1")
    said = refusal(f"/dev/fd/{reading}")
    os.close(reading)
    assert said.endswith("so name a file, or name another folder in TMPDIR")


def test_a_header_of_more_than_the_disk_holds(tmp_path: Path) -> None:
    head = b"\0" + (2**50).to_bytes(8, "little") + (2**20).to_bytes(8, "little")
    reading = pipe(head)
    said = refusal(f"/dev/fd/{reading}", "sg", tmp_path)
    os.close(reading)
    assert re.search(r"has 4,294,967,304 MB by its header.* with tmp", said)


def test_a_copy_has_no_name(tmp_path: Path) -> None:
    """Nothing remains of it, even if the process is killed."""
    reading, writing = os.pipe()
    os.write(writing, b"1 2\n")
    os.close(writing)
    source = Source(f"/dev/fd/{reading}", InputLimits(folder=str(tmp_path)))
    source.make_regular()
    os.close(reading)
    assert not list(tmp_path.iterdir())
    with source.open() as first, source.open() as second:
        assert first.read(2) == b"1 "
        assert second.read(9) == b"1 2\n"
        assert first.read(9) == b"2\n"
    source.close()


def test_a_limit_of_the_system(tmp_path: Path) -> None:
    """An endless list of edges is right, until nothing more can be written.

    Edges that come again take no room, once they are sorted; those of large ids wait for that.
    """
    program = [sys.executable, "-c", LIMITED, "convert", "-", "-o", str(tmp_path / "g.ocg")]
    for beginning, rest in ((b"", b"%d 2\n" % 2**40 * 8192), (b"PK\x03\x04", bytes(1 << 16))):
        reading = pipe(beginning, rest)
        done = children.run(
            [*program, "--memory", "250M"],
            stdin=reading,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        os.close(reading)
        last = done.stderr.splitlines()[-1]
        assert done.returncode == 1, done.stderr
        assert f"{tmp_path}: cannot write temporary data (File too large)" in last
        assert not list(tmp_path.iterdir())


def test_a_list_of_a_webgraph(tmp_path: Path) -> None:
    (tmp_path / "g.graph").symlink_to(ZEROS)
    (tmp_path / "g.properties").write_text(PROPERTIES)
    assert "the list of node 0 takes more than 4 MB" in refusal(str(tmp_path / "g.graph"))


@pytest.mark.parametrize("padding", [0, 10_240])
def test_zeros_after_compressed_data(padding: int, tmp_path: Path) -> None:
    """A tape's block is filled up by zeros; without an end they are something else."""
    packed = gzip.compress(b"1 2\n")
    (tmp_path / "e.gz").write_bytes(packed + bytes(padding))
    assert sum(edges.sources.size for edges in open_edges([tmp_path / "e.gz"]).batches()) == 1
    reading = pipe(packed)
    assert "nothing but zeros after the end" in refusal(f"/dev/fd/{reading}")
    os.close(reading)


@pytest.mark.parametrize(
    ("read", "match"),
    [
        (lambda: read_frontiers(ZEROS), "is not what 'oocbfs bfs --json' prints"),
        (lambda: read_frontiers("deep.json"), "is not what 'oocbfs bfs --json' prints"),
        (lambda: read_sources(Path("many.txt")), "more than 1,000 lines"),
    ],
    ids=["zeros", "deep", "many"],
)
def test_other_files(
    read: Callable[[], object], match: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("oocbfs.formats.readers.id_lines._MOST_LINES", 1000)
    (tmp_path / "deep.json").write_text("[" * 100_000)
    (tmp_path / "many.txt").write_text("1\n" * 1001)
    with pytest.raises((InputError, QueryError), match=match):
        read()


def python_calls(path: Path) -> int:
    """Count the calls of Python's functions while an input is read."""
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        assert [edges.sources.tolist() for edges in open_edges([path]).batches()] == [[1]]
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("blank", [b"\n", b" \t\r\n"], ids=repr)
def test_blank_lines_are_passed_over_by_chunks(blank: bytes, tmp_path: Path) -> None:
    path = tmp_path / "edges.txt"
    few: list[int] = []
    many: list[int] = []
    for number, counts in ((100_000, few), (800_000, many)):
        path.write_bytes(blank * number + b"1 2\n")
        counts.extend(python_calls(path) for _ in range(2))
    # The first time, modules are loaded; later, what is looked at to tell the format is the same.
    assert many[1] < few[1] + 1000


def test_lines_are_counted_where_they_are_passed_over(tmp_path: Path) -> None:
    blank = b"\n" * 700_000
    above = b" \r\n" * 1000 + blank + b"\t\n# Directed graph: x\n" + blank + b"  % y\n\n"
    lines = above.count(b"\n")
    path = tmp_path / "edges.txt"
    path.write_bytes(above + b"  1 2\nx 3\n")
    assert f"edges.txt:{lines + 2}: vertex id 'x'" in refusal(str(path))
    path.write_bytes(above + b"# a \r b\n1 2\n")
    assert f"edges.txt:{lines + 1}: NUL or lone carriage return" in refusal(str(path))
    path.write_bytes(above + b"  1 2\n2 3\n")
    stream = open_edges([path])
    assert [edges.targets.tolist() for edges in stream.batches()] == [[3], [2]]
    assert stream.declared.directed_why.startswith(f"line {701_002} says '# Directed")
