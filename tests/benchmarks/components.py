"""Connected components against GAPBS's Afforest and SciPy: the same graph, in turns."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from oocbfs.formats.output.row_files import write_rows
from oocbfs.search.graph import Graph, open_file
from tests.benchmarks.common import gapbs, huge_pages, make_kron, show

# Of which the median counts, in each round; SciPy, which takes long, has one.
_TRIALS = 4


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench components", description=__doc__)
    parser.add_argument("--scale", type=int, default=22, help="Kronecker scale (default 22)")
    parser.add_argument(
        "--graph", type=Path, help="an undirected .ocg instead of a Kronecker graph"
    )
    parser.add_argument("--rounds", type=int, default=3, help="so many, in turns")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", default="gapbs,scipy")
    parser.add_argument("--folder", type=Path, help="for the files (default: a temporary one)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = options.graph or make_kron(options.scale, Path(folder))
        with open_file(path) as graph:
            measure(graph, Path(folder), options)


def measure(graph: Graph, folder: Path, options: argparse.Namespace) -> None:
    """Run all in turns and print each round; ratios are of ours to each peer, round by round."""
    ways = _ways(graph, folder, options)
    for run in ways.values():
        run()  # compiles, and brings the files into memory
    rounds = [[run() for run in ways.values()] for _ in range(options.rounds)]
    rows = []
    for column, name in enumerate(ways):
        seconds = [each[column] for each in rounds]
        ratios = [each[0] / each[column] for each in rounds]
        rows.append(
            [
                name,
                " ".join(f"{1e3 * s:.1f}" for s in seconds),
                f"{np.median(ratios):.4f}",
                " ".join(f"{ratio:.4f}" for ratio in ratios),
            ]
        )
    show(
        f"{Path(graph.path).name}, {options.threads} threads where a peer has them, "
        "milliseconds; ours is the whole call, with ids and counting, which peers do not do",
        ("who", "each round", "oocbfs / who, median", "each round"),
        rows,
    )
    result = graph.components(threads=options.threads)
    decoded, whole = result.stats.tail_bytes_decoded, result.stats.tail_bytes
    print(f"\n{decoded:,} of {whole:,} tail bytes decoded ({decoded / max(1, whole):.4%})")
    print(f"{1e3 * result.stats.to_ids_seconds:.1f} ms for bringing labels to ids and counting")


def _ways(
    graph: Graph, folder: Path, options: argparse.Namespace
) -> dict[str, Callable[[], float]]:
    """Return each way to do it, as something that runs and tells its seconds."""
    threads, wanted = options.threads, options.peers.split(",")
    ways: dict[str, Callable[[], float]] = {
        f"oocbfs, {threads} threads": lambda: _ours(graph, threads),
        "oocbfs, 1 thread": lambda: _ours(graph, 1),
    }
    if "gapbs" in wanted and gapbs("cc") is not None:
        write_rows(graph._stored, folder / "graph.sg")
        ways["GAPBS cc, huge pages"] = lambda: _gapbs(folder / "graph.sg", threads)
    if "scipy" in wanted:
        from scipy.sparse.csgraph import connected_components

        matrix = graph.to_scipy()

        def scipy() -> float:
            start = time.perf_counter()
            connected_components(matrix, directed=False)
            return time.perf_counter() - start

        ways["SciPy"] = scipy
    return ways


def _ours(graph: Graph, threads: int) -> float:
    """Return the median of some trials."""
    trials = [graph.components(threads=threads).stats.seconds for _ in range(_TRIALS)]
    return float(np.median(trials))


def _gapbs(path: Path, threads: int) -> float:
    """Return the median of some trials in one process."""
    done = subprocess.run(
        [str(gapbs("cc")), "-f", path, "-n", str(_TRIALS)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, **huge_pages(threads)},
    )
    trials = [float(word) for word in re.findall(r"Trial Time: +([\d.]+)", done.stdout)]
    return float(np.median(trials))
