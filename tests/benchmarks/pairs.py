"""Distances between two vertices: one call each, a table, from a cold file, and on roads."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.memory import format_size, parse_size, peak_bytes
from oocbfs.point.ask import Asking
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import Settings
from tests.benchmarks.common import add_graph_options, make_kron, show
from tests.benchmarks.outofcore import drop_cache

_TILES = (0.5, 0.99)
_ROUNDS = 5
Pairs = NDArray[np.int64]


class Measured(NamedTuple):
    """The seconds that each pair took, and its distance."""

    seconds: NDArray[np.float64]
    distances: list[int]


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench pairs", description=__doc__)
    add_graph_options(parser)
    parser.add_argument("--pairs", type=int, default=10_000, help="one call each (default 10000)")
    parser.add_argument("--table", type=int, default=100_000, help="in one call (default 100000)")
    parser.add_argument("--whole", type=int, default=100, help="by searches of the whole graph")
    parser.add_argument("--peers", default="networkit,igraph,networkx")
    parser.add_argument("--peer-pairs", type=int, default=100, help="of one peer (default 100)")
    parser.add_argument(
        "--memory", help="rows from disk within this budget instead, the file cold and warm"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = options.graph or make_kron(options.scale, Path(folder))
        if options.memory:
            measure_cold(path, options)
        else:
            with open_file(path) as graph:
                measure(graph, options)


def choose(graph: Graph, count: int, seed: int) -> Pairs:
    """Choose pairs of vertices that have an edge, and whose ids are their positions."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, graph.num_vertices, (8 * count, 2))
    degrees = graph._stored.degrees_of(graph._stored.ids_at_positions(pairs.reshape(-1)))
    kept = np.all(degrees.reshape(-1, 2) > 0, axis=1)
    ids = graph._stored.ids_at_positions(pairs[kept][:count].reshape(-1))
    return ids.astype(np.int64).reshape(-1, 2)


def choose_from(path: Path, count: int, seed: int) -> Pairs:
    """Choose pairs of a file."""
    with open_file(path) as graph:
        return choose(graph, count, seed)


def timed_each(distance: Callable[[int, int], int], pairs: Pairs) -> Measured:
    """Ask for each distance by itself."""
    seconds, found = np.zeros(len(pairs)), []
    for number, (source, target) in enumerate(pairs.tolist()):
        start = time.perf_counter()
        found.append(distance(source, target))
        seconds[number] = time.perf_counter() - start
    return Measured(seconds, found)


def measure(graph: Graph, options: argparse.Namespace) -> None:
    """Compare one call each, a table, searches of the whole graph, and peers."""
    pairs = choose(graph, max(options.pairs, options.table), options.seed)
    few = pairs[: options.whole]
    graph.distance(*few[0].tolist())

    def whole(source: int, target: int) -> int:
        return int(graph.bfs(source, target=target, engine="cpu").level_of(target))

    whole(*few[0].tolist())
    ours = timed_each(graph.distance, pairs[: options.pairs])
    full = timed_each(whole, few)
    check(ours.distances[: len(few)], full.distances, "the full engine")
    start = time.perf_counter()
    table = graph.distances(pairs[: options.table])
    table_seconds = time.perf_counter() - start
    check(table.distances[: len(ours.distances)].tolist(), ours.distances, "the table")
    rows = [
        _row("distance(a, b)", ours.seconds, full.seconds),
        _row("bfs(a, target=b)", full.seconds, full.seconds),
    ]
    ratios = []
    for name, peer in peers(graph, options.peers.split(",")):
        some = pairs[: options.peer_pairs]
        found = timed_each(peer, some)
        check(found.distances, ours.distances[: len(found.distances)], name)
        rows.append(_row(name, found.seconds, full.seconds))
        rounds = [_medians(graph.distance, peer, some) for _ in range(_ROUNDS)]
        ratios.append(f"{np.median([mine / theirs for mine, theirs in rounds]):.2f} of {name}")
    show(
        f"{graph.title}, {len(ours.seconds):,} pairs, one call each",
        ("how", "pairs", "median, ms", "99th percentile, ms", "median / the whole graph's"),
        rows,
    )
    if ratios:
        print(f"\ndistance(a, b) takes {', '.join(ratios)}: medians in turns, {_ROUNDS} rounds")
    count = len(table.distances)
    asked = Asking(graph._stored, Settings())
    ends = asked.stored(graph._stored.positions(pairs[: options.pairs].reshape(-1))).reshape(-1, 2)
    with graph._stored.reading():
        asked.search.find(*(np.ascontiguousarray(ends[:, side]) for side in (0, 1)))
    print(
        f"\n{count:,} pairs in one table: {table_seconds:.2f} s, "
        f"{1e6 * table_seconds / count:.1f} µs each; "
        f"{asked.search.edges / max(1, asked.search.num_pairs):,.0f} edges looked at for each, "
        f"{asked.search.num_gone_over} of {asked.search.num_pairs} over to the whole graph"
    )


