"""Sharded graphs on the ranks of an MPI job."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.cluster.sharding import shard
from oocbfs.formats.container.layout import Kind
from oocbfs.generate import generators
from oocbfs.search.sharded import open_sharded
from tests.benchmarks.cluster import formula, mpi_search
from tests.support.clusters.mpi import MISSING, StartedRanks, run_on_ranks
from tests.support.exhaustive import ALL
from tests.support.shared import SharedGraphs

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
    # What only the rank of this shard reads, so that the error has to travel.
    part = folder / "part-1.ocg"
    content = bytearray(part.read_bytes())
    with open_sharded(folder) as sharded_graph:
        tails = sharded_graph._stored.shard(1).sections[Kind.TAILS]
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
    """What ranks send is what is on paper, but for what rounds up the message of each shard."""
    folder = tmp_path / "parts"
    shard(kron, folder, parts=ranks)
    levels = mpi_search(folder, ranks, 1)
    assert levels is not None
    assert {level["direction"] for level in levels} == {"top-down", "bottom-up"}
    with open_sharded(folder) as graph:
        for level in levels:
            told = level["exchange"]
            assert told["sent"] / ranks == pytest.approx(formula(graph, level), rel=0.01, abs=ranks)


@pytest.fixture(scope="module")
def deep(shared_graphs: SharedGraphs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return two shards of a graph of so many levels that ranks tell each other for minutes."""
    folder = tmp_path_factory.mktemp("deep") / "parts"
    whole = shared_graphs.make("mpi-deep", lambda: generators.grid2d(2, 200_000), order="natural")
    shard(whole, folder, parts=2)
    return folder


# Runs on every rank until a signal comes: in a search, or while the first one does something else.
ENDLESS = """
import signal, sys, time
import oocbfs
from oocbfs import cli
# As the program does: where Python loses an interrupt, it comes again.
stop = cli._Stop()
sys.unraisablehook = stop.raise_again
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
    signal.signal(number, stop)
def begin(arguments, run=cli.main):
    open(sys.argv[2], "w").close()
    return run(arguments)
with oocbfs.open(sys.argv[1], cluster="mpi") as graph:
    graph.bfs(0, max_depth=3)
    if sys.argv[3] == "idle":
        open(sys.argv[2], "w").close()
        time.sleep(300)
cli.main = begin
cli.program(sys.argv[4:])
"""


@pytest.mark.parametrize(
    ("rank", "number", "moment"),
    [
        (0, signal.SIGINT, "starting"),
        (1, signal.SIGTERM, "starting"),
        (0, signal.SIGINT, "searching"),
        (0, signal.SIGTERM, "searching"),
        (1, signal.SIGINT, "searching"),
        (1, signal.SIGTERM, "searching"),
        (1, signal.SIGINT, "idle"),
    ],
)
@pytest.mark.parametrize("seconds", [0.1 * n for n in range(8 if ALL else 1)])
def test_a_signal_to_any_rank_ends_all(
    deep: Path, tmp_path: Path, rank: int, number: signal.Signals, moment: str, seconds: float
) -> None:
    """One line, the code of the signal, and nothing is left."""
    out, ready = tmp_path / "out" / "levels.npy", tmp_path / "ready"
    out.parent.mkdir()
    words = ["bfs", deep, "--cluster", "mpi", "--source", 0, "--force", "-q", "--levels", out]
    if moment == "starting":
        ranks = StartedRanks(2, "-m", "oocbfs", *words)
    else:
        (tmp_path / "program.py").write_text(ENDLESS)
        ranks = StartedRanks(2, tmp_path / "program.py", deep, ready, moment, *words)
        ranks.wait_until(ready.exists)
    ranks.wait_until(lambda: ranks.maps(rank, "libmpi"))
    time.sleep(seconds)
    ranks.send_signal(rank, number)
    ended = ranks.finish(60)
    assert ended is not None, "ranks wait for ever"
    code, said = ended
    assert code == 128 + number, said
    whose = "" if rank == 0 and number == signal.SIGINT else f"rank {rank}: "
    what = "interrupted" if number == signal.SIGINT else "ended by SIGTERM"
    # Between two searches, the first rank ends as one machine does, which says nothing of SIGTERM.
    assert len(said) == 1 or (rank, number, said) == (0, signal.SIGTERM, []), said
    assert all(line.startswith(f"oocbfs: {whose}{what}") for line in said), said
    assert list(out.parent.iterdir()) == []
