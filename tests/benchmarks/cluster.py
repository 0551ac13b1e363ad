"""Sharded graphs: what shards and exchanges cost beside the engine, and what they send."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import oocbfs
from oocbfs.arrays import ResultArrays
from oocbfs.cluster.coordinator import Packed
from oocbfs.cluster.driver import Outcome, search
from oocbfs.cluster.results import AllResults
from oocbfs.cluster.sharding import shard
from oocbfs.plan.messages import bottom_up_bytes, top_down_bytes
from oocbfs.query import Query
from oocbfs.search.graph import Graph, open_file
from oocbfs.search.sharded import ShardedGraph, open_sharded
from oocbfs.settings import Settings
from tests.benchmarks.common import make_kron, show
from tests.support.clusters.mpi import MISSING, run_on_ranks

# Clusters that are measured where nothing else is asked for; None is in this process.
CLUSTERS = ("here", "local:2")


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench cluster", description=__doc__)
    parser.add_argument("--scale", type=int, default=22, help="Kronecker scale (default 22)")
    parser.add_argument("--graph", type=Path, help="an .ocg instead of a Kronecker graph")
    parser.add_argument("--parts", default="2,4", help="numbers of shards (default 2,4)")
    parser.add_argument("--clusters", default=",".join(CLUSTERS), help="as for --cluster")
    parser.add_argument("--sources", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5, help="so many, in turns")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="for the files (default: a temporary one)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, ExitStack() as stack:
        path = options.graph or make_kron(options.scale, Path(folder))
        graph = stack.enter_context(open_file(path))
        for parts in map(int, options.parts.split(",")):
            cut = Path(folder) / f"parts-{parts}"
            shard(path, cut, parts=parts)
            measure(graph, cut, options)


def measure(graph: Graph, folder: Path, options: argparse.Namespace) -> None:
    """Print times beside the engine's, then what one search sends, level by level."""
    rng = np.random.default_rng(1)
    non_isolated = np.flatnonzero(graph._stored.stored_degrees)
    sources = graph._stored.ids_of(
        rng.choice(non_isolated, min(options.sources, non_isolated.size))
    ).tolist()
    with ExitStack() as stack:
        opened = {
            name: stack.enter_context(
                open_sharded(folder, cluster=None if name == "here" else name)
            )
            for name in options.clusters.split(",")
        }
        title = f"{Path(graph.path).name} in {folder.name.partition('-')[2]} shards"
        _time(title, graph, opened, sources, options)
        parts = next(iter(opened.values()))
        _count(title, parts, sources)


def _time(
    title: str,
    graph: Graph,
    opened: dict[str, ShardedGraph],
    sources: list[int],
    options: argparse.Namespace,
) -> None:
    """Search from the same sources in turns; ratios are of medians, and of whole calls."""
    threads = options.threads
    ways: dict[str, Callable[[int], oocbfs.BfsResult]] = {
        "engine": lambda source: graph.bfs(source, engine="cpu", threads=threads)
    }
    for name, parts in opened.items():
        ways[name] = partial(parts.bfs, threads=threads)
    for run in ways.values():
        run(sources[0])  # compiles, starts workers, and brings the files into memory
    seconds: dict[str, list[list[float]]] = {name: [] for name in ways}
    levels = 0
    for _ in range(options.rounds):
        for source in sources:
            for name, run in ways.items():
                start = time.perf_counter()
                result = run(source)
                whole = time.perf_counter() - start
                seconds[name].append([whole, result.stats.search_seconds])
            levels += len(result.level_sizes)
    medians = {name: np.median(each, axis=0) for name, each in seconds.items()}
    per_level = levels / (options.rounds * len(sources))
    rows = []
    for name, (whole, searching) in medians.items():
        ratio_whole, ratio = medians[name] / medians["engine"]
        more = 1e3 * (searching - medians["engine"][1]) / per_level
        rows.append(
            [
                name,
                f"{1e3 * whole:.1f}",
                f"{1e3 * searching:.1f}",
                f"{ratio_whole:.2f}",
                f"{ratio:.2f}",
                f"{more:.2f}",
            ]
        )
    show(
        f"{title}, {threads} threads, {len(sources)} sources, medians of {options.rounds} rounds "
        "in turns",
        (
            "who",
            "ms, whole call",
            "ms, searching",
            "÷ engine, whole call",
            "÷ engine, searching",
            "ms more a level",
        ),
        rows,
    )


