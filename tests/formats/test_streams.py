"""Files, pipes and archives: all that is stored comes out, and damage never goes unnoticed."""

from __future__ import annotations

import bz2
import gc
import gzip
import io
import lzma
import os
import sys
import threading
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from oocbfs.errors import BudgetError, InputError
from oocbfs.formats.io.limits import InputLimits
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.open import open_edges
from tests.support import children

TEXT = b"".join(b"%d %d\n" % (i, i * i) for i in range(3000))


def zipped(data: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("edges.txt", data)
    return out.getvalue()


def zstd(data: bytes) -> bytes:
    return zstandard.ZstdCompressor(write_checksum=True).compress(data)


COMPRESSORS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstd": zstd,
}
EVERY = {**COMPRESSORS, "zip": zipped}


def write(folder: Path, data: bytes, name: str = "input") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def count(path: Path | str) -> int:
    return sum(edges.sources.size for edges in open_edges([path]).batches())


@pytest.mark.parametrize("name", EVERY)
def test_compression_is_told_by_its_bytes(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, EVERY[name](TEXT), "wrong.txt.lz4")
    stream = open_edges([path])
    assert sum(edges.sources.size for edges in stream.batches()) == 3000
    assert stream.done == stream.total == path.stat().st_size
    assert stream.unit == "B"


