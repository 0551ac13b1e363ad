"""How much memory a search takes beyond the file."""

import sys
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import oocbfs
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.generate import generators
from oocbfs.graph.stored import StoredGraph
from oocbfs.results.validation import Levels, validate
from tests.support import children
from tests.support.exhaustive import ALL

# Prints the bytes for each vertex, after the kernels were loaded for a small graph.
PEAK = """
import sys, numpy as np, oocbfs
from oocbfs.memory import peak_bytes
small, large, parents = sys.argv[1], sys.argv[2], sys.argv[3] == "yes"
def anonymous():
    lines = dict(line.split(":") for line in open("/proc/self/status") if ":" in line)
    return int(lines["RssAnon"].split()[0]) * 1024
with oocbfs.open(small) as graph:
    graph.bfs(0, parents=parents, threads=2)
import threading, time
peak = before = anonymous()
stop = False
def watch():
    global peak
    while not stop:
        peak = max(peak, anonymous()); time.sleep(0.0005)
watcher = threading.Thread(target=watch, daemon=True); watcher.start()
with oocbfs.open(large) as graph:
    options = oocbfs.Settings(direction="top-down")
    result = graph.bfs(0, parents=parents, threads=2, options=options)
stop = True; watcher.join()
print((peak - before) / graph.num_vertices)
"""


@pytest.mark.long
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="anonymous memory is read from /proc"
)
def test_memory_beyond_the_file(tmp_path: Path) -> None:
    """At most 14 bytes a vertex for levels, 26 with parents, on top of a fixed amount.

    Levels are 4 and parents 8, both of ids. Stored vertices by position are 4, the queue and stored
    parents, too, and levels as bytes 1; bitmaps come to less than one.
    """
    num_vertices = 8_000_000 if ALL else 4_000_000
    stream = generators.uniform(vertices=num_vertices, edges=num_vertices * 3 // 2)
    oocbfs.convert(stream, tmp_path / "g.ocg", order="degree")
    oocbfs.convert(np.array([[0, 1]]), tmp_path / "small.ocg")
    for parents, most in (("no", 14), ("yes", 26)):
        done = children.run(
            [sys.executable, "-c", PEAK, tmp_path / "small.ocg", tmp_path / "g.ocg", parents],
            capture_output=True,
            text=True,
            check=True,
        )
        per_vertex = float(done.stdout)
        # 6 MB for stacks, batches and records.
        assert 4 < per_vertex <= most + 6_000_000 / num_vertices


@pytest.mark.parametrize("bounded", [False, True])
def test_all_threads_check_what_is_read_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounded: bool
) -> None:
    """The rows of some tails are few, but as much work as many."""
    hubs = np.stack(np.meshgrid(np.arange(500), np.arange(500)), -1).reshape(-1, 2)
    oocbfs.convert(hubs, tmp_path / "g.ocg", order="natural")
    ranges = []

    def spy(*arguments: Any, **more: Any) -> Any:
        ranges.append(len(found := over_ranges(*arguments, **more)))
        return found

    monkeypatch.setattr("oocbfs.results.validation.over_ranges", spy)
    monkeypatch.setattr("oocbfs.results.validation.PIECE_BYTES", 1 << 17)
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        stored = cast("StoredGraph", graph._stored)
        tails_bytes = stored.rows.tails.size
        result = graph.bfs(0, threads=2)
        found = Levels(result.levels, None, result.level_sizes, result.depth)
        validate(stored, np.array([0], np.uint64), found, threads=2, bounded=bounded)
    assert len(ranges) == (-(-tails_bytes // (1 << 17)) if bounded else 1)
    assert min(ranges) >= 4
