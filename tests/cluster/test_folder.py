"""Folders of shards: whole or not at all, and nothing but what the manifest names."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.cluster import sharding
from oocbfs.cluster.manifest import Manifest
from oocbfs.cluster.sharding import shard
from oocbfs.cluster.verify import verify
from oocbfs.errors import FormatError, OocbfsError, OutputError, QueryError
from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.reader import Container
from oocbfs.graph import verifier
from tests.support import children
from tests.support.crafting import overwrite, set_header
from tests.support.shared import SharedGraphs
from tests.support.strategies import stored_edges


def test_rows_are_copied_byte_by_byte(social: Path, folder: Path) -> None:
    with Container(social) as whole:
        manifest = Manifest.read(folder)
        for number in range(3):
            with manifest.open(number) as part:
                own = manifest.cut.vertex_of(number, np.arange(part.num_vertices))
                for side in (0, layout.TRANSPOSED):
                    for kind in (Kind.HEADS, Kind.DEGREES):
                        values = part.section(Kind(kind + side))
                        np.testing.assert_array_equal(values, whole.section(Kind(kind + side))[own])
                    rows = [tails(whole, side, int(vertex)) for vertex in own]
                    assert part.section(Kind(Kind.TAILS + side)).tobytes() == b"".join(rows)


def tails(container: Container, side: int, row: int) -> bytes:
    """Return the bytes of a row's tail."""
    bases, starts = (container.section(Kind(k + side)) for k in (Kind.BASES, Kind.STARTS))
    begin, end = (int(bases[u >> container.block_shift]) + int(starts[u]) for u in (row, row + 1))
    found: bytes = container.section(Kind(Kind.TAILS + side))[begin:end].tobytes()
    return found


@pytest.mark.parametrize("parts", [1, 2, 100])
def test_there_and_back(social: Path, tmp_path: Path, parts: int) -> None:
    shard(social, tmp_path / "parts", parts=parts)
    assert stored_edges(tmp_path / "parts") == stored_edges(social)
    verify(tmp_path / "parts")