def _medians(one: Callable[[int, int], int], other: Any, pairs: Pairs) -> tuple[float, float]:
    """Return the medians of two ways, one after the other."""
    mine, theirs = (np.median(timed_each(way, pairs).seconds) for way in (one, other))
    return float(mine), float(theirs)


def _row(name: str, seconds: NDArray[np.float64], full: NDArray[np.float64]) -> list[str]:
    median, most = (1e3 * float(np.quantile(seconds, tile)) for tile in _TILES)
    ratio = median / (1e3 * float(np.median(full)))
    return [name, f"{len(seconds):,}", f"{median:.3f}", f"{most:.3f}", f"{ratio:.3f}"]


def check(found: Sequence[int], expected: Sequence[int], who: str) -> None:
    """End if answers differ."""
    if list(found) != list(expected):
        raise SystemExit(f"{who} disagrees about a distance")


def peers(graph: Graph, names: Sequence[str]) -> Iterator[tuple[str, Callable[[int, int], int]]]:
    """Yield what is installed of these, each holding the same graph."""
    if graph.directed or not any(names):
        return
    matrix = graph.to_scipy().tocoo()
    upper = matrix.row < matrix.col
    ends = matrix.row[upper], matrix.col[upper]
    first = int(graph.ids()[0])
    for name in names:
        try:
            made: Any = _MAKERS[name](ends, matrix.shape[0])
        except ImportError:
            continue
        yield name, partial(_shifted, made, first)
        del made


def _shifted(distance: Callable[[int, int], int], first: int, source: int, target: int) -> int:
    """Ask a peer, whose vertices begin at 0."""
    return distance(source - first, target - first)


def _networkit(ends: Any, n: int) -> Callable[[int, int], int]:
    import networkit

    graph = networkit.GraphFromCoo(ends, n=n, directed=False)

    def distance(source: int, target: int) -> int:
        if source == target:
            return 0
        search = networkit.distance.BidirectionalBFS(graph, source, target, storePred=False)
        found = search.run().getDistance()
        return int(found) if found < n else -1

    return distance


def _igraph(ends: Any, n: int) -> Callable[[int, int], int]:
    import igraph

    graph = igraph.Graph(n=n, edges=np.stack(ends, axis=1))

    def distance(source: int, target: int) -> int:
        found = graph.distances(source, target)[0][0]
        return -1 if found == float("inf") else int(found)

    return distance


def _networkx(ends: Any, n: int) -> Callable[[int, int], int]:
    import networkx

    graph = networkx.Graph()
    graph.add_nodes_from(range(n))
    graph.add_edges_from(zip(*(side.tolist() for side in ends), strict=True))

    def distance(source: int, target: int) -> int:
        try:
            return len(networkx.bidirectional_shortest_path(graph, source, target)) - 1
        except networkx.NetworkXNoPath:
            return -1

    return distance


_MAKERS = {"networkit": _networkit, "igraph": _igraph, "networkx": _networkx}


def measure_cold(path: Path, options: argparse.Namespace) -> None:
    """Ask for pairs with rows from disk, the file first cold and then warm."""
    count = min(1000, options.pairs)
    asked: dict[str, Any] = {"options": Settings(engine="disk")}
    # Choosing takes memory for all vertices, which is not to be counted.
    with ProcessPoolExecutor(1, mp_context=get_context("fork")) as helper:
        pairs = helper.submit(choose_from, path, count + 1, options.seed).result()
    with open_file(path, memory=options.memory) as graph:
        graph.distance(*pairs[0].tolist(), **asked)  # compiles
    rows = []
    for name, part in (("cold", pairs[1 : count + 1]), ("warm", pairs[1 : count + 1])):
        if name == "cold":
            drop_cache(path)
        with open_file(path, memory=options.memory) as graph:
            settings = Settings(engine="disk", memory=parse_size(options.memory))
            start = time.perf_counter()
            graph.distance(*part[0].tolist(), **asked)
            first = time.perf_counter() - start
            found = timed_each(partial(graph.distance, **asked), part[1:])
            ask = Asking(graph._stored, settings)
            ends = ask.stored(graph._stored.positions(part.reshape(-1))).reshape(-1, 2)
            with graph._stored.reading():
                ask.search.find(*(np.ascontiguousarray(ends[:, side]) for side in (0, 1)))
            median, most = (1e3 * float(np.quantile(found.seconds, tile)) for tile in _TILES)
            each = format_size(ask.search.disk_bytes / count)
            rows.append([name, f"{1e3 * first:.1f}", f"{median:.2f}", f"{most:.2f}", each])
    show(
        f"{path.name}, {count:,} pairs, rows from disk within {options.memory}; "
        f"peak {format_size(peak_bytes())}",
        ("file", "first, ms", "median, ms", "99th percentile, ms", "read for each"),
        rows,
    )
