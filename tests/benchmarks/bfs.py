"""Breadth-first search against GAPBS and what PyPI offers: the same graphs, the same sources."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

import oocbfs
from oocbfs.formats.output.row_files import write_rows
from oocbfs.generate import generators
from oocbfs.graph.rows import decode_rows
from oocbfs.plot import BLUE, ORANGE
from oocbfs.search.graph import Graph, open_file
from tests.benchmarks.common import gapbs, huge_pages, ratio_bars, show
from tests.benchmarks.peers import Peer, Runner, python_peers

_NOTHING: Runner = lambda sources: []
_GAPBS = "GAPBS, huge pages"
# Ids that are read at random, again and again.
_MOST_IDS = 1 << 22


class Row(NamedTuple):
    """One line of the table."""

    graph: str
    who: str
    seconds: float
    ratio: float
    more: str


@dataclass
class Ours(Peer):
    """The whole call as a user times it; also its level loop, and how much it looked at."""

    loop: list[float] = field(default_factory=list)
    examined: float = 0.0
    # Of each of the last sources.
    edges_examined: list[int] = field(default_factory=list)

    def spread(self) -> str:
        """Return the call's time over its level loop's, and the most edges examined of all m."""
        return f"{self.median() / np.median(self.loop):.2f}, {self.examined:.2f} m"


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench bfs", description=__doc__)
    parser.add_argument("--scale", type=int, default=20, help="of kron and uniform (default 20)")
    parser.add_argument("--side", type=int, default=2000, help="of the grid (default 2000)")
    parser.add_argument(
        "--graphs",
        default="kron,uniform,grid2d,path,cnr,facebook,notredame,FLA,NY,p2p,epinions",
        help="some of these, the default; real ones are left out without OOCBFS_GRAPHS",
    )
    parser.add_argument("--peers", default="gapbs,scipy,networkit,igraph,graphblas")
    parser.add_argument("--directed", action="store_true", help="keep the directions of edges")
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=4, help="so many, all peers in turns")
    parser.add_argument("--busy", type=int, default=0, help="processes that compute meanwhile")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--plot", type=Path, help="draw the ratios as .svg or .png")
    parser.add_argument("--folder", type=Path, help="for the files (default: a temporary one)")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder, _busy(options.busy):
        for name, path in _graphs(options, Path(folder)):
            rows += measure(name, path, options)
    show(
        f"{options.threads} threads where a peer has them, whole calls, load excluded; medians of "
        f"{options.rounds} rounds of {options.sources} sources, all in turns; "
        f"load of the machine {os.getloadavg()[0]:.1f}",
        ("graph", "who", "ms", "oocbfs / who", "call / loop, examined"),
        [
            [row.graph, row.who, f"{1e3 * row.seconds:.2f}", f"{row.ratio:.3f}", row.more]
            for row in rows
        ],
    )
    ratios = [row.ratio for row in rows if row.who == _GAPBS]
    if ratios:
        print(f"\ngeometric mean of oocbfs / GAPBS: {np.exp(np.mean(np.log(ratios))):.3f}")
    if options.plot:
        _plot(rows, options.plot)


def _graphs(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Path]]:
    """Make each graph when its turn comes, and remove it afterwards."""
    graphs = Path(os.environ.get("OOCBFS_GRAPHS", "none"))
    real = {
        "cnr": "web/cnr-2000.graph",
        "facebook": "social/facebook100-part.txt.xz",
        "notredame": "web/web-NotreDame.txt.gz",
        "FLA": "road/FLA.gr.xz",
        "NY": "road/NY.gr.xz",
        "p2p": "p2p/p2p-31.e",
        "epinions": "social/soc-Epinions1.txt.gz",
    }
    makers: dict[str, tuple[str, Callable[[], Any]]] = {
        "kron": (f"kron {options.scale}", lambda: generators.kron(options.scale)),
        "uniform": (f"uniform {options.scale}", lambda: generators.uniform(options.scale)),
        "grid2d": (
            f"grid {options.side}²",
            lambda: generators.grid2d(options.side, options.side),
        ),
        "path": (f"path {options.side**2 // 4:,}", lambda: _path(options.side**2 // 4)),
    }
    for wanted in options.graphs.split(","):
        if wanted in real and not (graphs / real[wanted]).exists():
            continue
        if wanted in real:
            title, edges = wanted, graphs / real[wanted]
        else:
            title, make = makers[wanted]
            edges = make()
        path = folder / f"{wanted}.ocg"
        oocbfs.convert(edges, path, directed=options.directed)
        yield title, path
        path.unlink()


def _path(vertices: int) -> NDArray[np.int64]:
    """Return the edges of a path, a level a vertex."""
    return np.stack([np.arange(vertices - 1), np.arange(1, vertices)], axis=1)


@contextmanager
def _busy(number: int) -> Iterator[None]:
    """Keep processors busy with other work."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def measure(name: str, path: Path, options: argparse.Namespace) -> list[Row]:
    """Run all peers in turns on one graph; return their medians and the ratio of ours to each."""
    with open_file(path) as graph:
        serialized, ordered = path.with_suffix(".sg"), path.with_suffix(".degree.sg")
        wanted = options.peers.split(",")
        if "gapbs" in wanted and gapbs("bfs") is not None:
            write_rows(graph._stored, serialized)
            sources = [
                s + graph._stored.first_id for s in _gapbs_sources(serialized, options.sources)
            ]
        else:
            candidates = graph._stored.ids_of(np.flatnonzero(graph._stored.stored_degrees))
            sources = np.random.default_rng(27).choice(candidates, options.sources).tolist()
        threads = options.threads
        ours = Ours(f"oocbfs, {threads} threads", _NOTHING)
        with_parents = Ours(f"oocbfs, {threads} threads, parents", _NOTHING)
        peers: list[Peer] = [ours, with_parents, Peer("oocbfs, 1 thread", _calls(graph, threads=1))]
        ours.run = _calls(graph, ours, threads=threads)
        with_parents.run = _calls(graph, with_parents, threads=threads, parents=True)
        peers.append(Peer(f"random reads, {threads} threads", _random_reads(graph, ours, threads)))
        if serialized.exists():
            peers.append(Peer(_GAPBS, _gapbs(serialized, threads)))
            if graph._stored.order is not None and "kron" in path.name:
                _write_as_stored(ordered, graph)
                peers.append(Peer("GAPBS, degree-ordered, huge pages", _gapbs(ordered, threads)))
        if set(wanted) - {"gapbs"}:
            matrix = graph.to_scipy()
            matrix.sort_indices()
            others = python_peers(matrix, threads)
            peers += [peer for peer in others if peer.name.split()[0] in wanted]
        for peer in peers:
            # Long ones run from fewer sources, once.
            peer.run(sources[:1])
        ours.loop.clear()
        with_parents.loop.clear()
        for _ in range(options.rounds):
            for peer in peers:
                peer.seconds += peer.run(sources)
        for leftover in (serialized, ordered):
            leftover.unlink(missing_ok=True)
    best = ours.median()
    return [
        Row(
            name,
            peer.name,
            peer.median(),
            best / peer.median(),
            peer.spread() if isinstance(peer, Ours) else "",
        )
        for peer in peers
    ]


