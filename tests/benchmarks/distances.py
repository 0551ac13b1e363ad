"""Exact diameter and radius against NetworKit and networkx; a distribution within a budget."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import oocbfs
from oocbfs.distances.job import Job, Question
from oocbfs.generate import generators
from oocbfs.search.graph import Graph, open_file
from tests.benchmarks.common import show

_EXACT = ("diameter", "radius")
# networkx is asked where it answers within some minutes.
_MOST_ARCS_FOR_NETWORKX = 200_000


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench distances", description=__doc__)
    parser.add_argument("--scale", type=int, default=18, help="of Kronecker and uniform graphs")
    parser.add_argument("--side", type=int, default=300, help="of the grid (default: 300)")
    parser.add_argument("--graphs", type=Path, nargs="*", default=[], help=".ocg files besides")
    parser.add_argument("--made", default="kron,uniform,grid", help="which graphs to make")
    parser.add_argument("--rounds", type=int, default=3, help="so many, in turns")
    parser.add_argument("--peers", default="networkit,networkx")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--memory", help="find 256 samples within it instead, and count bytes")
    parser.add_argument("--vertices", type=int, default=1 << 20, help="of that power law")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        if options.memory:
            within_memory(folder, options)
            return
        made: dict[str, Callable[[], Any]] = {
            f"kron{options.scale}": lambda: generators.kron(options.scale),
            f"uniform{options.scale}": lambda: generators.uniform(options.scale, 16),
            f"grid{options.side}": lambda: generators.grid2d(options.side, options.side),
        }
        wanted = tuple(options.made.split(","))
        names = [name for name in made if name.startswith(wanted)]
        for name in names:
            oocbfs.convert(made[name](), folder / f"{name}.ocg")
        paths = [*(folder / f"{name}.ocg" for name in names), *options.graphs]
        for path in paths:
            show(
                f"{path.stem}: exact diameter and radius of the largest component (strongly "
                f"connected if it is directed), {options.threads} threads, seconds of each round",
                ("who", "diameter", "radius", "searches", "seconds", "oocbfs / who, median"),
                rows_of(path, options),
            )
            sys.stdout.flush()  # the next may take long


def rows_of(path: Path, options: argparse.Namespace) -> list[list[str]]:
    """Run all in turns on one graph."""
    with open_file(path) as graph:
        ways = ways_of(graph, options)
        for run in list(ways.values())[:1]:
            run()  # compiles
        rounds = [[timed(run) for run in ways.values()] for _ in range(options.rounds)]
    rows = []
    for number, name in enumerate(ways):
        seconds = [one[number][0] for one in rounds]
        found = rounds[0][number][1]
        ratio = float(np.median([one[0][0] / one[number][0] for one in rounds]))
        shown = [str(found.get(what, "–")) for what in (*_EXACT, "searches")]
        times = " ".join(f"{one:.3f}" for one in seconds)
        rows.append([name, *shown, times, f"{ratio:.3f}"])
    diameters = {row[1] for row in rows} - {"–"}
    assert len(diameters) == 1, rows
    return rows


def timed(run: Callable[[], dict[str, int]]) -> tuple[float, dict[str, int]]:
    """Return seconds, and what was found."""
    start = time.perf_counter()
    found = run()
    return time.perf_counter() - start, found


def ways_of(graph: Graph, options: argparse.Namespace) -> dict[str, Callable[[], dict[str, int]]]:
    """Return each way to find a diameter."""
    wanted = options.peers.split(",")
    from oocbfs.distances.scope import scope_of

    scope = scope_of(graph, threads=options.threads)
    ways = {
        "oocbfs": lambda: ours(graph, options.threads, _EXACT),
        "oocbfs, component known": lambda: ours(graph, options.threads, _EXACT, scope),
        "oocbfs, diameter alone": lambda: ours(graph, options.threads, _EXACT[:1]),
    }
    if graph.directed:
        return ways  # NetworKit refuses directed graphs, networkx searches from every vertex
    edges = edges_inside(graph)
    if "networkit" in wanted and (networkit := imported("networkit")) is not None:
        networkit.setNumberOfThreads(options.threads)
        n = int(edges.max(initial=0)) + 1
        ends = tuple(np.ascontiguousarray(edges.T))
        made = networkit.GraphFromCoo(ends, n=n, directed=False)

        def diameter() -> dict[str, int]:
            exact = networkit.distance.DiameterAlgo.EXACT
            return {"diameter": networkit.distance.Diameter(made, exact).run().getDiameter()[0]}

        ways["NetworKit, diameter"] = diameter
    if "networkx" in wanted and graph.num_arcs <= _MOST_ARCS_FOR_NETWORKX:
        import networkx as nx

        plain = nx.Graph(edges.tolist())
        ways["networkx, diameter"] = lambda: {"diameter": nx.diameter(plain, usebounds=True)}
    return ways


def ours(graph: Graph, threads: int, exact: tuple[str, ...], scope: Any = None) -> dict[str, int]:
    """Find diameter and radius, and the component if it is not known."""
    from oocbfs.distances.eccentricity import Eccentricities
    from oocbfs.distances.scope import scope_of
    from oocbfs.distances.searches import Searches

    if scope is None:
        scope = scope_of(graph, threads=threads)
    with Searches(graph, scope, threads=threads) as searches:
        found = Eccentricities(searches, exact)
        found.run()
    extremes = found.extremes()
    known = {"diameter": extremes.diameter[0], "searches": extremes.searches}
    return known | ({"radius": extremes.radius[1]} if "radius" in exact else {})


def edges_inside(graph: Graph) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the edges of the largest component, its vertices numbered anew."""
    labels = graph.components().labels
    values, counts = np.unique(labels, return_counts=True)
    inside = labels == values[counts.argmax()]
    numbers = np.cumsum(inside) - 1
    matrix = graph.to_scipy().tocoo()
    kept = inside[matrix.row] & (matrix.row < matrix.col)
    edges = np.stack((numbers[matrix.row[kept]], numbers[matrix.col[kept]]), axis=1)
    return edges.astype(np.int64)


def imported(name: str) -> Any:
    """Import a peer, if it is there."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        return None


def within_memory(folder: Path, options: argparse.Namespace) -> None:
    """Find bounds and a distribution of a power law whose tails have no room."""
    path = folder / "powerlaw.ocg"
    n = options.vertices
    oocbfs.convert(generators.powerlaw(n, 55, min(5214, n // 4)), path)
    rows = []
    with oocbfs.open(path, memory=options.memory) as graph:
        answer = Job(graph, Question(exact=("diameter",))).run()
        assert answer.extremes is not None
        assert answer.distribution is not None
        figures = {
            "file": f"{path.stat().st_size:,} bytes",
            "memory": options.memory,
            "diameter": f"{answer.extremes.diameter[0]} to {answer.extremes.diameter[1]}",
            "average distance": answer.distribution.average.text(),
            "searches": f"{answer.searched:,}",
            "read from disk": f"{answer.disk_bytes:,} bytes",
            "seconds": f"{answer.seconds:.1f}",
        }
        rows = [[name, value] for name, value in figures.items()]
    show(f"A power law of {n:,} vertices, 256 sources, from disk", ("what", "value"), rows)
