"""Breadth-first search against GAPBS and what PyPI offers: the same graphs, the same sources."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import oocbfs
from oocbfs.generate import generators
from oocbfs.search.graph import Graph
from tests.benchmarks.common import gapbs, huge_pages, show

Runner = Callable[[list[int]], list[float]]


@dataclass
class Peer:
    """Something that traverses from each source and tells the seconds of each."""

    name: str
    run: Runner
    seconds: list[list[float]] = field(default_factory=list)

    def median(self) -> float:
        """Median over the sources of the best of all rounds."""
        return float(np.median(np.min(self.seconds, axis=0)))


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench bfs", description=__doc__)
    parser.add_argument("--scale", type=int, default=20, help="of kron and uniform (default 20)")
    parser.add_argument("--side", type=int, default=2000, help="of the grid (default 2000)")
    parser.add_argument("--graphs", default="kron,uniform,grid2d,road")
    parser.add_argument("--peers", default="gapbs,scipy,networkit,igraph,graphblas")
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3, help="best of so many, in turns")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plot", type=Path, help="draw the ratios as .svg or .png")
    parser.add_argument("--folder", type=Path, help="for the files (default: a temporary one)")
    options = parser.parse_args(arguments)
    rows: list[tuple[str, str, float, float]] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, path in _graphs(options, Path(folder)):
            rows += measure(name, path, options)
    show(
        f"{options.threads} threads where a peer has them, "
        f"{options.sources} sources, load excluded; "
        f"median over sources of the best of {options.rounds}",
        ("graph", "who", "ms", "oocbfs / who"),
        [
            [graph, who, f"{1e3 * seconds:.1f}", f"{ratio:.3f}"]
            for graph, who, seconds, ratio in rows
        ],
    )
    if options.plot:
        _plot(rows, options.plot)


def _graphs(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Path]]:
    """Make each graph when its turn comes, and remove it afterwards."""
    roads = Path(os.environ.get("OOCBFS_GRAPHS", "none")) / "road" / "FLA.gr.xz"
    makers: dict[str, tuple[str, Callable[[], Any]]] = {
        "kron": (f"kron {options.scale}", lambda: generators.kron(options.scale)),
        "uniform": (f"uniform {options.scale}", lambda: generators.uniform(options.scale)),
        "grid2d": (
            f"grid {options.side}²",
            lambda: generators.grid2d(options.side, options.side),
        ),
        "road": ("road FLA", lambda: roads),
    }
    for wanted in options.graphs.split(","):
        if wanted == "road" and not roads.exists():
            continue
        title, make = makers[wanted]
        path = folder / f"{wanted}.ocg"
        oocbfs.convert(make(), path)
        yield title, path
        path.unlink()


def measure(
    name: str, path: Path, options: argparse.Namespace
) -> list[tuple[str, str, float, float]]:
    """Run all peers in turns on one graph; give their medians and the ratio of ours to each."""
    with oocbfs.open(path) as graph:
        matrix = graph.to_scipy()
        matrix.sort_indices()
        serialized, ordered = path.with_suffix(".sg"), path.with_suffix(".degree.sg")
        wanted = options.peers.split(",")
        if "gapbs" in wanted and gapbs("bfs") is not None:
            write_sg(serialized, matrix)
            sources = _gapbs_sources(serialized, options.sources)
        else:
            candidates = np.flatnonzero(np.diff(matrix.indptr))
            sources = np.random.default_rng(27).choice(candidates, options.sources).tolist()
        threads = options.threads
        ours = Peer(f"oocbfs, {threads} threads", _ours(graph, threads))
        peers = [ours, Peer("oocbfs, 1 thread", _ours(graph, 1))]
        if serialized.exists():
            peers.append(Peer("GAPBS, huge pages", _gapbs(serialized, threads)))
            if graph.order is not None:
                write_sg(ordered, _by_rank(matrix, graph))
                peers.append(Peer("GAPBS, degree-ordered, huge pages", _gapbs(ordered, threads)))
        peers += [peer for peer in python_peers(matrix, threads) if peer.name.split()[0] in wanted]
        for peer in peers:
            # Long ones run from fewer sources, once.
            peer.run(sources[:1])
        for _ in range(options.rounds):
            for peer in peers:
                degree = "degree-ordered" in peer.name
                chosen = graph.stored(sources).tolist() if degree else sources
                peer.seconds.append(peer.run(chosen))
        for leftover in (serialized, ordered):
            leftover.unlink(missing_ok=True)
    best = ours.median()
    return [(name, peer.name, peer.median(), best / peer.median()) for peer in peers]


def _timed(work: Callable[[int], object], sources: list[int]) -> list[float]:
    seconds = []
    for source in sources:
        start = time.perf_counter()
        work(source)
        seconds.append(time.perf_counter() - start)
    return seconds


def _ours(graph: Graph, threads: int) -> Runner:
    """The traversal as its result reports it: without renaming, which peers have no need of."""
    return lambda sources: [graph.bfs(s, threads=threads).stats.seconds for s in sources]


def write_sg(path: Path, matrix: Any) -> None:
    """Write GAP's serialized graph of a symmetric matrix."""
    with path.open("wb") as file:
        file.write(b"\0")
        np.array([matrix.nnz, matrix.shape[0]], np.int64).tofile(file)
        matrix.indptr.astype(np.int64).tofile(file)
        matrix.indices.astype(np.int32).tofile(file)


