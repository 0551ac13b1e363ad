"""Graphs in parts on the ranks of an MPI job."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.cluster.sharding import shard
from oocbfs.formats.container.layout import Kind
from tests.benchmarks.cluster import formula, mpi_search
from tests.support.mpi import MISSING, run_on_ranks

pytestmark = pytest.mark.skipif(MISSING is not None, reason=str(MISSING))

# Runs on every rank; all but the first end in the first line that needs MPI.
PROGRAM = """
import sys
import numpy as np
import oocbfs
for folder in sys.argv[1:]:
    with oocbfs.open(folder, cluster="mpi") as graph:
        found = [graph.bfs(source, parents=True, validate=True).levels for source in (0, 1, 17)]
        np.savez(folder + ".npz", labels=graph.components().labels, levels=found)
        print(folder)
"""


@pytest.mark.long
def test_answers_are_the_engine_s(kron: Path, social: Path, tmp_path: Path) -> None:
    graphs = [kron, social]
    folders = []
    for graph, parts in zip(graphs, (2, 3), strict=True):
        folders.append(tmp_path / graph.stem)
        shard(graph, folders[-1], parts=parts)
    (tmp_path / "program.py").write_text(PROGRAM)
    done = run_on_ranks(2, tmp_path / "program.py", *folders)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(folder) for folder in folders]
    for graph, folder in zip(graphs, folders, strict=True):
        found = np.load(f"{folder}.npz")
        with oocbfs.open(graph) as whole:
            for levels, source in zip(found["levels"], (0, 1, 17), strict=True):
                np.testing.assert_array_equal(levels, whole.bfs(source).levels)
            np.testing.assert_array_equal(found["labels"], whole.components().labels)


@pytest.mark.long
def test_the_first_rank_speaks_for_all(kron: Path, tmp_path: Path) -> None:
    """One report, one line for an error of any rank, and no rank that waits for ever."""
    folder = tmp_path / "parts"
    shard(kron, folder, parts=2)
    search = ["-m", "oocbfs", "bfs", folder, "--cluster", "mpi", "--source", 1]
    done = run_on_ranks(2, *search, "--json")
    assert done.returncode == 0, done.stderr
    with oocbfs.open(kron) as whole:
        assert json.loads(done.stdout)["reached"] == whole.bfs(1).reached
    # What only the rank of this part reads, so that the error has to travel.
    part = folder / "part-1.ocg"
    content = bytearray(part.read_bytes())
    with oocbfs.open(folder, cluster=None) as graph_in_parts:
        tails = graph_in_parts.part(1).sections[Kind.TAILS]
    first, size = int(tails["offset"]), int(tails["stored_bytes"])
    content[first : first + size] = b"\xff" * size
    part.write_bytes(content)
    done = run_on_ranks(2, *search)
    assert done.returncode == 1
    (line,) = [line for line in done.stderr.splitlines() if "compiling" not in line]
    assert line == f"oocbfs: {part}: a row is damaged: run 'oocbfs verify'"
    done = run_on_ranks(2, *search, "--max-depth", "no")
    assert done.returncode == 2
    assert done.stderr.count("usage:") == 1


@pytest.mark.long
@pytest.mark.parametrize("ranks", [2, 3])
def test_bytes_are_those_of_the_formulas(kron: Path, tmp_path: Path, ranks: int) -> None:
    """What ranks send is what is on paper, but for what rounds up the message of each part."""
    folder = tmp_path / "parts"
    shard(kron, folder, parts=ranks)
    levels = mpi_search(folder, ranks, 1)
    assert levels is not None
    assert {level["direction"] for level in levels} == {"top-down", "bottom-up"}
    with oocbfs.open(folder, cluster=None) as graph:
        for level in levels:
            told = level["exchange"]
            assert told["sent"] / ranks == pytest.approx(formula(graph, level), rel=0.01, abs=ranks)