def _calls(graph: Graph, ours: Ours | None = None, **options: Any) -> Runner:
    """Whole calls, with levels in input ids."""

    def run(sources: list[int]) -> list[float]:
        seconds = []
        if ours is not None:
            ours.edges_examined.clear()
        for source in sources:
            start = time.perf_counter()
            stats = graph.bfs(source, **options).stats
            seconds.append(time.perf_counter() - start)
            if ours is not None:
                ours.loop.append(stats.search_seconds)
                examined = sum(level.edges_examined or 0 for level in stats.levels)
                ours.edges_examined.append(examined)
                ours.examined = max(ours.examined, examined / max(1, graph.num_edges))
        return seconds

    return run


@njit(nogil=True)  # type: ignore[untyped-decorator]
def _read(levels: NDArray[np.uint8], ids: NDArray[np.uint32], count: int) -> int:
    """Read so many levels, one for each id, from the first again after the last."""
    total = 0
    for first in range(0, count, ids.size):
        for i in range(min(ids.size, count - first)):
            total += levels[ids[i]]
    return total


def _random_reads(graph: Graph, ours: Ours, threads: int) -> Runner:
    """What no search can do without that looks at as many edges: a byte at random for each."""
    levels = np.zeros(graph.num_vertices, np.uint8)
    ids = np.random.default_rng(1).integers(0, levels.size, _MOST_IDS, np.uint32)
    _read(levels, ids, 1)

    def timed(count: int) -> float:
        start = time.perf_counter()
        _read(levels, ids, count)
        return time.perf_counter() - start

    def run(sources: list[int]) -> list[float]:
        with ThreadPoolExecutor(threads) as pool:
            return [
                max(pool.map(timed, [count // threads] * threads))
                for count in ours.edges_examined[: len(sources)]
            ]

    return run


def _write_as_stored(path: Path, graph: Graph) -> None:
    """Write GAP's serialized graph with vertices as we store them."""
    rows = decode_rows(graph._stored.rows)
    with path.open("wb") as file:
        file.write(b"\0")
        np.array([graph.num_edges, graph.num_vertices], np.int64).tofile(file)
        rows.firsts.astype(np.int64).tofile(file)
        rows.neighbours[: graph.num_edges].tofile(file)


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
    """GAPBS picks its own sources, the same every time; in another order, other vertices."""
    environment = {**os.environ, **huge_pages(threads)}

    def run(sources: list[int]) -> list[float]:
        done = subprocess.run(
            [str(gapbs("bfs")), "-f", path, "-n", str(len(sources))],
            capture_output=True,
            text=True,
            check=True,
            env=environment,
        )
        return [float(word) for word in re.findall(r"Trial Time: +([\d.]+)", done.stdout)]

    return run


def _plot(rows: list[Row], path: Path) -> None:
    """Bars of the time of each peer in units of ours, one group a graph."""
    ratio_bars(
        [
            (
                f"{row.graph}: {row.who}",
                1 / row.ratio,
                ORANGE if row.who.startswith("oocbfs") else BLUE,
            )
            for row in rows
        ],
        path,
        title="Breadth-first search from one source",
        subtitle="time as a multiple of that of oocbfs with all threads; right of 1 is slower",
        across="time ÷ time of oocbfs",
    )