def _by_rank(matrix: Any, graph: Graph) -> Any:
    """The same graph with its vertices in stored order."""
    order: NDArray[Any] = np.asarray(graph.order)
    permuted = matrix[order][:, order]
    permuted.sort_indices()
    return permuted


def _gapbs_sources(path: Path, count: int) -> list[int]:
    """The sources that GAPBS's own picker takes."""
    done = subprocess.run(
        [str(gapbs("bfs")), "-f", path, "-n", str(count), "-l"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(word) for word in re.findall(r"Source: +(\d+)", done.stdout)]


def _gapbs(path: Path, threads: int) -> Runner:
    """GAPBS picks its own sources, the same every time."""
    environment = {**os.environ, **huge_pages(threads)}

    def run(sources: list[int]) -> list[float]:
        seconds: list[float] = []
        if "degree" in path.name:
            for source in sources:  # its picker would take other vertices
                seconds += trial("-r", str(source), "-n", "2")[-1:]
            return seconds
        return trial("-n", str(len(sources)))

    def trial(*arguments: str) -> list[float]:
        done = subprocess.run(
            [str(gapbs("bfs")), "-f", path, *arguments],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        return [float(word) for word in re.findall(r"Trial Time: +([\d.]+)", done.stdout)]

    return run


def python_peers(matrix: Any, threads: int) -> Iterator[Peer]:
    """Whatever of the peers on PyPI is installed."""
    from scipy.sparse.csgraph import breadth_first_order

    yield Peer("scipy", lambda sources: _timed(lambda s: breadth_first_order(matrix, s), sources))
    try:
        import networkit

        networkit.setNumberOfThreads(threads)
        coo = matrix.tocoo()
        upper = coo.row < coo.col
        made = networkit.GraphFromCoo(
            (coo.row[upper], coo.col[upper]), n=matrix.shape[0], directed=False
        )
        yield Peer(
            "networkit",
            lambda sources: _timed(
                lambda s: networkit.distance.BFS(made, s, storePaths=False).run(), sources
            ),
        )
    except ImportError:
        pass
    try:
        import igraph

        coo = matrix.tocoo()
        upper = coo.row < coo.col
        linked = igraph.Graph(
            n=matrix.shape[0], edges=np.stack((coo.row[upper], coo.col[upper]), axis=1)
        )
        yield Peer("igraph", lambda sources: _timed(lambda s: linked.bfs(s), sources))
    except ImportError:
        pass
    try:
        import graphblas

        yield Peer("graphblas", _graphblas(graphblas, matrix, threads))
    except ImportError:
        pass


def _graphblas(graphblas: Any, matrix: Any, threads: int) -> Runner:
    """Push and pull by masked products, the level of each vertex kept."""
    graphblas.ss.config["nthreads"] = threads
    graph = graphblas.io.from_scipy_sparse(matrix.astype(bool))
    any_pair = graphblas.semiring.any_pair

    def traverse(source: int) -> None:
        levels = graphblas.Vector(int, graph.nrows)
        frontier = graphblas.Vector(bool, graph.nrows)
        frontier[source] = True
        depth = 0
        while frontier.nvals:
            levels(frontier.S) << depth
            frontier(~levels.S, replace=True) << any_pair(frontier @ graph)
            depth += 1

    return lambda sources: _timed(traverse, sources)


def _plot(rows: list[tuple[str, str, float, float]], path: Path) -> None:
    """Bars of the time of each peer in units of ours, one group a graph."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 0.3 * len(rows) + 1.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    labels = [f"{graph}: {who}" for graph, who, _, _ in rows]
    colours = ["#ef8636" if who.startswith("oocbfs") else "#3b75af" for _, who, _, _ in rows]
    axes.barh(range(len(rows)), [1 / ratio for *_, ratio in rows], color=colours)
    axes.set_yticks(range(len(rows)), labels)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xlabel("time, in units of oocbfs with all threads")
    figure.savefig(path, dpi=120)
