"""Sharded graphs on Dask and MPI: what a level costs, a lost worker, and the memory of workers."""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

import oocbfs
from oocbfs.cluster.manifest import Manifest
from oocbfs.cluster.sharding import shard
from oocbfs.memory import format_size
from oocbfs.search.graph import Graph, open_file
from oocbfs.search.sharded import ShardedGraph, open_sharded
from tests.benchmarks.common import make_kron, show
from tests.support.clusters.dask_processes import (
    Killer,
    most_memory,
    started_cluster,
    wait_for_workers,
)
from tests.support.clusters.mpi import MISSING, run_on_ranks


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench workers", description=__doc__)
    parser.add_argument("--scale", type=int, default=22, help="Kronecker scale (default 22)")
    parser.add_argument("--graph", type=Path, help="an .ocg instead of a Kronecker graph")
    parser.add_argument("--parts", type=int, default=2, help="and so many workers (default 2)")
    parser.add_argument("--sources", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3, help="so many, in turns")
    parser.add_argument("--threads", type=int, default=2, help="of the engine (default 2)")
    parser.add_argument("--kills", type=int, default=3, help="so many workers are killed")
    parser.add_argument("--folder", type=Path, help="for the files (default: a temporary one)")
    parser.add_argument("--on-ranks", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.on_ranks:
        folder, *sources = options.on_ranks
        print(json.dumps(search(oocbfs.open(folder, cluster="mpi"), list(map(int, sources)))))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = options.graph or make_kron(options.scale, Path(folder))
        cut = Path(folder) / "parts"
        manifest = shard(path, cut, parts=options.parts)
        with open_file(path) as graph:
            rng = np.random.default_rng(1)
            non_isolated = np.flatnonzero(graph._stored.stored_degrees)
            chosen = rng.choice(non_isolated, min(options.sources, non_isolated.size))
            measure(graph, manifest, graph._stored.ids_of(chosen).tolist(), options)


def search(graph: ShardedGraph | Graph, sources: Sequence[int], **how: int) -> dict[str, float]:
    """Search from each source; returns the seconds of all, and how many levels they have."""
    for source in sources:  # which loads kernels, and brings pages into each process
        graph.bfs(source, **how)  # type: ignore[arg-type]
    seconds, levels = 0.0, 0
    for source in sources:
        result = graph.bfs(source, **how)  # type: ignore[arg-type]
        seconds += result.stats.search_seconds
        levels += len(result.stats.levels)
    return {"seconds": seconds, "levels": levels}


def measure(
    graph: Graph, manifest: Manifest, sources: list[int], options: argparse.Namespace
) -> None:
    """Search in turns on the engine, in this process and on MPI; then in this process and Dask."""
    how = {"threads": options.threads}
    with open_sharded(manifest.folder) as here:
        ways = {
            "engine": lambda: search(graph, sources, **how),
            "here": lambda: search(here, sources, **how),
        }
        if MISSING is None:
            ways["mpi"] = lambda: _on_ranks(manifest, sources)
        _show_rows(graph, ways, options)
        with (
            tempfile.TemporaryDirectory() as scratch,
            started_cluster(Path(scratch), n_workers=options.parts) as cluster,
        ):
            address = cluster.scheduler_address
            with oocbfs.open(manifest.folder, cluster=address) as dask:
                ways.pop("mpi", None)
                _show_rows(graph, {**ways, "dask": lambda: search(dask, sources)}, options)
            peaks = _peaks(address)
            _show_workers(manifest, _kill(cluster, manifest, sources[0], options), peaks)


def _on_ranks(manifest: Manifest, sources: list[int]) -> dict[str, float]:
    """Search on MPI, in processes that are there for that only: ranks that wait take a core."""
    words = ["-m", "tests.benchmarks", "workers", "--on-ranks", manifest.folder, *sources]
    done = run_on_ranks(len(manifest.shards), *words)
    if done.returncode:
        raise SystemExit(f"MPI failed:\n{done.stderr}")
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def _peaks(address: str) -> list[int]:
    """Return the most memory that each worker has taken."""
    with Client(address, set_as_default=False) as client:
        return list(client.run(most_memory).values())


def _kill(
    cluster: LocalCluster, manifest: Manifest, source: int, options: argparse.Namespace
) -> list[float]:
    """Kill a worker in the second level of a search; returns the seconds that it takes longer."""
    longer = []
    for _ in range(options.kills):
        wait_for_workers(cluster, options.parts)
        hit: list[str] = []

        def when(key: str, hit: list[str] = hit) -> float | None:
            if key.split("-")[2] == "2" and len(hit) == 0:
                hit.append(key)
                return 0.0
            return None

        with oocbfs.open(manifest.folder, cluster=cluster.scheduler_address) as graph:
            graph.bfs(source)  # on workers that have the shards open
            usual = graph.bfs(source).stats.search_seconds
            start = time.perf_counter()
            with Killer(cluster, when) as killer:
                graph.bfs(source)
            longer.append(time.perf_counter() - start - usual)
        assert len(killer.lost) == 1
    return longer


def _show_rows(
    graph: Graph, ways: dict[str, Callable[[], dict[str, float]]], options: argparse.Namespace
) -> None:
    """Run searches in turns, and print their medians."""
    found = [{name: run() for name, run in ways.items()} for _ in range(options.rounds)]
    seconds = {name: float(np.median([each[name]["seconds"] for each in found])) for name in ways}
    rows = []
    for name in ways:
        beside = 1e3 * (seconds[name] - seconds["here"]) / found[0][name]["levels"]
        row = [name, f"{1e3 * seconds[name] / options.sources:.1f}"]
        rows.append([*row, f"{seconds[name] / seconds['engine']:.2f}", f"{beside:.2f}"])
    show(
        f"{Path(graph.path).name} in {options.parts} shards on as many workers of one thread, "
        f"engine with {options.threads}; medians of {options.rounds} rounds in turns",
        ("who", "ms a search", "÷ engine", "ms a level more than here"),
        rows,
    )


def _show_workers(manifest: Manifest, recovered: list[float], peaks: list[int]) -> None:
    """Print what a lost worker costs, and what workers take."""
    part = max(file.bytes for file in manifest.shards)
    bound = (200 << 20) + part + 3 * manifest.num_vertices // 8
    show(
        "Dask",
        ("what", "median", "most"),
        [
            [
                "seconds longer if a worker is killed in level 2",
                f"{np.median(recovered):.2f}",
                f"{max(recovered):.2f}",
            ],
            [
                f"memory of a worker; 200 MB + its shard + 3·n/8 is {format_size(bound)}",
                format_size(float(np.median(peaks))),
                format_size(max(peaks)),
            ],
        ],
    )
