"""networkx's functions with and without the backend: the same calls on the same graph, in turns."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np

import oocbfs
import oocbfs.networkx
from oocbfs.generate import generators
from tests.benchmarks.common import show

Call = Callable[[Any], object]


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench networkx", description=__doc__)
    parser.add_argument("--scale", type=int, default=16, help="Kronecker scale (default 16)")
    parser.add_argument("--rounds", type=int, default=3, help="so many, in turns")
    parser.add_argument("--many", type=int, default=64, help="nodes of those that search from many")
    parser.add_argument(
        "--first", metavar="EDGES,EDGES", help="first calls instead, on random graphs of such sizes"
    )
    options = parser.parse_args(arguments)
    if options.first is not None:
        measure_first([int(size) for size in options.first.split(",")], options.rounds)
        return
    with tempfile.TemporaryDirectory() as folder:
        graph, path = make(options.scale, Path(folder))
        measure(graph, path, options)


def make(scale: int, folder: Path) -> tuple[Any, Path]:
    """Return the largest component of a Kronecker graph, and a file of it."""
    oocbfs.convert(generators.kron(scale), folder / "all.ocg")
    with oocbfs.networkx.open(folder / "all.ocg") as graph:
        largest = max(nx.connected_components(graph), key=len)
        edges = np.array([(u, v) for u, v in graph.edges if u in largest])
    np.random.default_rng(1).shuffle(edges)
    oocbfs.convert(edges, folder / "largest.ocg", ids="compact")
    return nx.Graph(edges.tolist()), folder / "largest.ocg"


def calls_of(nodes: list[Any], many: int) -> dict[str, Call]:
    """Return each call as something that runs on a graph to its end."""
    source, target, some = nodes[0], nodes[-1], nodes[:many]
    return {
        "single_source_shortest_path_length": lambda g: nx.single_source_shortest_path_length(
            g, source
        ),
        "single_source_shortest_path": lambda g: nx.single_source_shortest_path(g, source),
        "bfs_edges": lambda g: deque(nx.bfs_edges(g, source), 0),
        "bfs_layers": lambda g: deque(nx.bfs_layers(g, source), 0),
        "bfs_tree": lambda g: nx.bfs_tree(g, source),
        "descendants": lambda g: nx.descendants(g, source),
        "has_path": lambda g: nx.has_path(g, source, target),
        "connected_components": lambda g: deque(nx.connected_components(g), 0),
        "number_connected_components": nx.number_connected_components,
        f"harmonic_centrality of {many} nodes": lambda g: nx.harmonic_centrality(g, some),
        f"eccentricity of {many} nodes": lambda g: nx.eccentricity(g, some),
        "diameter, with bounds": lambda g: nx.diameter(g, usebounds=True),
    }


def measure(graph: Any, path: Path, options: argparse.Namespace) -> None:
    """Run all in turns; ratios are ours to networkx's, medians of the rounds."""
    nodes = list(graph)
    np.random.default_rng(2).shuffle(nodes)
    calls = calls_of(nodes, options.many)
    converted = oocbfs.networkx.convert_from_nx(graph)
    with oocbfs.networkx.open(path) as opened:
        for call in calls.values():  # compiles, and makes the converted graph's file
            call(converted)
            call(opened)
        rows = []
        for name, call in calls.items():
            rounds = [
                [timed(call, which) for which in (graph, converted, opened)]
                for _ in range(options.rounds)
            ]
            ratios = np.median([[r[1] / r[0], r[2] / r[0]] for r in rounds], axis=0)
            seconds = np.median(rounds, axis=0)
            rows.append(
                [name, *(f"{1e3 * s:,.2f}" for s in seconds), *(f"{r:.4f}" for r in ratios)]
            )
    figures = f"{graph.number_of_nodes():,} nodes, {graph.number_of_edges():,} edges"
    show(
        f"Kronecker {options.scale}, its largest component: {figures}; milliseconds of whole calls",
        ("call", "networkx", "converted graph", "opened file", "ratio", "ratio"),
        rows,
    )
    show_conversion(graph, nodes[0], options.rounds)


def show_conversion(graph: Any, source: Any, rounds: int) -> None:
    """Say what converting costs: arrays for all functions, and a file for those of engines."""
    once, arrays, file = [], [], []
    for _ in range(rounds):
        once.append(timed(lambda g: nx.single_source_shortest_path_length(g, source), graph))
        start = time.perf_counter()
        converted = oocbfs.networkx.convert_from_nx(graph)
        arrays.append(time.perf_counter() - start)
        file.append(timed(lambda g: g.ocg, converted))
        converted.close()
    show(
        "Converting, as a ratio to one single_source_shortest_path_length of networkx",
        ("step", "milliseconds", "ratio"),
        [
            [name, f"{1e3 * np.median(seconds):,.1f}", f"{np.median(np.divide(seconds, once)):.3f}"]
            for name, seconds in (("to arrays", arrays), ("to a file", file))
        ],
    )


_LONG_SECONDS = 0.3
_FIRST: dict[str, Call] = {
    "single_source_shortest_path_length": lambda g: nx.single_source_shortest_path_length(g, 0),
    "bfs_edges": lambda g: deque(nx.bfs_edges(g, 0), 0),
    "descendants": lambda g: nx.descendants(g, 0),
    "number_connected_components": nx.number_connected_components,
    "connected_components": lambda g: deque(nx.connected_components(g), 0),
    "all_pairs_shortest_path_length": lambda g: deque(nx.all_pairs_shortest_path_length(g), 0),
    "closeness_centrality": nx.closeness_centrality,
    "eccentricity": nx.eccentricity,
    "diameter": nx.diameter,
}


def measure_first(sizes: list[int], rounds: int) -> None:
    """Compare calls on graphs that must be converted before: what ``should_run`` decides by."""
    graphs = {size: connected(size) for size in sizes}
    for call in _FIRST.values():  # compiles
        call(oocbfs.networkx.convert_from_nx(graphs[sizes[0]]))
    rows = []
    for name, call in _FIRST.items():
        shown, seconds = [], 0.0
        for graph in graphs.values():
            if seconds > _LONG_SECONDS:  # the next would take minutes
                shown.append("–")
                continue
            seconds = timed(call, graph)
            turns = range(1 if seconds > _LONG_SECONDS else rounds)
            ratio = np.median([first(call, graph) / timed(call, graph) for _ in turns])
            shown.append(f"{ratio:.2f}")
        rows.append([name, *shown])
    show(
        "First calls, converting included, as ratios to networkx: random graphs of so many edges",
        ("call", *(f"{size:,}" for size in sizes)),
        rows,
    )


def connected(num_edges: int) -> Any:
    """Make a connected random graph of mean degree 8."""
    nodes = max(2, num_edges // 4)
    graph = nx.gnm_random_graph(nodes, num_edges - nodes, seed=1)
    nx.add_cycle(graph, range(nodes))
    return graph


def first(call: Call, graph: Any) -> float:
    """Return the seconds of converting a graph and one call."""
    start = time.perf_counter()
    call(oocbfs.networkx.convert_from_nx(graph))
    return time.perf_counter() - start


def timed(call: Call, graph: Any) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    call(graph)
    return time.perf_counter() - start
