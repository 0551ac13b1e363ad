"""A conversion takes as much disk as its plan says at most, and is refused where there is less."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import oocbfs
from oocbfs.conversion.disk import Disk
from oocbfs.conversion.plan import ConvertPlan, MemoryWatch
from oocbfs.errors import OutputError
from oocbfs.formats.readers.open import open_edges
from oocbfs.graph.verifier import verify
from oocbfs.progress import Lines
from tests.support import children
from tests.support.exhaustive import ALL

Pairs = NDArray[np.uint64]


@contextmanager
def small_disk(folder: Path, num_bytes: int) -> Iterator[None]:
    """Mount a file system that holds so many bytes."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={num_bytes}", "none", str(folder)]
    done = children.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a file system here: {done.stderr.strip()}")
    try:
        yield
    finally:
        # Lazily: what a traceback holds may still be mapped.
        children.run(["umount", "--lazy", str(folder)], check=True)


def power_law(rng: np.random.Generator, size: int) -> Pairs:
    return (rng.zipf(1.3, (size, 2)) % (size // 8)).astype(np.uint64)


EDGES: dict[str, Callable[[np.random.Generator, int], Pairs]] = {
    "uniform": lambda rng, size: rng.integers(0, size // 8, (size, 2), dtype=np.uint64),
    "thin": lambda rng, size: rng.integers(0, size, (size // 2, 2), dtype=np.uint64),
    "power law": power_law,
    "sorted": lambda rng, size: np.sort(power_law(rng, size), axis=0),
    "gaps": lambda rng, size: power_law(rng, size) * np.uint64(4099),
    "wide": lambda rng, size: power_law(rng, size // 2) + np.uint64(2**40),
    "equal": lambda rng, size: np.full((size, 2), (3, 5), np.uint64),
}


def as_text(path: Path, edges: Pairs) -> Path:
    np.savetxt(path, edges, "%d")
    return path


def as_npy(path: Path, edges: Pairs) -> Path:
    np.save(path := path.with_suffix(".npy"), edges)
    return path


@pytest.mark.parametrize("seed", range(60 if ALL else 20))
def test_what_the_plan_says_is_enough(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    choose = random.Random(seed)
    rng = np.random.default_rng(seed)
    edges = EDGES[choose.choice(sorted(EDGES))](rng, int(2 ** choose.uniform(16, 18.5)))
    path = choose.choice([as_text, as_text, as_npy])(tmp_path / "edges.txt", edges)
    settings: dict[str, Any] = {
        "directed": choose.choice([None, False, True]),
        "order": choose.choice(["auto", "auto", "natural", "degree", "local", "communities"]),
        "codec": choose.choice(["raw", "raw", "zstd"]),
    }
    plan = ConvertPlan(2, choose.randrange(4 << 20, 12 << 20), MemoryWatch())
    monkeypatch.setattr("oocbfs.conversion.converter.make_plan", lambda *_: plan)
    plain = tmp_path / "plain.ocg"
    report = oocbfs.convert(path, plain, **settings)
    print(settings, len(edges), report.spilled_bytes, report.disk_at_most_bytes)
    assert report.disk_at_most_bytes is not None
    disk = tmp_path / "disk"
    with small_disk(disk, report.disk_at_most_bytes):
        oocbfs.convert(path, disk / "g.ocg", **settings)
        verify(disk / "g.ocg")
        assert (disk / "g.ocg").read_bytes() == plain.read_bytes()


def test_less_than_the_plan_says_is_refused_before_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = as_text(tmp_path / "edges.txt", EDGES["uniform"](np.random.default_rng(1), 1 << 17))
    with small_disk(tmp_path / "disk", 1 << 16):
        monkeypatch.setattr("oocbfs.formats.readers.open.InputEdges.batches", None)
        with pytest.raises(OutputError, match=r"has room for 64.0 KB, and converting may take"):
            oocbfs.convert(path, tmp_path / "disk" / "g.ocg")
        assert not list((tmp_path / "disk").iterdir())


@pytest.mark.parametrize("tells", [True, False])
def test_a_full_disk_leaves_the_graph_that_was_to_be_updated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tells: bool
) -> None:
    """Whether the file system says how much is free, or is only found to be full."""
    rng = np.random.default_rng(2)
    old, new = (EDGES["uniform"](rng, 1 << size) for size in (17, 14))
    made = tmp_path / "made.ocg"
    oocbfs.convert(old, made)
    before = made.read_bytes()
    if not tells:
        silent = os.statvfs_result((4096, 4096, 0, 0, 0, 0, 0, 0, 0, 255))
        monkeypatch.setattr(os, "statvfs", lambda _: silent)
    with small_disk(tmp_path / "disk", len(before) + (1 << 16)):
        graph = tmp_path / "disk" / "g.ocg"
        graph.write_bytes(before)
        said = "has room for" if tells else "No space left|space"
        with pytest.raises(OutputError, match=said):
            oocbfs.update(graph, add=as_text(tmp_path / "new.txt", new))
        assert graph.read_bytes() == before
        assert [path.name for path in graph.parent.iterdir()] == ["g.ocg"]


def test_room_is_what_is_free_and_what_is_used_already(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1 << 20):
        disk = Disk(tmp_path / "disk")
        (tmp_path / "disk" / "used").write_bytes(bytes(1 << 19))
        with pytest.raises(OutputError, match="another folder with tmp"):
            disk.expect(1 << 20)
        disk.take(1 << 19)
        disk.expect(1 << 20)
        disk.take(-(1 << 19))
        assert (disk.used_bytes, disk.most_bytes) == (0, 1 << 19)


def test_progress_tells_what_is_on_disk(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    lines = Lines("sort", 10, "edge", disk.note)
    with lines:
        assert "on disk" not in lines.line()
        disk.expect(1 << 11)
        disk.take(1 << 10)
        assert lines.line().endswith("; 1.0 KB of at most 2.0 KB on disk")


@pytest.mark.parametrize("lines", [100, 1 << 20])
def test_places_of_a_text_tell_how_many_edges_it_has(tmp_path: Path, lines: int) -> None:
    path = tmp_path / "edges.txt"
    path.write_text("# 99999999999\n" + "".join(f"{i} {i // 7}\n" for i in range(lines)))
    expected = open_edges([path]).expect()
    assert expected is not None
    assert lines <= expected.num_edges <= 1.1 * lines + 2
    assert expected.id_bits in ((lines - 1).bit_length(), (lines - 1).bit_length() + 1)
