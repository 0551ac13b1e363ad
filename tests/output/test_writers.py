"""Edge lists as files: what is written can be read by others, and failures leave nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oocbfs.errors import OutputError
from oocbfs.formats.edges import Edges, Ids
from oocbfs.formats.output.writers import choose_format, write_edges
from oocbfs.generate import generators
from oocbfs.kernels.results.format_text import format_pairs
from tests.support import children
from tests.support.decompress import DECOMPRESS

ROOT = Path(__file__).parents[2]
BATCHES = [
    Edges(np.array([0, 1, 99], np.uint64), np.array([10, 0, 100], np.uint64)),
    Edges(np.empty(0, np.uint64), np.empty(0, np.uint64)),
    Edges(np.array([2**32 - 1, 7], np.uint64), np.array([5, 2**32 - 1], np.uint64)),
]
PAIRS = [[0, 10], [1, 0], [99, 100], [2**32 - 1, 5], [7, 2**32 - 1]]
HUGE = Edges(np.array([2**32], np.uint64), np.array([1], np.uint64))


def lines(separator: str) -> bytes:
    return "".join(f"{source}{separator}{target}\n" for source, target in PAIRS).encode()


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


ids = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 20).flatmap(
        lambda power: (
            st.integers(max(0, 10**power - 2), min(2**64 - 1, 10**power + 1))
            if power < 20
            else st.just(2**64 - 1)
        )
    ),
)


@given(st.lists(st.tuples(ids, ids)), st.sampled_from(" \t,"))
def test_text_is_what_python_prints(pairs: list[tuple[int, int]], separator: str) -> None:
    columns = np.array(pairs, np.uint64).reshape(-1, 2)
    text = format_pairs(columns[:, 0], columns[:, 1], separator).tobytes().decode()
    assert text == "".join(f"{source}{separator}{target}\n" for source, target in pairs)


@pytest.mark.parametrize("packing", DECOMPRESS)
@pytest.mark.parametrize(
    ("suffix", "separator"), [(".txt", " "), (".el", " "), (".tsv", "\t"), (".csv", ",")]
)
@pytest.mark.parametrize("threads", [1, 3])
def test_text(tmp_path: Path, suffix: str, separator: str, packing: str, threads: int) -> None:
    path = tmp_path / f"a.b{suffix}{packing}"
    assert write_edges(BATCHES, path, threads=threads) == 5
    assert DECOMPRESS[packing](path.read_bytes()) == lines(separator)
    assert names(tmp_path) == [path.name]


@pytest.mark.parametrize("packing", DECOMPRESS)
@pytest.mark.parametrize("comment", [None, "made by hand\nNodes: 3"])
def test_no_edges_is_still_a_file(tmp_path: Path, packing: str, comment: str | None) -> None:
    path = tmp_path / f"empty.txt{packing}"
    assert write_edges([], path, header_comment=comment) == 0
    expected = b"" if comment is None else b"# made by hand\n# Nodes: 3\n"
    assert DECOMPRESS[packing](path.read_bytes()) == expected


@pytest.mark.parametrize(
    ("name", "format", "dtype"),
    [("a.u32", None, "<u4"), ("a.u64", None, "<u8"), ("a.bin", None, "<u8"), ("a", "u32", "<u4")],
)
def test_raw_pairs(tmp_path: Path, name: str, format: str | None, dtype: str) -> None:
    write_edges(BATCHES, tmp_path / name, format=format, header_comment="not in binary")
    assert np.fromfile(tmp_path / name, dtype).reshape(-1, 2).tolist() == PAIRS


@pytest.mark.parametrize(("format", "dtype"), [("npy", np.uint64), ("npy-u32", np.uint32)])
def test_npy(tmp_path: Path, format: str, dtype: type[np.unsignedinteger]) -> None:
    path = tmp_path / "pairs.npy"
    write_edges(BATCHES, path, format=format)
    pairs = np.load(path)
    assert pairs.dtype == dtype
    assert pairs.tolist() == PAIRS
    write_edges([], path, format=format, force=True)
    assert np.load(path).shape == (0, 2)


@pytest.mark.parametrize("packing", [".gz", ".zst", ".xz", ".bz2"])
def test_command_line_tools_agree(tmp_path: Path, packing: str) -> None:
    """Large enough for several members of every compression."""
    tool = {".gz": "gzip", ".zst": "zstd", ".xz": "xz", ".bz2": "bzip2"}[packing]
    stream = generators.uniform(vertices=10**6, edges=50_000, threads=2)
    stream._batch_edges = 7_000
    path = tmp_path / f"edges.txt{packing}"
    seen: list[int] = []
    assert generators.write_stream(stream, path, threads=2, progress=seen.append) == sum(seen)
    plain = tmp_path / "plain.txt"
    generators.write_stream(stream, plain)
    try:
        output = children.run([tool, "-dc", path], check=True, capture_output=True).stdout
    except FileNotFoundError:
        pytest.skip(f"{tool} is not installed")
    assert output == plain.read_bytes() == DECOMPRESS[packing](path.read_bytes())
    assert output.startswith(
        b"# uniform vertices=1000000 edges=50000 seed=1\n# Nodes: 1000000 Edges"
    )


def test_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    write_edges(BATCHES, "-")
    assert capfdbinary.readouterr().out == lines(" ")


def test_names() -> None:
    assert choose_format("x.TXT.GZ") == ("txt", "gz")
    assert choose_format("x.csv", compression="zstd") == ("csv", "zst")
    assert choose_format("x.gz", "tsv") == ("tsv", "gz")
    assert choose_format("-") == ("txt", None)


@pytest.mark.parametrize(
    ("name", "format", "compression", "message"),
    [
        ("x.ocg", None, None, "unknown edge-list format"),
        ("x", None, None, "unknown edge-list format"),
        ("x.txt", None, "rar", "unknown compression"),
        ("x.npy.gz", None, None, "not written compressed"),
        ("-", "npy", None, "needs a file"),
    ],
)
def test_names_that_are_refused(
    name: str, format: str | None, compression: str | None, message: str
) -> None:
    with pytest.raises(OutputError, match=message):
        choose_format(name, format, compression)


@pytest.mark.parametrize("name", ["a.u32", "b.npy"])
def test_ids_that_do_not_fit(tmp_path: Path, name: str) -> None:
    with pytest.raises(OutputError, match="id 4294967296 does not fit 32 bits"):
        write_edges(
            [*BATCHES, HUGE], tmp_path / name, format=None if name == "a.u32" else "npy-u32"
        )
    assert names(tmp_path) == []


# Failures


def failing(error: BaseException) -> Iterator[Edges]:
    yield BATCHES[0]
    raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("x"), SystemExit(3)])
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".txt.zst", ".npy"])
def test_interrupted_writing_leaves_nothing(
    tmp_path: Path, error: BaseException, suffix: str
) -> None:
    path = tmp_path / f"out{suffix}"
    path.write_bytes(b"old")
    with pytest.raises(type(error)):
        write_edges(failing(error), path, force=True)
    assert names(tmp_path) == [path.name]
    assert path.read_bytes() == b"old"


def test_streams_are_closed_after_a_failure(tmp_path: Path) -> None:
    closed = threading.Event()

    def endless() -> Generator[Edges]:
        try:
            while True:
                yield HUGE
        finally:
            closed.set()

    with pytest.raises(OutputError):
        write_edges(endless(), tmp_path / "x.u32")
    assert closed.is_set()


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".txt.zst", ".u64", ".npy"])
def test_a_full_disk_is_one_line_and_no_file(tmp_path: Path, suffix: str) -> None:
    """A limit on the size of files stands in for a full disk; it must be set in another process."""
    program = f"""