def test_large_pieces_are_cut(
    shared_graphs: SharedGraphs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words with more tails than a piece has room for are not held in memory."""
    hub = np.stack([np.zeros(50_000, np.int64), np.arange(1, 50_001)], axis=1)
    path = shared_graphs.make("cluster-hub", lambda: hub, order="natural")
    monkeypatch.setattr(sharding, "_PIECE_BYTES", 1000)
    shard(path, tmp_path / "parts", parts=3)
    verify(tmp_path / "parts")
    with oocbfs.open(path) as whole, oocbfs.open(tmp_path / "parts", cluster=None) as parts:
        np.testing.assert_array_equal(whole.bfs(7).levels, parts.bfs(7).levels)


def test_an_empty_graph(tmp_path: Path) -> None:
    oocbfs.convert(np.empty((0, 2), np.int64), tmp_path / "g.ocg")
    shard(tmp_path / "g.ocg", tmp_path / "parts", parts=2)
    verify(tmp_path / "parts")
    with oocbfs.open(tmp_path / "parts", cluster=None) as graph:
        assert graph.components().num_components == 0
        with pytest.raises(QueryError, match="has no vertex 0"):
            graph.bfs(0)


def test_a_part_is_version_two_and_a_graph_version_one(social: Path, folder: Path) -> None:
    with Container(social) as whole:
        assert int(whole.header["version"]) == 1
    data = bytearray((folder / "part-0.ocg").read_bytes())
    assert data[8] == 2
    (folder / "part-0.ocg").write_bytes(set_header(data, version=1))
    with pytest.raises(FormatError, match="reserved header bytes are not zero"):
        Container(folder / "part-0.ocg")


@pytest.mark.parametrize(
    "fields",
    [
        {"part": 9},
        {"parts": 2},
        {"parts": 1 << 20},
        {"total_vertices": 7},
        {"total_arcs": 0},
        {"reserved_parts": 1},
        {"part": 3},
    ],
)
def test_impossible_parts_are_refused(folder: Path, fields: dict[str, int]) -> None:
    path = folder / "part-1.ocg"
    path.write_bytes(set_header(bytearray(path.read_bytes()), **fields))
    with pytest.raises(FormatError, match=r"part-1\.ocg: "):
        Container(path)


def test_a_part_alone_is_no_graph(folder: Path) -> None:
    with pytest.raises(FormatError, match="is a shard of a graph: name its folder"):
        oocbfs.open(folder / "part-0.ocg")
    with pytest.raises(FormatError, match="is a shard of a graph: verify its folder"):
        verifier.verify(folder / "part-0.ocg")
    with pytest.raises(QueryError, match="is a shard of a graph already"):
        shard(folder / "part-0.ocg", folder / "more", parts=2)


def remove(folder: Path) -> None:
    (folder / "part-1.ocg").unlink()


def swap(folder: Path) -> None:
    (folder / "part-1.ocg").write_bytes((folder / "part-0.ocg").read_bytes())


def damage(folder: Path) -> None:
    data = bytearray((folder / "part-1.ocg").read_bytes())
    data[100] ^= 1
    (folder / "part-1.ocg").write_bytes(data)


def cut_short(folder: Path) -> None:
    (folder / "part-1.ocg").write_bytes((folder / "part-1.ocg").read_bytes()[:-1])


def change(folder: Path) -> None:
    """Change a row and sign the file anew."""
    overwrite(folder / "part-1.ocg", Kind.HEADS, 0, b"\1\0\0\0")


def replace_whole(folder: Path) -> None:
    oocbfs.convert(np.array([[0, 1]]), folder / "part-1.ocg", force=True)


@pytest.mark.parametrize("spoil", [remove, swap, damage, cut_short, change, replace_whole])
def test_what_is_not_named_in_the_manifest_is_refused(folder: Path, spoil: Any) -> None:
    spoil(folder)
    for cluster in (None, "local:1"):
        with (
            oocbfs.open(folder, cluster=cluster) as graph,
            pytest.raises(FormatError, match=r"part-1\.ocg: ") as caught,
        ):
            graph.bfs(5)
        assert "\n" not in str(caught.value)
    with pytest.raises(FormatError, match=r"part-1\.ocg: "):
        verify(folder)


def test_a_part_of_another_graph_is_refused(
    folder: Path, shared_graphs: SharedGraphs, tmp_path: Path
) -> None:
    ring = np.stack([np.arange(3000), (np.arange(3000) + 1) % 3000], axis=1)
    path = shared_graphs.make("cluster-ring", lambda: ring, directed=True)
    shard(path, tmp_path / "other", parts=3)
    shutil.copy(tmp_path / "other" / "part-2.ocg", folder / "part-2.ocg")
    with (
        oocbfs.open(folder, cluster=None) as graph,
        pytest.raises(FormatError, match=r"part-2\.ocg: belongs to another graph"),
    ):
        graph.bfs(5)
    shutil.copy(tmp_path / "other" / "vertices.ocg", folder / "vertices.ocg")
    with pytest.raises(FormatError, match=r"vertices\.ocg: belongs to another graph"):
        oocbfs.open(folder, cluster=None)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": "other"}, "is not the manifest"),
        ({"version": 9}, "is version 9, this oocbfs reads version 2"),
        ({"num_vertices": -1}, "is damaged"),
        ({"num_vertices": "3000"}, "is damaged"),
        ({"parts": []}, "is damaged"),
        ({"parts": [{"name": "../x", "bytes": 1, "checksum": 1, "arcs": 1}]}, "is damaged"),
        ({"useful": 1 << 40}, "is damaged"),
        ({"directed": 1}, "is damaged"),
        ({"num_vertices": 2999}, "is not shard 3 of 3"),
        ({"directed": False}, "is not shard 3 of 3"),
    ],
)
def test_a_manifest_that_is_wrong_is_refused(
    folder: Path, change: dict[str, Any], problem: str
) -> None:
    path = folder / "manifest.json"
    content = json.loads(path.read_text())
    if change.get("num_vertices") == 2999:
        change = {**change, "connected": 2999, "useful": 2999}
    path.write_text(json.dumps({**content, **change}))
    with pytest.raises(FormatError, match=problem):
        oocbfs.open(folder, cluster=None)


@pytest.mark.parametrize("text", ["", "{", "[]", "\0"])
def test_a_manifest_that_is_none_is_refused(folder: Path, text: str) -> None:
    (folder / "manifest.json").write_text(text)
    with pytest.raises(FormatError, match=r"manifest\.json"):
        oocbfs.open(folder, cluster=None)
    (folder / "manifest.json").unlink()
    with pytest.raises(FormatError, match="is a folder without a manifest"):
        oocbfs.open(folder, cluster=None)


def test_verify_finds_what_opening_does_not(folder: Path) -> None:
    """A tail whose bytes changed, with the checksums as they were."""
    data = bytearray((folder / "part-2.ocg").read_bytes())
    with Container(folder / "part-2.ocg") as part:
        place = int(part.sections[Kind.TAILS]["offset"])
    data[place] ^= 1
    (folder / "part-2.ocg").write_bytes(data)
    with pytest.raises(FormatError, match=r"part-2\.ocg: section tails is damaged"):
        verify(folder)


def test_an_existing_folder_is_replaced_by_force_only(social: Path, folder: Path) -> None:
    with pytest.raises(OutputError, match="already exists; use force=True"):
        shard(social, folder, parts=2)
    shard(social, folder, parts=2, force=True)
    assert sorted(path.name for path in folder.iterdir()) == [
        "manifest.json",
        "part-0.ocg",
        "part-1.ocg",
        "vertices.ocg",
    ]
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]


def test_a_folder_of_something_else_is_never_replaced(social: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    shard(social, mine, parts=2, force=True)  # it is empty
    shutil.rmtree(mine)
    mine.mkdir()
    (mine / "thesis.tex").write_text("years of work")
    with pytest.raises(OutputError, match="holds something else"):
        shard(social, mine, parts=2, force=True)
    with pytest.raises(OutputError, match="is a file; name a folder"):
        shard(social, mine / "thesis.tex", parts=2, force=True)
    with pytest.raises(OutputError, match="there is no folder"):
        shard(social, tmp_path / "no" / "parts", parts=2)
    assert (mine / "thesis.tex").read_text() == "years of work"


@pytest.mark.parametrize("parts", [0, -1, 4097, 1.5, "2"])
def test_a_number_of_parts_that_is_none(social: Path, tmp_path: Path, parts: Any) -> None:
    with pytest.raises(OocbfsError, match="parts cannot be"):
        shard(social, tmp_path / "parts", parts=parts)


def test_what_fails_leaves_nothing(
    social: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in the last file leaves no new folder, and the old one as it was."""
    before = (folder / "manifest.json").read_bytes()

    def fails(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Manifest, "text", fails)
    for target in (folder, folder.with_name("new")):
        with pytest.raises(OutputError, match="No space left"):
            shard(social, target, parts=2, force=True)
    assert [path.name for path in folder.parent.iterdir()] == [folder.name]
    assert (folder / "manifest.json").read_bytes() == before


def test_what_a_killed_process_left_goes_with_the_next(social: Path, tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from oocbfs.cluster.manifest import Manifest\n"
        "from oocbfs.cluster.sharding import shard\n"
        "Manifest.text = lambda self: os.kill(os.getpid(), 9)\n"
        "shard(sys.argv[1], sys.argv[2], parts=2)\n"
    )
    command = [sys.executable, "-c", program, str(social), str(tmp_path / "parts")]
    assert children.run(command, check=False).returncode == -9
    assert len(list(tmp_path.iterdir())) == 1
    shard(social, tmp_path / "parts", parts=2)
    assert [path.name for path in tmp_path.iterdir()] == ["parts"]