def packed_search(graph: ShardedGraph, source: int) -> Outcome:
    """Search with every message as it would travel through the client."""
    stored = graph._stored.stored(source).astype(np.uint32)
    results = AllResults(graph._stored.shape.cut, ResultArrays())
    query = graph._stored.shape.ask(Query(stored), graph._stored.stored_degrees)
    return search(
        Packed(graph._stored.refs(Settings(threads=1)), graph._stored.stored_degrees),
        query,
        results,
    )


def mpi_search(folder: Path, ranks: int, source: int) -> list[dict[str, Any]] | None:
    """Return the levels of a search on so many ranks of MPI, if there is MPI."""
    if MISSING is not None:
        return None
    words = ("bfs", folder, "--cluster", "mpi", "--source", source, "--json")
    done = run_on_ranks(ranks, "-m", "oocbfs", *words)
    if done.returncode:
        raise SystemExit(f"MPI failed:\n{done.stderr}")
    levels: list[dict[str, Any]] = json.loads(done.stdout)["levels"]
    return levels


def formula(graph: ShardedGraph, level: dict[str, Any]) -> float:
    """Return the bytes of one machine in a level, on paper, of as many vertices as it named."""
    shape, told = graph._stored.shape, level["exchange"]
    p = shape.cut.num_shards
    if level["direction"] == "bottom-up":
        return bottom_up_bytes(shape.useful, told["vertices"], p)
    # On paper, a machine finds its own vertices, too, as many as of each other one; the edges that
    # lead there are on all machines.
    found = [named * p / (p - 1) for named in told["named"]]
    return float(np.mean([top_down_bytes(shape.non_isolated, p * one, p) for one in found]))


def _count(title: str, graph: ShardedGraph, sources: list[int]) -> None:
    """Print the messages of one search, and the totals of all."""
    outcomes = [packed_search(graph, source) for source in sources]
    p = graph._stored.shape.cut.num_shards
    among = mpi_search(Path(graph.path), p, sources[0])
    rows = []
    for number, level in enumerate(outcomes[0].levels):
        traffic = level.exchange or {}
        frontier_edges, by_shard = traffic["frontier_edges"], traffic["edges_by_part"]
        is_up = level.direction == "bottom-up"
        machine = ["-", "-", "-"]
        if among is not None:
            told = among[number]["exchange"]
            bound = top_down_bytes(graph._stored.shape.non_isolated, frontier_edges, p)
            machine = [
                f"{told['sent'] / p:,.0f}",
                f"{formula(graph, among[number]):,.0f}",
                "-" if is_up else f"{bound:,.0f}",
            ]
        rows.append(
            [
                str(number),
                "bottom-up" if is_up else "top-down",
                f"{level.frontier:,}",
                f"{frontier_edges:,}",
                *machine,
                f"{traffic['sent'] + traffic['received']:,}",
                f"{traffic['plain']:,}",
                f"{max(by_shard) * len(by_shard) / max(1, sum(by_shard)):.2f}",
            ]
        )
    show(
        f"{title}: the messages of one search",
        (
            "level",
            "step",
            "frontier",
            "its edges",
            "bytes a machine (MPI)",
            "formula",
            "formula, by edges",
            "bytes through the client",
            "as plain bitmaps",
            "most ÷ mean edges of a part",
        ),
        rows,
    )
    told = [level.exchange or {} for outcome in outcomes for level in outcome.levels]
    sent = sum(traffic["sent"] + traffic["received"] for traffic in told)
    plain = sum(traffic["plain"] for traffic in told)
    most = sum(max(traffic["edges_by_part"]) for traffic in told)
    mean = sum(float(np.mean(traffic["edges_by_part"])) for traffic in told)
    print(
        f"\n{len(outcomes)} searches: {sent / plain:.3f} of plain bitmaps through the client; "
        f"slowest ÷ mean shard {most / max(1e-9, mean):.2f} by edges examined"
    )
