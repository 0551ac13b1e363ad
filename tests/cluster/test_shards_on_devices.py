"""Shards of a graph on devices: a shard of CUDA kernels behind every exchange, and --devices."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.cluster.sharding import shard
from oocbfs.cluster.shards.gpu import GpuShard
from oocbfs.cluster.tasks import open_shard
from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.container.layout import Kind
from oocbfs.search.sharded import open_sharded
from oocbfs.settings import Settings
from tests.support.command_line import call, said
from tests.support.strategies import DIRECTIONS, ORDERS, Pairs, edge_lists, pair_array

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    edges=edge_lists(),
    order=st.sampled_from(ORDERS),
    directed=st.booleans(),
    parts=st.sampled_from([1, 2, 3]),
    direction=st.sampled_from(DIRECTIONS),
    own_devices=st.booleans(),
    data=st.data(),
)
def test_any_graph(
    edges: Pairs,
    order: Any,
    directed: bool,
    parts: int,
    direction: Any,
    own_devices: bool,
    data: st.DataObject,
) -> None:
    """Driven by an exchange, shard by shard, and by the devices themselves."""
    with tempfile.TemporaryDirectory() as name:
        path, folder = Path(name) / "g.ocg", Path(name) / "parts"
        oocbfs.convert(pair_array(edges), path, order=order, directed=directed, ids="compact")
        shard(path, folder, parts=parts)
        with oocbfs.open(path) as whole, open_sharded(folder) as graph:
            ids = whole.ids().tolist()
            if not ids:
                return
            source = data.draw(st.sampled_from(ids))
            found = graph.bfs(
                source,
                engine="emulator",
                parents=max(ids) < 2**63,
                validate=True,
                options=Settings(
                    direction=direction,
                    resident_tails=data.draw(st.sampled_from([None, "50%"])),
                    devices=list(range(parts)) if own_devices else None,
                ),
            )
            expected = whole.bfs(source, engine="cpu")
            np.testing.assert_array_equal(found.levels, expected.levels)
            assert found.level_sizes.tolist() == expected.level_sizes.tolist()
            assert found.stats.edges_traversed == expected.stats.edges_traversed


def test_a_device_answers_as_the_cpu_does(folder: Path) -> None:
    """Both steps, from any frontier, with anything visited."""
    rng = np.random.default_rng(3)
    with open_sharded(folder) as graph:
        refs = {
            engine: graph._stored.refs(Settings(engine=engine, threads=1))
            for engine in ("cpu", "emulator")
        }
    for part in range(3):
        shards = [open_shard(refs[engine][part]) for engine in refs]
        assert isinstance(shards[1], GpuShard)
        cut = shards[0].cut
        for share in (0.001, 0.1, 0.9):
            bits = rng.random((2, 64 * cut.num_words)) < share
            bits[:, cut.num_vertices :] = False
            full = [np.packbits(side, bitorder="little").view(np.uint64) for side in bits]
            frontier = np.append(full[0], np.uint64(0))
            visited = np.ascontiguousarray(cut.own(np.append(full[1], np.uint64(0)), part))
            ups = [one.bottom_up(frontier, visited, parents=True) for one in shards]
            np.testing.assert_array_equal(ups[0].found, ups[1].found)
            for bottom_up in ups:
                assert bottom_up.parents is not None
                assert bits[0][bottom_up.parents].all()
            own = np.ascontiguousarray(cut.own(frontier, part))
            downs = [one.top_down(own, parents=False) for one in shards]
            marked = []
            for top_down in downs:
                words = np.zeros(64 * cut.num_words + 64, np.bool_)
                if top_down.ids is not None:
                    words[top_down.ids] = True
                else:
                    assert top_down.words is not None
                    words |= np.unpackbits(top_down.words.view(np.uint8), bitorder="little") > 0
                marked.append(words)
            np.testing.assert_array_equal(marked[0], marked[1])
        for one in shards:
            one.close()


def test_processes_and_many_sources_and_components(
    social: Path, folder: Path, levels: np.ndarray
) -> None:
    with oocbfs.open(folder, cluster="local:2") as graph, oocbfs.open(social) as whole:
        result = graph.bfs(5, engine="emulator", parents=True, validate=True)
        np.testing.assert_array_equal(result.levels, levels)
        for one in graph.bfs_many([5, 7], emit="levels", engine="emulator"):
            np.testing.assert_array_equal(one.levels, whole.bfs(one.source).levels)
        labels = graph.components(engine="emulator").labels
        np.testing.assert_array_equal(labels, whole.components().labels)


def test_devices_on_the_command_line(folder: Path, levels: np.ndarray, tmp_path: Path) -> None:
    out = tmp_path / "levels.npy"
    search = ["bfs", folder, "--source", 5]
    devices = ["--devices", "0,1,2", "--engine", "emulator"]
    done = call(*search, *devices, "--levels", out, "--validate")
    assert done.returncode == 0, done.stderr
    assert "between GPUs" in done.stdout
    np.testing.assert_array_equal(np.load(out), levels)
    done = call(*search, *devices, "--levels", f"{tmp_path}/parts.npy/")
    assert done.returncode == 0, done.stderr
    found = [np.load(path) for path in sorted((tmp_path / "parts.npy").iterdir())]
    np.testing.assert_array_equal(np.concatenate(found), levels)
    for more, message in (
        (["--devices", "0,1", "--engine", "emulator"], "has 3 shards, and each takes a device"),
        ([*devices, "--cluster", "local:2"], "leave out --cluster"),
        (["--vram", "1G"], "knows no --vram"),
    ):
        done = call(*search, *more)
        assert done.returncode == 1
        (line,) = said(done)
        assert message in line


def test_without_a_gpu_one_line_says_so(folder: Path) -> None:
    for more in (["--devices", "0,1,2"], ["--engine", "cuda"]):
        done = call("bfs", folder, "--source", 5, *more)
        assert done.returncode == 1
        (line,) = said(done)
        assert "CuPy" in line or "GPU" in line or "driver" in line


def test_damaged_rows_are_refused_on_a_device(folder: Path) -> None:
    with open_sharded(folder) as graph:
        tails = graph._stored.shard(1).sections[Kind.TAILS]
    first, size = int(tails["offset"]), int(tails["stored_bytes"])
    part = folder / "part-1.ocg"
    content = bytearray(part.read_bytes())
    content[first : first + size] = b"\xff" * size
    part.write_bytes(content)
    with (
        open_sharded(folder) as graph,
        pytest.raises(FormatError, match=r"part-1\.ocg"),
    ):
        graph.bfs(5, engine="emulator")
    with open_sharded(folder) as graph, pytest.raises(FormatError, match="damaged"):
        graph.bfs(5, engine="emulator", options=Settings(devices=[0, 1, 2]))
    with open_sharded(folder) as graph, pytest.raises(QueryError, match="method"):
        graph.bfs(5, engine="emulator", options=Settings(method="v3.3"))