@pytest.mark.parametrize("name", EVERY)
def test_every_truncation_is_refused(tmp_path: Path, name: str) -> None:
    data = EVERY[name](TEXT)
    for end in {*range(7, len(data), len(data) // 40), *range(len(data) - 12, len(data))}:
        with pytest.raises(InputError, match="input"):
            count(write(tmp_path, data[:end]))


@pytest.mark.parametrize("name", EVERY)
def test_damage_is_refused(tmp_path: Path, name: str) -> None:
    data = bytearray(EVERY[name](TEXT))
    data[len(data) // 2] ^= 0x55
    with pytest.raises(InputError, match="input"):
        count(write(tmp_path, bytes(data)))


@pytest.mark.parametrize("name", COMPRESSORS)
def test_members_are_read_one_after_the_other(tmp_path: Path, name: str) -> None:
    compress = COMPRESSORS[name]
    data = b"".join(compress(part) for part in (b"1 2\n3", b"", b" 4\n", TEXT))
    assert count(write(tmp_path, data)) == 3002


@pytest.mark.parametrize("name", COMPRESSORS)
def test_garbage_after_the_end_is_refused(tmp_path: Path, name: str) -> None:
    for garbage in (b"x", b"3 4\n", b"garbage" * 1000):
        with pytest.raises(InputError, match="after the end"):
            count(write(tmp_path, COMPRESSORS[name](TEXT) + garbage))


@pytest.mark.parametrize("name", ["gzip", "xz"])
def test_padding_is_no_garbage(tmp_path: Path, name: str) -> None:
    assert count(write(tmp_path, COMPRESSORS[name](TEXT) + bytes(512))) == 3000


@pytest.mark.parametrize("outer", EVERY)
@pytest.mark.parametrize("inner", EVERY)
def test_double_compression_is_refused(tmp_path: Path, outer: str, inner: str) -> None:
    with pytest.raises(InputError, match="compressed twice"):
        count(write(tmp_path, EVERY[outer](EVERY[inner](TEXT))))


def test_zstd_skippable_frames_and_long_windows(tmp_path: Path) -> None:
    skipped = b"\x50\x2a\x4d\x18" + (5).to_bytes(4, "little") + b"hello"
    parameters = zstandard.ZstdCompressionParameters(window_log=27, enable_ldm=True)
    frame = zstandard.ZstdCompressor(compression_params=parameters).compress(TEXT)
    assert count(write(tmp_path, skipped + frame + skipped)) == 3000


def test_highly_compressible_input_comes_in_small_pieces(tmp_path: Path) -> None:
    data = b"1 2\n" * (1 << 23)
    for compress in (gzip.compress, zstd):
        source = Source(write(tmp_path, compress(data)))
        size = largest = 0
        with source.open() as stream:
            while piece := stream._decode():
                size += len(piece)
                largest = max(largest, len(piece))
        assert size == len(data)
        assert largest <= 16 << 20


@settings(max_examples=30, deadline=None)
@given(data=st.binary(max_size=5000), name=st.sampled_from(sorted(COMPRESSORS)))
def test_bytes_survive(tmp_path_factory: pytest.TempPathFactory, data: bytes, name: str) -> None:
    path = write(tmp_path_factory.mktemp("bytes"), COMPRESSORS[name](data))
    with Source(path).open() as stream:
        assert stream.read(10_000) == data


def test_archives_of_several_edge_lists(tmp_path: Path) -> None:
    path = tmp_path / "parts.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.mkdir("folder")
        archive.writestr("folder/b", "3 4\n")
        archive.writestr("folder/a", "1 2\n")
        archive.writestr("__MACOSX/a", "rubbish\0")
    sources = [edges.sources.tolist() for edges in open_edges([path]).batches()]
    assert sources == [[1], [3]]


def test_archives_are_not_opened_for_each_of_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "parts.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for part in range(50):
            archive.writestr(f"{part:02}", f"{part} {part + 1}\n")
    opened = []
    open_zip = zipfile.ZipFile.__init__

    def counted(self: zipfile.ZipFile, *arguments: Any, **settings: Any) -> None:
        opened.append(self)
        open_zip(self, *arguments, **settings)

    monkeypatch.setattr(zipfile.ZipFile, "__init__", counted)
    assert count(path) == 50
    assert len(opened) == 2  # to look what is in it, and to read it
    assert all(archive.fp is None for archive in opened)


def test_archives_of_more_and_larger_files_than_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their list is found through another end of the archive, and bounded as well."""
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 10)
    path = tmp_path / "parts.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.comment = b"PK"
        for part in range(50):
            archive.writestr(f"{part:02}", f"{part} {part + 1}\n")
    assert count(path) == 50
    with pytest.raises(BudgetError, match="the list of files"):
        open_edges([path], limits=InputLimits(window_bytes=50 << 10))


def test_archives_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "1 2\n")
        archive.writestr("b.gr", "p sp 2 1\na 1 2 3\n")
    with pytest.raises(InputError, match="not all edge lists"):
        open_edges([path])
    with zipfile.ZipFile(path, "w"):
        pass
    with pytest.raises(InputError, match="without files"):
        open_edges([path])


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        open_edges([tmp_path / "absent"])
    with pytest.raises(InputError, match="a folder without files"):
        open_edges([tmp_path])
    secret = write(tmp_path, TEXT)
    secret.chmod(0)
    if not os.access(secret, os.R_OK):
        with pytest.raises(InputError, match="permission denied"):
            open_edges([secret])


def run_with_input(data: bytes, *arguments: str) -> str:
    code = (
        "import sys; from oocbfs.formats.readers.open import open_edges\n"
        "s = open_edges(['-'], format=(sys.argv + [None])[1])\n"
        "assert s.total is None and s.name == '<stdin>'\n"
        "print(sum(e.sources.size for e in s.batches()), s.done, s.declared.directed)"
    )
    command = [sys.executable, "-W", "error", "-c", code, *arguments]
    run = children.run(command, input=data, capture_output=True, check=False)
    return (run.stdout or run.stderr).decode()


def test_standard_input() -> None:
    data = gzip.compress(TEXT)
    assert run_with_input(data) == f"3000 {len(data)} None\n"
    assert run_with_input(TEXT).startswith("3000 ")
    assert run_with_input(zipped(TEXT)).startswith("3000 ")
    assert run_with_input(b"") == "0 0 None\n"
    assert "truncated" in run_with_input(data[:-1])


def test_binary_formats_from_a_pipe() -> None:
    header = np.array([1, 2], "<i8").tobytes()
    graph = b"\0" + header + np.array([0, 1, 1], "<i8").tobytes() + np.array([1], "<i4").tobytes()
    assert run_with_input(gzip.compress(graph)).endswith("False\n")
    assert run_with_input(b"\1\0\0\0\2\0\0\0", "u32").startswith("1 8")


def test_a_named_pipe(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=[zlib_gzip(TEXT)])
    writer.start()
    stream = open_edges([path])
    assert stream.total is None
    assert sum(edges.sources.size for edges in stream.batches()) == 3000
    writer.join()


def zlib_gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=31)
    return packer.compress(data) + packer.flush()


def test_stopping_early_releases_everything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oocbfs.formats.readers.chunks.CHUNK_BYTES", 256)
    path = write(tmp_path, gzip.compress(TEXT))
    gc.collect()  # or what tests before this one left goes meanwhile
    threads, files = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        edges = open_edges([path, path], threads=3).batches()
        next(edges)
        edges.close()
    assert threading.active_count() <= threads
    assert len(os.listdir("/proc/self/fd")) <= files
