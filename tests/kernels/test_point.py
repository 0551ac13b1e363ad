"""Tables of what is touched, and single rows that are read from memory or disk."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import oocbfs
from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import Kind
from oocbfs.graph import single_rows
from oocbfs.graph.single_rows import RowsReader, Work
from oocbfs.kernels.point.state import make_reach, reach_at
from oocbfs.kernels.point.table import clear, enter, find, home_of, slot_of
from oocbfs.kernels.structs import Struct
from tests.support.crafting import make_archive
from tests.support.plain_rows import random_graph
from tests.support.shared import SharedGraphs

N = 3000


@njit  # type: ignore[untyped-decorator]
def entered(address: Any, vertices: Any) -> None:
    reach = reach_at(address)
    for v in vertices:
        slot = slot_of(reach.slots, v)
        if reach.slots[slot] == 0:
            enter(reach, slot, v, np.int64(0), np.int32(0), np.int64(0))


@njit  # type: ignore[untyped-decorator]
def sought(address: Any, vertices: Any, out: Any) -> None:
    reach = reach_at(address)
    for i, v in enumerate(vertices):
        out[i] = find(reach, v)


@njit  # type: ignore[untyped-decorator]
def cleared(address: Any) -> None:
    clear(reach_at(address))


@njit  # type: ignore[untyped-decorator]
def homes(address: Any, vertices: Any, out: Any) -> None:
    for i, v in enumerate(vertices):
        out[i] = home_of(reach_at(address).slots, v)


def colliding(address: int, slots: int) -> list[int]:
    """Return vertices that all want the last slots, so that runs of them go around the end."""
    some = np.arange(200 * slots, dtype=np.uint32)
    out = np.zeros(some.size, np.int64)
    homes(address, some, out)
    found: list[int] = some[out >= slots - 3].tolist()
    return found


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(st.integers(0, 400), max_size=60), max_size=6))
def test_a_table_finds_what_was_entered_since_it_was_cleared(rounds: list[list[int]]) -> None:
    reach = make_reach(64)
    struct = Struct(reach)
    candidates = [*colliding(struct.address, 128), 0, 0xFFFFFFFE][-401:]
    out = np.zeros(len(candidates), np.int64)
    for picked in rounds:
        vertices = [candidates[i % len(candidates)] for i in picked]
        entered(struct.address, np.array(vertices, np.uint32))
        sought(struct.address, np.array(candidates, np.uint32), out)
        order = {v: i for i, v in enumerate(dict.fromkeys(vertices))}
        assert out.tolist() == [order.get(v, -1) for v in candidates]
        cleared(struct.address)
        assert not reach.slots.any()


@pytest.fixture(scope="module")
def rows(shared_graphs: SharedGraphs) -> tuple[Path, list[list[int]]]:
    """Return a directed graph with hubs, whose rows have many segments, and its rows."""
    graph = random_graph(3, N, 9000, hubs=3, directed=True)
    edges = np.array([(u, v) for u, row in enumerate(graph) for v in row], np.uint64)
    path = shared_graphs.make("point-rows", lambda: edges, directed=True, order="degree")
    return path, graph


@pytest.mark.parametrize("from_disk", [False, True])
def test_single_rows_are_those_of_the_graph(
    rows: tuple[Path, list[list[int]]], from_disk: bool
) -> None:
    path, graph = rows
    back: list[list[int]] = [[] for _ in graph]
    for u, row in enumerate(graph):
        for v in row:
            back[v].append(u)
    with oocbfs.open(path) as opened:
        stored = opened._stored
        reader = RowsReader(stored._container, from_disk=from_disk)
        work = Work()
        wanted: Any = np.random.default_rng(1).permutation(opened.ids())
        vertices = stored.stored(wanted).astype(np.uint32)
        for inward, expected in ((False, graph), (True, back)):
            ids, ends = reader.list_rows(vertices, work, inward=inward)
            listed = np.split(stored.ids_of(ids), ends[:-1])
            for vertex, found in zip(wanted.tolist(), listed, strict=True):
                assert sorted(found.tolist()) == expected[int(vertex)]
        assert (work.disk_bytes > 0) == from_disk
        # The list grew; nothing else did.
        assert work.num_bytes - work.reach.found.nbytes < 1 << 17


@pytest.mark.parametrize("from_disk", [False, True])
@pytest.mark.parametrize("damage", ["starts", "tails", "heads"])
def test_damaged_rows_lead_to_no_vertex_outside_the_graph(
    rows: tuple[Path, list[list[int]]], tmp_path: Path, damage: str, from_disk: bool
) -> None:
    path, _ = rows
    with oocbfs.open(path) as opened:
        record = opened._stored._container.sections[Kind[damage.upper()]]
    content = bytearray(path.read_bytes())
    begin, size = int(record["offset"]), int(record["raw_bytes"])
    content[begin : begin + size] = np.random.default_rng(2).bytes(size)
    (tmp_path / "g.ocg").write_bytes(content)
    with oocbfs.open(tmp_path / "g.ocg") as opened:
        reader = RowsReader(opened._stored._container, from_disk=from_disk)
        for vertex in range(0, N, 50):
            with suppress(FormatError):
                ids, _ = reader.list_rows(np.array([vertex], np.uint32), Work())
                assert ids.max(initial=0) < N


def test_a_file_that_is_cut_short_is_no_end_of_a_row(
    rows: tuple[Path, list[list[int]]], tmp_path: Path
) -> None:
    path, _ = rows
    copy = tmp_path / "g.ocg"
    copy.write_bytes(path.read_bytes())
    with oocbfs.open(copy) as opened:
        reader = RowsReader(opened._stored._container, from_disk=True)
        os.truncate(copy, 4096)
        with pytest.raises(FormatError, match="cut short by another program"):
            reader.list_rows(np.arange(N, dtype=np.uint32), Work())


def test_what_cannot_be_read_row_by_row_is_told_apart(tmp_path: Path) -> None:
    oocbfs.convert(np.array([(0, 1), (1, 2)], np.uint64), tmp_path / "g.ocg")
    make_archive(tmp_path / "g.ocg")
    with oocbfs.open(tmp_path / "g.ocg") as opened:
        assert not single_rows.RowsReader.can_read_disk(opened._stored._container)
