"""Systems that lack what Linux has: the same answers, or careful ones."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import numpy as np
import pytest

from oocbfs import doctor, memory
from oocbfs.conversion.spill import SpillFile
from oocbfs.formats.container import reader as container
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.io import machine
from oocbfs.formats.io.ordered import available_threads
from oocbfs.search.graph import open as open_graph

WORKED = Path(__file__).parents[1] / "golden" / "worked.ocg"


@pytest.fixture
def like_macos(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Take away what macOS does not have."""
    monkeypatch.delattr(os, "sched_getaffinity")
    monkeypatch.delattr(os, "preadv")
    monkeypatch.delattr(os, "O_DIRECT")
    monkeypatch.delattr(os, "posix_fadvise")
    monkeypatch.delattr(os, "posix_fallocate")
    ask = os.sysconf

    def sysconf(name: str) -> int:
        if name == "SC_AVPHYS_PAGES":
            raise ValueError("unrecognized configuration name")
        return ask(name)

    monkeypatch.setattr(os, "sysconf", sysconf)
    monkeypatch.setattr(machine, "_MEMINFO", tmp_path / "meminfo")


@pytest.mark.usefixtures("like_macos")
def test_cores_and_memory_are_told_without_linux() -> None:
    assert machine.usable_cores() == os.cpu_count()
    assert available_threads() == os.cpu_count()
    assert machine.free_bytes() == machine.total_bytes() // 2
    assert 0 < memory.available_bytes() <= machine.total_bytes()
    found = {finding.part: finding.found for finding in doctor.examine()}
    assert str(os.cpu_count()) in str(found["CPU"])
    assert "available" in str(found["RAM"])


@pytest.mark.usefixtures("like_macos")
def test_a_graph_is_searched_without_linux(tmp_path: Path) -> None:
    with open_graph(WORKED) as graph:
        expected = graph.bfs(10).levels
        assert np.array_equal(graph.bfs(10, engine="disk", tmp=tmp_path).levels, expected)
        assert graph.components().num_components >= 1


@pytest.mark.usefixtures("like_macos")
def test_spilled_data_comes_back_without_linux(tmp_path: Path) -> None:
    spill = SpillFile(tmp_path)
    data = np.arange(100_000)
    spill.append(data[:5])
    start = spill.append(data)
    out = np.empty_like(data)
    spill.read_into(out, start)
    assert np.array_equal(out, data)
    spill.close()


def test_memory_where_nothing_tells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "_MEMINFO", tmp_path / "meminfo")

    def refuse(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", refuse)
    assert 0 < machine.free_bytes() < machine.total_bytes()


def test_reading_ahead_begins_at_a_page_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages have 16 KiB on Apple's processors and up to 64 KiB on other ARM machines."""
    monkeypatch.setattr(mmap, "PAGESIZE", 1 << 16)
    asked = []

    class Mapping:
        def madvise(self, option: int, start: int, length: int) -> None:
            assert start % mmap.PAGESIZE == 0
            asked.append((start, length))

    with container.Container(WORKED) as opened:
        monkeypatch.setattr(opened.file, "mapping", Mapping())
        record = opened.sections[Kind.HEADS]
        opened.expect(Kind.HEADS)
    ((start, length),) = asked
    assert start <= record["offset"]
    assert start + length == record["offset"] + record["stored_bytes"]
