"""Sections in frames: the same graph as without, for every engine, and damage that is named."""

from __future__ import annotations

import errno
import os
import re
import tempfile
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import oocbfs
from oocbfs.errors import FormatError
from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import Encoding, Kind
from oocbfs.formats.container.reader import Container
from oocbfs.formats.io import zstd_library
from oocbfs.graph.single_rows import RowsReader, Work
from oocbfs.graph.stored import StoredGraph
from oocbfs.graph.verifier import verify
from oocbfs.kernels import frames
from oocbfs.kernels.constants import BYTES, DIFFERENCES, FRAME_BYTES, VALUES
from tests.support.crafting import section_place, sign
from tests.support.strategies import ORDERS, Pairs, edge_lists, pair_array

NO_NUMBERS = np.empty(0, np.uint32)


@st.composite
def numbers_of_a_frame(draw: st.DrawFn) -> NDArray[np.uint32]:
    """Draw numbers, many of them at an edge of something."""
    edges = st.sampled_from([0, 1, 127, 128, 2**31 - 1, 2**31, 2**32 - 2, 2**32 - 1])
    few = draw(st.lists(st.one_of(edges, st.integers(0, 2**32 - 1)), min_size=1, max_size=50))
    return np.resize(np.array(few, np.uint32), draw(st.integers(1, FRAME_BYTES // 4)))


def unpack(
    frame: bytes, size: int, coding: int, zstd: zstd_library.Zstd | None = None
) -> tuple[int, NDArray[np.uint8]]:
    """Unpack one frame; return the number of the damaged one, and the contents."""
    zstd = zstd or zstd_library.find_zstd()
    out = np.zeros(size, np.uint8)
    scratch = zstd_library.make_scratch(1, zstd=zstd)[0]
    numbers = NO_NUMBERS if coding == BYTES else out.view(np.uint32)
    packed, offsets = np.frombuffer(frame, np.uint8), np.array([0, len(frame)])
    damaged = frames.unpack_frames(
        out, numbers, packed, offsets, 0, 1, coding, scratch, zstd.decompress
    )
    return damaged, out


def pack(numbers: NDArray[np.uint32], coding: int) -> bytes:
    """Return the varints of numbers."""
    out = np.empty(frames.MOST_PACKED_BYTES, np.uint8)
    return out[: frames.pack_numbers(out, numbers, coding)].tobytes()


def plain_varints(numbers: NDArray[np.uint32], coding: int) -> bytes:
    """Return the varints of numbers as FORMAT.md has them."""
    out, previous = bytearray(), 0
    for number in numbers.tolist():
        value = (number + 1) % 2**32
        if coding == DIFFERENCES:
            step = (number - previous + 2**31) % 2**32 - 2**31
            value = 2 * step if step >= 0 else -2 * step - 1
            previous = number
        while value >= 128:
            out.append(value % 128 + 128)
            value //= 128
        out.append(value)
    return bytes(out)


WAYS = {
    "wheel": zstd_library.in_wheel,
    "system": zstd_library.in_system,
    "python": zstd_library.in_python,
}


@given(numbers=numbers_of_a_frame(), coding=st.sampled_from([VALUES, DIFFERENCES]))
@settings(max_examples=60, deadline=None)
def test_numbers_come_back(numbers: NDArray[np.uint32], coding: int) -> None:
    varints = pack(numbers, coding)
    assert varints == plain_varints(numbers, coding)
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(varints)
    if len(frame) != numbers.nbytes:
        damaged, out = unpack(frame, numbers.nbytes, coding)
        assert damaged == -1
        np.testing.assert_array_equal(out.view(np.uint32), numbers)


def test_the_example_of_the_format() -> None:
    numbers = np.array([7, 7, 9, 2**32 - 1], np.uint32)
    assert pack(numbers, VALUES).hex(" ") == "08 08 0a 00"
    assert pack(numbers, DIFFERENCES).hex(" ") == "0e 00 04 13"


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_zstd_unpacks_and_refuses(way: str) -> None:
    zstd = WAYS[way]()
    if zstd is None:
        pytest.skip("is not on this machine")
    contents = np.random.default_rng(1).integers(0, 20, FRAME_BYTES).astype(np.uint8).tobytes()
    compress = zstandard.ZstdCompressor(write_checksum=True).compress
    frame = compress(contents)
    damaged, out = unpack(frame, FRAME_BYTES, BYTES, zstd)
    assert (damaged, out.tobytes()) == (-1, contents)
    rng = np.random.default_rng(2)
    for _ in range(200):
        changed = bytearray(frame)
        changed[rng.integers(len(frame))] ^= rng.integers(1, 256)
        assert unpack(bytes(changed), FRAME_BYTES, BYTES, zstd)[0] == 0
        assert unpack(frame[: rng.integers(1, len(frame))], FRAME_BYTES, BYTES, zstd)[0] == 0
    # A frame that becomes larger, or says so, and one that becomes smaller.
    for other in (compress(contents + b"x"), compress(bytes(1 << 26)), compress(contents[1:])):
        assert unpack(other, FRAME_BYTES, BYTES, zstd)[0] == 0


@pytest.mark.parametrize(
    "varints",
    [
        b"",
        b"\x01",
        b"\x01\x01\x01",
        b"\x01\x81",
        b"\x01\xff\xff\xff\xff\x10",
        b"\x01" + 5 * b"\x80",
    ],
)
@pytest.mark.parametrize("coding", [VALUES, DIFFERENCES])
def test_varints_that_are_not_the_numbers(varints: bytes, coding: int) -> None:
    frame = zstandard.ZstdCompressor(write_checksum=True).compress(varints)
    assert unpack(frame, 8, coding)[0] == 0


def converted(edges: Pairs, folder: str, codec: Any, **options: Any) -> Path:
    path = Path(folder) / f"{codec}.ocg"
    oocbfs.convert(pair_array(edges), path, codec=codec, ids="compact", **options)
    return path


@given(edges=edge_lists(), order=st.sampled_from(ORDERS), directed=st.booleans())
@settings(max_examples=40, deadline=None)
def test_every_engine_finds_the_same(edges: Pairs, order: Any, directed: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = {"order": order, "directed": directed}
        raw, framed = (converted(edges, folder, codec, **options) for codec in ("raw", "zstd"))
        verify(framed, threads=1)
        with Container(raw) as one, Container(framed) as other:
            assert other.is_framed(Kind.DEGREES) or not other.num_vertices
            for kind in one.sections:
                np.testing.assert_array_equal(one.section(kind), other.section(kind))
        with oocbfs.open(raw) as one, oocbfs.open(framed) as other:
            for vertex in one.ids()[:3].tolist():
                expected = one.bfs(vertex, engine="cpu").levels
                for engine in ("cpu", "disk"):
                    levels = other.bfs(vertex, engine=engine, validate=True).levels
                    np.testing.assert_array_equal(levels, expected)
                # An own graph, of which nothing is unpacked yet.
                with oocbfs.open(framed) as again:
                    pairs = [(vertex, target) for target in again.ids()[:20].tolist()]
                    found = again.distances(pairs).distances
                    np.testing.assert_array_equal(found, expected[:20])
            labels = one.components(engine="cpu").labels
            np.testing.assert_array_equal(other.components(engine="disk").labels, labels)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a graph of many frames whose rows resemble each other, directed."""
    path = tmp_path_factory.mktemp("web") / "web.ocg"
    rng = np.random.default_rng(3)
    n, copies = 60_000, 12
    links = rng.integers(0, n, (n // copies, copies))
    sources = np.arange(n)
    edges = np.stack((np.repeat(sources, copies), links[sources // copies].ravel()), axis=1)
    oocbfs.convert(edges, path, directed=True, order="natural", threads=2)
    return path


def test_auto_takes_frames_where_they_pay(web: Path, tmp_path: Path) -> None:
    with oocbfs.open(web) as graph:
        info = graph.info()
        encodings = {one["name"]: one["encoding"] for one in info["sections"]}
        assert (encodings["tails"], encodings["heads"]) == ("frames", "frames")
        assert info["format_version"] == 3
        assert info["bits_per_arc"] == 8 * web.stat().st_size / (2 * graph.num_arcs)
    assert oocbfs.convert([[0, 1]], tmp_path / "small.ocg").codec_why == "the file is small"


def roads(side: int) -> NDArray[np.int64]:
    """Return half of the edges of a square grid: few for each vertex."""
    at = np.arange(side * side).reshape(side, side)
    ways = ((at[:, :-1], at[:, 1:]), (at[:-1], at[1:]))
    edges = np.concatenate([np.stack((a.ravel(), b.ravel()), axis=1) for a, b in ways])
    return edges[np.random.default_rng(1).random(len(edges)) < 0.5]


def test_auto_leaves_files_raw_whose_tails_stay(tmp_path: Path) -> None:
    """What maps needs no memory besides, unless the whole file becomes much smaller."""
    edges = np.random.default_rng(1).integers(0, 30_000, (200_000, 2))
    report = oocbfs.convert(edges, tmp_path / "random.ocg")
    assert report.codec == "raw"
    why = r"a sample of the tails shrinks to (\d+)%, the file without them to (\d+)%"
    assert all(int(share) > 40 for share in re.findall(why, report.codec_why)[0])
    with oocbfs.open(tmp_path / "random.ocg") as graph:
        assert graph.info()["unpacked_bytes"] == 0
    report = oocbfs.convert(roads(200), tmp_path / "roads.ocg", order="local")
    assert report.codec == "zstd"
    assert report.bits_per_arc < 24
    with Container(tmp_path / "roads.ocg") as container:
        assert not container.is_framed(Kind.TAILS)
        assert container.is_framed(Kind.STARTS)


def test_few_questions_unpack_few_frames(tmp_path: Path) -> None:
    """Neither rows nor the order of a default file are unpacked for a question or two."""
    edges = roads(400)
    oocbfs.convert(edges, tmp_path / "g.ocg", order="local")
    source = int(edges[0, 0])
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        container = cast(StoredGraph, graph._stored)._container
        assert container.is_framed(Kind.ORDER)
        path = graph.shortest_path(source, int(edges[0, 1]))
        assert path == edges[0].tolist()
        assert graph.bfs(source, max_depth=2).level_of(int(edges[0, 1])) == 1
        framed = [kind for kind in container.sections if container.is_framed(kind)]
        assert not any(map(container.has_unpacked, framed))


def test_raw_is_what_it_was(web: Path, tmp_path: Path) -> None:
    report = oocbfs.convert(web, tmp_path / "raw.ocg", codec="raw")
    assert (report.codec, report.codec_why) == ("raw", "as asked for")
    with Container(tmp_path / "raw.ocg") as container:
        assert container.version == 1
        assert container.unpacked_bytes == 0


def test_parts_are_unpacked_alone(web: Path) -> None:
    with Container(web) as container:
        for kind in (Kind.TAILS, Kind.IN_HEADS, Kind.STARTS):
            item_bytes = np.dtype(layout.DTYPES[kind]).itemsize
            size = int(container.sections[kind]["raw_bytes"]) // item_bytes
            parts = [container.part(kind, i, min(i + 5000, size)) for i in range(0, size, 5000)]
            assert not container.has_unpacked(kind)
            numbers = np.random.default_rng(1).integers(0, size, 300)
            items = [container.items(kind, some) for some in (numbers, numbers[:1], numbers[:0])]
            assert not container.has_unpacked(kind)
            np.testing.assert_array_equal(np.concatenate(parts), container.section(kind))
            for some, wanted in zip(items, (numbers, numbers[:1], numbers[:0]), strict=True):
                np.testing.assert_array_equal(some, container.section(kind)[wanted])


@pytest.mark.parametrize("from_disk", [False, True])
def test_single_rows(web: Path, from_disk: bool) -> None:
    vertices = np.random.default_rng(1).permutation(60_000).astype(np.uint32)
    with oocbfs.open(web) as graph:
        reader = RowsReader(graph._stored._container, from_disk=from_disk)
        work = Work(framed=True)
        for inward in (False, True):
            ids, ends = reader.list_rows(vertices[:2000], work, inward=inward)
            listed = np.split(ids, ends[:-1])
            neighbors = graph.in_neighbors if inward else graph.neighbors
            for vertex, found in zip(vertices[:2000:50].tolist(), listed[::50], strict=True):
                assert sorted(found.tolist()) == neighbors(vertex).tolist()
        assert work.disk_bytes > 0


def test_many_questions_unpack_the_graph(web: Path) -> None:
    with oocbfs.open(web) as graph:
        container = graph._stored._container
        assert graph.distance(1, 2) is not None
        assert not container.has_unpacked(Kind.TAILS)
        pairs = np.random.default_rng(1).integers(0, 60_000, (300, 2))
        first = graph.distances(pairs).distances
        assert container.has_unpacked(Kind.TAILS)
        np.testing.assert_array_equal(graph.distances(pairs).distances, first)


def damage(path: Path, web: Path, kind: Kind, frame: int) -> None:
    """Copy a graph with a changed byte in a frame, and valid checksums."""
    data = bytearray(web.read_bytes())
    with Container(web) as container:
        begin = container.frame_offsets(kind)[frame]
    data[section_place(bytes(data), kind)[0] + int(begin) + 40] ^= 255
    path.write_bytes(sign(data))


@pytest.mark.parametrize("kind", [Kind.TAILS, Kind.IN_TAILS, Kind.HEADS, Kind.STARTS])
def test_a_damaged_frame_is_named(web: Path, tmp_path: Path, kind: Kind) -> None:
    frame = 2
    damage(tmp_path / "g.ocg", web, kind, frame)
    line = rf"g\.ocg: {kind.name.lower()}: frame {frame} is damaged: copy or convert"
    with pytest.raises(FormatError, match=line):
        verify(tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        # From disk, no more tails are read than are needed.
        is_small = kind % layout.TRANSPOSED != Kind.TAILS
        for engine in ("cpu", "disk") if is_small else ("cpu",):
            with pytest.raises(FormatError, match=line):
                graph.components(engine=engine)
        reader = RowsReader(graph._stored._container, from_disk=True)
        vertices = np.arange(60_000, dtype=np.uint32)
        with pytest.raises(FormatError, match=line):
            reader.list_rows(vertices, Work(framed=True), inward=kind is Kind.IN_TAILS)


def rewritten_lengths(path: Path, web: Path, change: Any) -> None:
    """Copy a graph with other lengths of frames, and valid checksums."""
    data = bytearray(web.read_bytes())
    place, size = section_place(bytes(data), Kind.FRAMES)
    lengths = np.frombuffer(data, np.uint16, size // 2, place).copy()
    change(lengths)
    data[place : place + size] = lengths.tobytes()
    path.write_bytes(sign(data))


def lengthen(lengths: NDArray[np.uint16]) -> None:
    lengths[1] += 1


def swap(lengths: NDArray[np.uint16]) -> None:
    lengths[:2] = lengths[1::-1] + np.array([5, -5], np.int16).astype(np.uint16)


def overlap(lengths: NDArray[np.uint16]) -> None:
    lengths[0] = FRAME_BYTES


def test_lengths_that_lie(web: Path, tmp_path: Path) -> None:
    for change, line in ((lengthen, "differ"), (overlap, "longer than its contents")):
        rewritten_lengths(tmp_path / "g.ocg", web, change)
        with pytest.raises(FormatError, match=line):
            Container(tmp_path / "g.ocg")
    rewritten_lengths(tmp_path / "g.ocg", web, swap)
    with pytest.raises(FormatError, match="frame 0 is damaged"):
        verify(tmp_path / "g.ocg")


@pytest.mark.parametrize(
    ("field", "value", "line"),
    [
        ("first_frame", 1, "frames are not where they belong"),
        ("coding", 3, "unknown coding"),
        ("encoding", 3, "unknown encoding"),
        ("reserved", 1, "reserved bytes"),
        ("encoding", Encoding.RAW, r"wrong sizes|does not|reserved|chunks"),
    ],
)
def test_records_that_lie(web: Path, tmp_path: Path, field: str, value: int, line: str) -> None:
    data = bytearray(web.read_bytes())
    count = int(np.frombuffer(data, layout.HEADER, 1)[0]["num_sections"])
    table = np.frombuffer(data, layout.SECTION, count, layout.SECTION_TABLE_OFFSET).copy()
    table[field][0] = value
    begin = layout.SECTION_TABLE_OFFSET
    data[begin : begin + table.nbytes] = table.tobytes()
    (tmp_path / "g.ocg").write_bytes(sign(data))
    with pytest.raises(FormatError, match=line):
        Container(tmp_path / "g.ocg")


def test_what_has_no_room_is_unpacked_to_a_file(
    web: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever needs all rows and cannot read them from disk finds them in a mapped file."""
    (tmp_path / "g.ocg").write_bytes(web.read_bytes())
    monkeypatch.setattr("oocbfs.memory.available_bytes", lambda: 1 << 20)
    monkeypatch.setattr("oocbfs.graph.stored.available_bytes", lambda: 1 << 20)
    with oocbfs.open(web) as graph, oocbfs.open(tmp_path / "g.ocg") as other:
        assert cast(StoredGraph, other._stored).lacks_room
        expected = [(one.sources, one.targets) for one in graph.edges()]
        for one, (sources, targets) in zip(other.edges(), expected, strict=True):
            np.testing.assert_array_equal(one.sources, sources)
            np.testing.assert_array_equal(one.targets, targets)
    verify(tmp_path / "g.ocg")
    assert [path.name for path in tmp_path.iterdir()] == ["g.ocg"]


def test_a_full_disk_is_one_line(
    web: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that is mapped has its room before anything is written to it."""
    (tmp_path / "g.ocg").write_bytes(web.read_bytes())
    monkeypatch.setattr("oocbfs.memory.available_bytes", lambda: 1 << 20)

    def allocate(descriptor: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("os.posix_fallocate", allocate)
    line = "No space left.*: free some space or convert the graph again with codec raw$"
    with oocbfs.open(tmp_path / "g.ocg") as graph, pytest.raises(oocbfs.OutputError, match=line):
        list(graph.edges())
    assert [path.name for path in tmp_path.iterdir()] == ["g.ocg"]


def test_what_has_no_room_is_searched_from_disk(web: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with oocbfs.open(web) as graph:
        expected = graph.bfs(5, engine="cpu").levels
    monkeypatch.setattr("oocbfs.graph.stored.available_bytes", lambda: 1 << 20)
    with oocbfs.open(web) as graph:
        found = graph.bfs(5)
        assert found.stats.engine == "disk"
        assert "no room in memory" in str(found.stats.engine_reason)
        np.testing.assert_array_equal(found.levels, expected)
        assert not graph._stored._container.has_unpacked(Kind.TAILS)
