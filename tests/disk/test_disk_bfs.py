"""Searches with the tails on disk: the same levels, no more bytes than they say, clear errors."""

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import oocbfs
from oocbfs.disk import bfs as disk_bfs
from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.io.direct import DirectFile
from oocbfs.generate import generators
from oocbfs.graph.rows import span
from oocbfs.kernels.bfs import search as cpu
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.disk.small_level import BLOCK_BYTES
from oocbfs.kernels.disk.stream import CHUNK_BYTES
from oocbfs.memory import read_bytes
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import Settings
from tests.support.crafting import section_place, sign


def search(
    graph: Graph, source: int, *, with_parents: bool = True, **options: Any
) -> tuple[NDArray[np.int32], NDArray[np.uint32] | None, disk_bfs.DiskSearch]:
    """Search a graph in natural order, whose ids are its stored vertices."""
    levels = np.empty(graph.num_vertices, np.int32)
    parents = np.empty(graph.num_vertices, np.uint32) if with_parents else None
    options = {"cache_bytes": 0, "threads": 2, **options}
    done = disk_bfs.search(graph._stored.disk_rows, np.array([source]), levels, parents, **options)
    return levels, parents, done


@pytest.mark.parametrize("cache_bytes", [0, 1 << 20, 1 << 30])
@pytest.mark.parametrize("direction", [cpu.AUTO, cpu.TOP_DOWN, cpu.BOTTOM_UP])
def test_hubs_that_cross_chunks(hub_graph: Path, cache_bytes: int, direction: int) -> None:
    with open_file(hub_graph) as graph:
        assert span(graph._stored.rows, 5)[1] > CHUNK_BYTES
        for source in (5, 6, 599_999):
            levels, parents, _ = search(graph, source, cache_bytes=cache_bytes, direction=direction)
            expected = graph.bfs(source, engine="cpu")
            np.testing.assert_array_equal(levels, expected.levels)
            assert parents is not None
            oocbfs_check(graph, source, levels, parents)


def oocbfs_check(
    graph: Graph, source: int, levels: NDArray[np.int32], parents: NDArray[np.uint32]
) -> None:
    from oocbfs.results.validation import Levels, validate

    tree = np.where(parents == NO_HEAD, -1, parents.astype(np.int64))
    sizes = np.bincount(levels[levels >= 0])
    found = Levels(levels, tree, sizes, last_level=levels.size)
    validate(graph._stored, np.array([source], np.uint64), found, threads=1)


def test_every_kind_of_level_is_met(tmp_path: Path) -> None:
    """Small, large and top-down, bottom-up: one search of a Kronecker graph has them all."""
    oocbfs.convert(generators.kron(17), tmp_path / "g.ocg", order="natural")
    with open_file(tmp_path / "g.ocg") as graph:
        source = int(np.flatnonzero(graph._stored.stored_degrees == 1)[0])
        expected = graph.bfs(source, engine="cpu")
        levels, _, done = search(graph, source)
        np.testing.assert_array_equal(levels, expected.levels)
        assert set(done.records["direction"]) == {0, 1}
        assert done.records["frontier"].tolist() == expected.level_sizes.tolist()
        levels, _, down = search(graph, source, direction=cpu.TOP_DOWN)
        np.testing.assert_array_equal(levels, expected.levels)
        assert down.records["edges"].sum() == graph._stored.stored_degrees[levels >= 0].sum()
        assert done.records["disk_bytes"].sum() < down.records["disk_bytes"].sum()


