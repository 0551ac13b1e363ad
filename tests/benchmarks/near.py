"""Who is within some steps of many seeds, against searches of the whole graph."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oocbfs.memory import format_size, peak_bytes
from oocbfs.search.graph import Graph, open_file
from tests.benchmarks.common import add_graph_options, make_kron, show


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench near", description=__doc__)
    add_graph_options(parser)
    parser.add_argument("--seeds", type=int, default=10_000, help="how many (default 10000)")
    parser.add_argument("--depth", type=int, default=2, help="so many steps (default 2)")
    parser.add_argument(
        "--whole", type=int, default=640, help="seeds that are checked (default 640)"
    )
    parser.add_argument("--memory", help="a budget for the process")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = options.graph or make_kron(options.scale, Path(folder))
        with open_file(path, memory=options.memory) as graph:
            measure(graph, options)


def measure(graph: Graph, options: argparse.Namespace) -> None:
    """Find what is near, and compare the sizes of levels with those of whole searches."""
    seeds = choose(graph, options.seeds, options.seed)
    found = np.zeros((len(seeds), options.depth + 1), np.int64)
    for _ in graph.neighborhood(seeds[:1], options.depth):  # compiles
        pass
    start = time.perf_counter()
    for number, near in enumerate(graph.neighborhood(seeds, options.depth)):
        found[number] = np.bincount(near.distances, minlength=options.depth + 1)
    seconds, peak = time.perf_counter() - start, peak_bytes()
    few = seeds[: options.whole]
    start = time.perf_counter()
    whole = whole_sizes(graph, few, options.depth)
    whole_seconds = time.perf_counter() - start
    if (whole != found[: len(few)]).any():
        raise SystemExit("searches of the whole graph disagree about a level")
    rows, each = int(found.sum()), seconds / len(seeds)
    show(
        f"{graph.title}, within {options.depth} steps",
        ("seeds", "rows", "seconds", "ns a row", "peak", "bfs_many, ms a seed", "ratio"),
        [
            [
                f"{len(seeds):,}",
                f"{rows:,}",
                f"{seconds:.1f}",
                f"{1e9 * seconds / rows:.0f}",
                format_size(peak),
                f"{1e3 * whole_seconds / len(few):.1f}",
                f"{each / (whole_seconds / len(few)):.2f}",
            ]
        ],
    )
    print(f"\nlevels of {len(few):,} seeds are those of bfs_many")


def choose(graph: Graph, count: int, seed: int) -> list[int]:
    """Choose different vertices that have an edge."""
    connected = np.flatnonzero(graph.degrees)
    chosen = np.random.default_rng(seed).choice(
        connected, min(count, connected.size), replace=False
    )
    seeds: list[int] = graph.ids()[chosen].tolist()
    return seeds


def whole_sizes(graph: Graph, seeds: list[int], depth: int) -> NDArray[np.int64]:
    """Return the sizes of the first levels by searches of the whole graph."""
    sizes = np.zeros((len(seeds), depth + 1), np.int64)
    for number, result in enumerate(graph.bfs_many(seeds)):
        some = result.level_sizes[: depth + 1]
        sizes[number, : some.size] = some
    return sizes
