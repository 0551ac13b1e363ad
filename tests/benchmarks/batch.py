"""Many sources: 64 at a time against 64 runs, one run per core, and what PyPI offers."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from oocbfs.formats.io.ordered import ordered_map
from oocbfs.memory import format_size, parse_size, read_bytes
from oocbfs.search.graph import Graph, open_file
from oocbfs.search.many import Searches, plan_searches
from oocbfs.settings import Settings, Strategy
from tests.benchmarks.common import make_kron, show
from tests.benchmarks.outofcore import drop_cache
from tests.benchmarks.peers import python_peers


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench batch", description=__doc__)
    parser.add_argument("--scale", type=int, default=22, help="Kronecker scale (default 22)")
    parser.add_argument("--sources", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3, help="so many, in turns")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", default="scipy,networkit,igraph,graphblas")
    parser.add_argument(
        "--peer-sources", type=int, help="peers run from so many and are scaled up (default: all)"
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE|PERCENT",
        help="bytes read from disk instead, within this budget or so much of the file",
    )
    parser.add_argument("--graph", type=Path, help="this one instead of a Kronecker graph")
    parser.add_argument("--folder", type=Path, help="for the files (default: a temporary one)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = options.graph or make_kron(options.scale, Path(folder))
        with open_file(path) as graph:
            if options.memory:
                measure_disk(graph, options)
            else:
                measure(graph, options)


def measure_disk(graph: Graph, options: argparse.Namespace) -> None:
    """Print the bytes that a batch reads from disk, and those of single runs in the same budget."""
    file_bytes = graph._stored.sizes.file_bytes
    budget = options.memory
    if budget.endswith("%"):
        budget = int(file_bytes * float(budget[:-1]) / 100)
    sources = _choose_sources(graph, options.sources)
    graph._stored.release()
    rows = []
    strategies: dict[str, Strategy] = {"together": "together", "one by one": "one-per-core"}
    for name, strategy in strategies.items():
        with open_file(graph.path, memory=budget) as cold:
            plan = plan_searches(
                cold._stored,
                "summary",
                strategy,
                Settings(threads=options.threads, memory=cold._stored.budget_bytes),
            )
            work = Searches(cold._stored, "summary", plan)
            drop_cache(Path(graph.path))
            before, start = read_bytes(), time.perf_counter()
            for _ in work.run(sources):
                pass
            seconds = time.perf_counter() - start
            how = f"{work.width} {name}" if strategy == "together" else name
            rows.append((how, work.disk_bytes, read_bytes() - before, seconds))
    if not rows[1][1]:
        raise SystemExit("nothing was read from disk: allow less memory than the file's size")
    show(
        f"{Path(graph.path).name}, {len(sources)} sources, "
        f"{format_size(parse_size(budget))} of memory "
        f"for a file of {format_size(file_bytes)}, cold",
        ("how", "bytes of tails / file", "ratio", "by the kernel's count", "seconds"),
        [
            [
                how,
                f"{tails / file_bytes:.2f}",
                f"{tails / rows[1][1]:.3f}",
                f"{counted / file_bytes:.2f}",
                f"{seconds:.1f}",
            ]
            for how, tails, counted, seconds in rows
        ],
    )


def measure(graph: Graph, options: argparse.Namespace) -> None:
    """Run all ways in turns and print each round; ratios are to the runs with all cores."""
    sources = _choose_sources(graph, options.sources)
    ways = _ways(graph, sources, options.threads)
    for run in ways.values():
        run()  # compiles, and brings the file into memory
    rounds = [[run() for run in ways.values()] for _ in range(options.rounds)]
    title = (
        f"{Path(graph.path).name}, {options.sources} sources, {options.threads} threads, "
        "milliseconds in all; whole calls"
    )
    base = next(i for i, name in enumerate(ways) if "all cores" in name)
    rows = []
    for column, name in enumerate(ways):
        milliseconds = [1e3 * seconds[column] for seconds in rounds]
        ratios = [seconds[column] / seconds[base] for seconds in rounds]
        rows.append(
            [
                name,
                *_listed(milliseconds, ".0f"),
                f"{np.median(ratios):.3f}",
                *_listed(ratios, ".3f"),
            ]
        )
    best = min(seconds[base] for seconds in rounds)
    for name, seconds in _peer_seconds(graph, sources, options):
        rows.append([name, f"{1e3 * seconds:.0f}", f"{seconds / best:.1f}", "one round"])
    show(title, ("how", "each round", "ratio, median", "ratio of each round"), rows)


def _choose_sources(graph: Graph, count: int) -> list[int]:
    """Choose vertices that have an edge."""
    candidates = np.flatnonzero(graph._stored.stored_degrees)
    chosen = np.random.default_rng(1).choice(candidates, count, replace=False)
    return [int(vertex) for vertex in graph._stored.ids_of(chosen)]


def _listed(values: Sequence[float], form: str) -> list[str]:
    return [" ".join(format(value, form) for value in values)]


def _ways(graph: Graph, sources: list[int], threads: int) -> dict[str, Callable[[], float]]:
    """Return each way to do it, as something that runs and tells its seconds."""

    def touch(num_bytes: int) -> float:
        """Take memory, touch it with all threads and give it back."""
        start = time.perf_counter()
        taken = np.empty(num_bytes, np.uint8)
        parts = np.array_split(taken, threads)
        for _ in ordered_map(lambda part: part.fill(1), parts, threads):
            pass
        return time.perf_counter() - start

    def many(*, at_hand: bool = False, **settings: Any) -> Callable[[], float]:
        def run() -> float:
            if at_hand:
                touch(2 * len(sources) * graph.num_vertices)
            start = time.perf_counter()
            kept = list(graph.bfs_many(sources, threads=threads, engine="cpu", **settings))
            seconds = time.perf_counter() - start
            assert len(kept) == len(sources)
            return seconds

        return run

    def singles() -> float:
        return sum(
            graph.bfs(source, threads=threads, engine="cpu").stats.seconds for source in sources
        )

    return {
        "batch, summary": many(strategy="together"),
        "batch, all levels kept": many(strategy="together", emit="levels"),
        "the same, in memory given back just before": many(
            at_hand=True, strategy="together", emit="levels"
        ),
        "touching memory for all levels": lambda: touch(len(sources) * graph.num_vertices),
        "single runs, all cores each": singles,
        "single runs, one per core, summary": many(strategy="one-per-core"),
        "single runs, one per core, all levels kept": many(strategy="one-per-core", emit="levels"),
    }


def _peer_seconds(
    graph: Graph, sources: list[int], options: argparse.Namespace
) -> list[tuple[str, float]]:
    """Time the peers once, from some or all of the sources."""
    wanted = [name for name in options.peers.split(",") if name]
    if not wanted:
        return []
    matrix = graph.to_scipy()
    matrix.sort_indices()
    some = sources[: options.peer_sources]
    rows = []
    for peer in python_peers(matrix, options.threads):
        if peer.name in wanted:
            peer.run(some[:1])
            seconds = sum(peer.run(some)) * len(sources) / len(some)
            scaled = "" if len(some) == len(sources) else f", scaled up from {len(some)}"
            rows.append((f"{peer.name}, {len(sources)} runs{scaled}", seconds))
    return rows
