"""Bytes over PCIe per search, as a share of the graph's heads and tails.

The table is the independent count of tests/support/gpu/sector_count.py, which takes the level
loop's decisions itself and keeps queue and pending list ascending, because emulating every case
takes hours. ``--emulate N`` runs the kernels in the emulator from N sources of each graph and
prints both counts: the one that follows the emulator's own order must be equal.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import oocbfs
from oocbfs.generate import generators
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.kernels.cuda.source import NUM_RANGES, SMALL_BYTES_PER_VERTEX, KernelOptions
from oocbfs.kernels.rows import Rows
from oocbfs.plan.costs import costs_of
from oocbfs.plan.cuts import Cuts
from oocbfs.plan.device import plan
from oocbfs.plan.limits import limits_of
from oocbfs.plan.passes import HeadsPasses
from oocbfs.plan.ranges import LINE_BYTES, ByteRange
from oocbfs.plan.rates import KNOWN_GPUS
from oocbfs.plan.shape import shape_of
from oocbfs.plot import BLUE
from oocbfs.search.graph import Graph, open_file
from tests.benchmarks.common import ratio_bars, show
from tests.support.gpu import sector_count
from tests.support.gpu.cache_count import count_small_level, empty_cache
from tests.support.gpu.slow_bytes import RecordingDevice, expected_sectors


class Case(NamedTuple):
    """What is resident, and how much a pending vertex loads at a time."""

    resident: float = 0.0
    probe_bytes: int = 32
    heads: bool = True
    planned: bool = False

    def title(self) -> str:
        """Name the case in a table."""
        heads = "heads resident" if self.heads else "heads in host memory"
        which = " as planned" if self.planned else ""
        return f"{heads}, {self.resident:.0%} of the tails{which}, {self.probe_bytes}-byte probes"

    def device_range(self, graph: Graph) -> ByteRange:
        """Return the resident tails: the first, or those that a plan takes."""
        tail_bytes = graph._stored.rows.tails.size
        if not self.planned:
            return 0, int(self.resident * tail_bytes) // LINE_BYTES * LINE_BYTES
        share = f"{self.resident:%}"
        return plan(shape_of(graph._stored), vram_bytes=None, resident_tails=share).device_ranges[0]


CASES = [
    Case(),
    Case(probe_bytes=128),
    Case(heads=False),
    Case(resident=0.1),
    Case(resident=0.25),
    Case(resident=0.5),
    Case(resident=0.1, planned=True),
    Case(resident=0.25, planned=True),
    Case(resident=0.5, planned=True),
]


class Policy(Enum):
    """Who decides on the direction of a level: ours, or what papers compare."""

    COSTS = "predicted costs, cuts"
    # XBFS: bottom-up while the frontier has a tenth of all edges.
    EDGES = "edges of the frontier"
    # GSWITCH: bottom-up unless the frontier has less than a fifth of the edges that are left.
    SHARES = "shares of edges"
    # The cut of each level that moves the fewest bytes, by trying all: no prices do better.
    HINDSIGHT = "the best cuts in hindsight"

    def is_bottom_up(self, frontier_edges: int, left_edges: int, all_edges: int) -> bool:
        """Return whether a policy that looks at edges would go bottom-up."""
        if self is Policy.EDGES:
            return 10 * frontier_edges >= all_edges
        return 5 * frontier_edges >= left_edges


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench pcie", description=__doc__)
    parser.add_argument("--scale", type=int, default=20, help="of kron and uniform (default 20)")
    parser.add_argument("--vertices", type=int, default=1_000_000, help="of powerlaw")
    parser.add_argument("--graphs", default="kron,uniform,powerlaw,steep,road,p2p")
    parser.add_argument("--sources", type=int, default=16)
    parser.add_argument("--policies", action="store_true", help="compare policies, not memory")
    parser.add_argument("--emulate", type=int, default=0, help="sources to run in the emulator too")
    parser.add_argument("--plot", type=Path, help="draw the shares as .svg or .png")
    parser.add_argument("--folder", type=Path, help="for the files (default: a temporary one)")
    options = parser.parse_args(arguments)
    rows: list[tuple[str, str, float, float]] = []
    emulated: list[list[str]] = []
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, path in _graphs(options, Path(folder)):
            with open_file(path) as graph:
                sources = _sources(graph, options.sources)
                asked = [(case.title(), case, Policy.COSTS) for case in CASES]
                if options.policies:
                    asked = [(policy.value, CASES[0], policy) for policy in Policy]
                for title, case, policy in asked:
                    shares = [share(graph, int(source), case, policy) for source in sources]
                    rows.append((name, title, float(np.median(shares)), max(shares)))
                emulated += [
                    _emulate(name, graph, int(source)) for source in sources[: options.emulate]
                ]
    show(
        f"{options.sources} sources",
        ("graph", "case", "median", "worst"),
        [[graph, case, f"{median:.2%}", f"{worst:.2%}"] for graph, case, median, worst in rows],
    )
    if emulated:
        header = ("graph", "source", "emulator", "count in its order", "count in ascending order")
        show("Bytes, heads resident, no slice, 32-byte probes", header, emulated)
    if options.plot:
        _plot(rows, options.plot)


def _graphs(options: argparse.Namespace, folder: Path) -> Iterator[tuple[str, Path]]:
    """Make each graph when its turn comes, and remove it afterwards."""
    real = Path(os.environ.get("OOCBFS_GRAPHS", "none"))
    makers: dict[str, tuple[str, Callable[[], Any]]] = {
        "kron": (f"kron {options.scale}", lambda: generators.kron(options.scale)),
        "uniform": (f"uniform {options.scale}", lambda: generators.uniform(options.scale)),
        "powerlaw": (
            f"powerlaw {options.vertices:,}",
            lambda: generators.powerlaw(options.vertices, 55.0, 5214),
        ),
        # The same mean and maximum without the many vertices of few neighbours: an exponent of 2.5.
        "steep": (
            f"powerlaw from degree 20, {options.vertices:,}",
            lambda: generators.powerlaw(options.vertices, 55.0, 5214, 20),
        ),
        "road": ("road NY", lambda: real / "road" / "NY.gr.xz"),
        "p2p": ("p2p-31", lambda: real / "p2p" / "p2p-31.e"),
    }
    for wanted in options.graphs.split(","):
        title, make = makers[wanted]
        made = make()
        if isinstance(made, Path) and not made.exists():
            continue
        oocbfs.convert(made, folder / f"{wanted}.ocg", directed=False)
        yield title, folder / f"{wanted}.ocg"
        (folder / f"{wanted}.ocg").unlink()


def _sources(graph: Graph, count: int) -> NDArray[np.int64]:
    """Choose among the stored vertices that have neighbours."""
    candidates = np.flatnonzero(np.asarray(graph._stored.rows.degrees))
    return np.random.default_rng(27).choice(candidates, count)


def share(graph: Graph, source: int, case: Case, policy: Policy = Policy.COSTS) -> float:
    """Return the bytes of one search from a stored vertex over those of heads and tails."""
    rows = graph._stored.rows
    levels = graph.bfs(int(graph._stored.ids_of(np.array([source]))[0])).levels
    stored = levels if graph._stored.order is None else levels[np.asarray(graph._stored.order)]
    graph_bytes = rows.heads.nbytes + rows.tails.nbytes
    return count_bytes(rows, stored, case, case.device_range(graph), policy) / graph_bytes


def count_bytes(
    rows: Rows,
    levels: NDArray[np.int32],
    case: Case,
    device_range: ByteRange,
    policy: Policy = Policy.COSTS,
) -> int:
    """Count the bytes of a search of an undirected graph that found these levels."""
    limits = limits_of(KNOWN_GPUS[0].rates)
    n = levels.size
    index = (rows.bases, rows.starts, rows.shift)
    cuts, costs = Cuts(rows, rows), costs_of(KNOWN_GPUS[0].rates, rows)
    passes = HeadsPasses(costs, limits, rows.tails.size, n)
    tails = np.asarray(rows.tails)
    fast = np.array(device_range) // 32
    by_level = np.argsort(levels, kind="stable")
    ends = np.cumsum(np.bincount(levels + 1))
    visited = np.zeros(n, np.bool_)
    pending = np.empty(n, np.int64)
    cache = empty_cache(tails.size)
    sectors = 0
    left_edges = rows.num_arcs
    known, by_heads = True, 0
    count, frontier = 0, np.empty(0, np.int64)

    def moved(cut: int) -> int:
        """Count the sectors of a level whose pending vertices search before a cut."""
        total = 0
        if cut:
            searching = (pending[:count], visited, fast, case.probe_bytes, cut)
            total += sector_count.count_bottom_up(*index, tails, *searching)
        if cut < n:
            total += sector_count.count_top_down(*index, tails, frontier, fast, cut)
        return total

    for level in range(1, ends.size):
        frontier = by_level[ends[level - 1] : ends[level]]
        # Of a frontier that was not read back yet, the host knows what a heads pass found.
        num_visited = ends[level] - (0 if known else frontier.size - by_heads)
        visited[frontier] = True
        # After a large level the device asks heads before the host knows the frontier.
        search_bytes, worthwhile = passes.search_bytes, passes.worth_asking(int(n - num_visited))
        passes.learn(frontier.size - by_heads)
        by_heads = 0
        frontier_sectors = sector_count.frontier_sectors(*index, frontier, fast)
        expand_cost = costs.expand(frontier_sectors)
        frontier_bytes = 32 * int(frontier_sectors[:2].sum())
        small = frontier.size <= limits.small_vertices and (
            sector_count.tail_bytes(*index, frontier)
            <= limits.small_bytes + frontier.size * SMALL_BYTES_PER_VERTEX
        )
        looks = not (small and known) and expand_cost[0] >= worthwhile
        edges = int(rows.degrees[frontier].sum(dtype=np.int64))
        left_edges -= edges
        if policy in (Policy.EDGES, Policy.SHARES):
            looks = policy.is_bottom_up(edges, left_edges, rows.num_arcs)
        known = small and not looks
        cut = 0
        if looks:
            expected_search = 32 + search_bytes // (frontier_bytes + 1)
            count, by_range = sector_count.look_at_heads(
                rows.heads, *index, visited, fast, expected_search, pending, cuts.vertices
            )
            heads = np.minimum(rows.heads, n - 1)
            asked = (rows.heads < n) & ~visited
            by_heads = int((visited[heads] & asked).sum())
            search_costs = passes.search_costs(
                by_range,
                pending=count,
                frontier=frontier.size,
                frontier_bytes=frontier_bytes,
                expand_cost=int(expand_cost[0]),
                tested=int(asked.sum()),
                found=by_heads,
            )
            if policy is Policy.COSTS:
                cut = cuts.vertex(cuts.choose(search_costs, expand_cost))
            elif policy is Policy.HINDSIGHT:
                cut = min(map(cuts.vertex, range(NUM_RANGES + 1)), key=moved)
            else:
                cut = n
            sectors += 0 if case.heads else sector_count.count_heads_pass(visited)
        if small and not looks:
            sectors += count_small_level(*index, frontier, fast, cache)
        else:
            sectors += moved(cut)
        if cut < n:
            sectors += 0 if case.heads else sector_count.count_frontier_heads(frontier)
    return 32 * sectors


def _emulate(name: str, graph: Graph, source: int) -> list[str]:
    """Count one search in the emulator, and twice without it."""
    device = RecordingDevice(KernelOptions())
    with GpuBfs(device, graph._stored.rows) as bfs:
        device.bfs, device.pending = bfs, []
        result = bfs.run(np.array([source], np.uint32))
    followed = 32 * expected_sectors(device, graph._stored.rows, result, (0, 0), 32)
    counts = (
        device.usage.slow_bytes,
        followed,
        count_bytes(graph._stored.rows, result.levels, Case(), (0, 0)),
    )
    if counts[0] != counts[1]:
        raise SystemExit(f"{name}, source {source}: the counts differ: {counts}")
    return [name, str(source), *(f"{count:,}" for count in counts)]


def _plot(rows: list[tuple[str, str, float, float]], path: Path) -> None:
    """Bars of the median of each case, with a line to the worst."""
    ratio_bars(
        [(f"{graph}: {case}", 100 * median, BLUE) for graph, case, median, _ in rows],
        path,
        title="Bytes over PCIe of one search",
        subtitle="% of the graph's bytes: the median (and the worst)",
        across="% of the graph's bytes",
        write=lambda value: f"{value:.3g} %",
        worst=[100 * worst for _, _, _, worst in rows],
        one=False,
    )