@pytest.mark.parametrize("cache_bytes", [0, 4 * BLOCK_BYTES, 1 << 24])
def test_long_thin_graphs(tmp_path: Path, cache_bytes: int) -> None:
    n = 60_000
    mixed = np.random.default_rng(1).permutation(n)
    oocbfs.convert((mixed[:-1], mixed[1:]), tmp_path / "path.ocg", order="natural")
    oocbfs.convert(generators.grid2d(150, 150), tmp_path / "grid.ocg", order="natural")
    for name, source in (("path", int(mixed[0])), ("grid", 7)):
        with open_file(tmp_path / f"{name}.ocg") as graph:
            # Where nothing is kept, every vertex is a read of its own: a few thousand will do.
            depth = -1 if cache_bytes else 3000
            levels, _, done = search(graph, source, cache_bytes=cache_bytes, max_depth=depth)
            expected = graph.bfs(source, engine="cpu", max_depth=None if cache_bytes else 3000)
            np.testing.assert_array_equal(levels, expected.levels)
            if cache_bytes == 1 << 24:
                pages = graph._stored.rows.tails.size // BLOCK_BYTES + 1
                assert done.records["disk_bytes"].sum() <= pages * BLOCK_BYTES


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts a process's reads")
@pytest.mark.parametrize("direction", [cpu.AUTO, cpu.TOP_DOWN, cpu.BOTTOM_UP])
@pytest.mark.parametrize("cache_bytes", [0, 1 << 20])
def test_counted_bytes_are_those_read(hub_graph: Path, direction: int, cache_bytes: int) -> None:
    with open_file(hub_graph) as graph:
        if not graph._stored.disk_rows.file.direct:
            pytest.skip("this file system knows no direct reads, so that some come from its cache")
        search(graph, 5)
        for source in (5, 77_777):
            before = read_bytes()
            _, _, done = search(graph, source, direction=direction, cache_bytes=cache_bytes)
            counted = int(done.records["disk_bytes"].sum())
            assert counted > 0
            assert read_bytes() - before == counted


def test_many_sources(hub_graph: Path) -> None:
    with open_file(hub_graph) as graph:
        for count in (3, 1000, 400_000):
            sources = np.random.default_rng(count).choice(graph.num_vertices, count).tolist()
            expected = graph.bfs(sources, engine="cpu")
            found = graph.bfs(sources, engine="disk", validate=True)
            np.testing.assert_array_equal(found.levels, expected.levels)


@pytest.mark.parametrize("direction", ["top-down", "bottom-up"])
def test_malformed_tails(hub_graph: Path, tmp_path: Path, direction: Any) -> None:
    data = bytearray(hub_graph.read_bytes())
    for kind in (Kind.TAILS, Kind.IN_TAILS):
        with suppress(IndexError):  # an undirected graph has no transpose
            offset, size = section_place(bytes(data), kind)
            data[offset : offset + size] = b"\xff" * size
    (tmp_path / "g.ocg").write_bytes(sign(data))
    with (
        open_file(tmp_path / "g.ocg") as graph,
        pytest.raises(FormatError, match=r"run 'oocbfs verify'|tails: frame \d+ is damaged"),
    ):
        graph.bfs(5, engine="disk", options=Settings(direction=direction))


def test_file_that_cannot_be_read_any_more(hub_graph: Path, tmp_path: Path) -> None:
    path = tmp_path / "g.ocg"
    path.write_bytes(hub_graph.read_bytes())
    with open_file(path) as graph:
        graph.bfs(5, engine="disk")
        pipe, other = os.pipe()
        os.dup2(
            other, graph._stored.disk_rows.file.descriptor
        )  # a descriptor that refuses to be read
        with pytest.raises(FormatError, match=r"g\.ocg: cannot be read: .*copy or convert"):
            graph.bfs(5, engine="disk")
        os.close(pipe)
        os.close(other)


def test_file_replaced_while_open(hub_graph: Path, tmp_path: Path) -> None:
    path = tmp_path / "g.ocg"
    path.write_bytes(hub_graph.read_bytes())
    with open_file(path) as graph:
        path.unlink()
        oocbfs.convert(np.array([[0, 1]]), path)
        with pytest.raises(FormatError, match="replaced while it was open"):
            graph.bfs(5, engine="disk")


def test_direct_file_says_what_is_wrong(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"none\.ocg: cannot be opened: No such file"):
        DirectFile(tmp_path / "none.ocg")