import resource
from oocbfs.generate import generators
from oocbfs.errors import OutputError
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    generators.write_stream(generators.uniform(16, 4, threads=2), "out{suffix}", threads=2)
except OutputError as error:
    print(error)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-c", program]
    done = children.run(
        command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"out{suffix}: cannot be written: File too large\n"
    assert names(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_device() -> None:
    with pytest.raises(OutputError, match="/dev/full: cannot be written: No space left on device"):
        write_edges(BATCHES, "/dev/full", format="txt")


def test_devices_and_pipes_are_written_and_not_replaced(tmp_path: Path) -> None:
    assert write_edges(BATCHES, "/dev/null", format="txt") == 5
    assert not Path("/dev/null").is_file()
    pipe = tmp_path / "pipe.txt"
    os.mkfifo(pipe)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        assert write_edges(BATCHES, pipe) == 5
        assert reader.stdout is not None
        assert len(reader.stdout.read().splitlines()) == 5
    assert pipe.is_fifo()


def test_existing_files_are_kept_without_force(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")
    with pytest.raises(OutputError, match=r"already exists; use force=True"):
        write_edges(BATCHES, path)
    assert path.read_bytes() == b"old"
    write_edges(BATCHES, path, force=True)
    assert path.read_bytes() == lines(" ")


def test_strided_columns_are_accepted() -> None:
    columns: Ids = np.arange(6, dtype=np.uint64).reshape(3, 2)
    assert format_pairs(columns[:, 0], columns[:, 1], ",").tobytes() == b"0,1\n2,3\n4,5\n"
