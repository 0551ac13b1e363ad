"""What searches do by how much of the tails is resident: counted by the emulator, then modelled.

Every level decided by what it costs against forced directions, and against adaptive methods of the
papers, which read all rows over PCIe. Seconds are modelled from the counts and from published
rates of GPUs; nothing was timed on one. ``--ranges`` counts bytes over PCIe for the device range
that the plan chooses against the first bytes, and what the plan predicts against the count.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.gpu.result import DeviceDirection
from oocbfs.graph.stored import StoredGraph, open_stored
from oocbfs.kernels.cuda.source import KernelOptions
from oocbfs.kernels.emulator.build import Checks
from oocbfs.kernels.methods.axes import MethodOptions
from oocbfs.methods.choice import parse_method
from oocbfs.methods.programs import make_program
from oocbfs.methods.search import MethodSearch
from oocbfs.plan.device import DevicePlan, plan
from oocbfs.plan.prediction import LevelSample, predict, sample_levels
from oocbfs.plan.ranges import align_range
from oocbfs.plan.rates import KNOWN_GPUS, Rates
from oocbfs.plan.shape import shape_of
from oocbfs.progress import Phases
from oocbfs.results.counts import Counts
from tests.benchmarks.common import show

GPUS = {gpu.name: gpu.rates for gpu in KNOWN_GPUS if gpu.name.split()[0] != "RTX"}
GPUS = {KNOWN_GPUS[0].name: KNOWN_GPUS[0].rates, **GPUS}
AUTO = "auto"
FORCED = {"top-down": DeviceDirection.TOP_DOWN, "bottom-up": DeviceDirection.BOTTOM_UP}
METHODS = ("v3.3", "xbfs", "gswitch")
# Blocks that the laptop's GPU holds of most kernels: 30 multiprocessors, 4 blocks each. So the
# busiest warp of a launch is one that a GPU would have.
NUM_BLOCKS = 120
# Accesses to memory that a warp has under way at a time; assumed.
UNDER_WAY = 4


@dataclass(frozen=True)
class Counted:
    """Means over sources; ``seconds`` are modelled, by GPU."""

    edges: float
    slow_bytes: float
    sectors: float
    busiest_small: float
    seconds: dict[str, float]

    def cells(self) -> list[str]:
        """Return what a table shows."""
        return [
            f"{self.edges / 1e3:,.0f}",
            f"{self.slow_bytes / 1024:,.0f}",
            f"{self.sectors / 1e3:,.0f}",
            f"{self.busiest_small:,.0f}",
            *(f"{1e6 * seconds:,.0f}" for seconds in self.seconds.values()),
        ]


def modelled_seconds(counts: Counts, rates: Rates) -> float:
    """Return what the launches of a step take: the longer of moving sectors and of waiting."""
    moving = (counts.pcie_sectors or 0) / rates.bus_sectors
    moving += (counts.device_sectors or 0) / rates.device_sectors
    waiting = (counts.busiest_work or 0) * rates.latency_seconds / UNDER_WAY
    calls = counts.launches * rates.launch_seconds + counts.read_backs * rates.read_back_seconds
    return calls + max(moving, waiting)


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench resident", description=__doc__)
    parser.add_argument("graphs", nargs="+", type=Path, metavar="GRAPH.ocg")
    parser.add_argument("--shares", default="0,5,25,50,75,100", help="percents of the tails")
    parser.add_argument("--forced", help="those at which directions are forced too (default: all)")
    parser.add_argument("--ways", default=",".join((*FORCED, *METHODS)), help="beside auto")
    parser.add_argument("--sources", type=int, default=3)
    parser.add_argument("--keep", type=Path, help="write the counts to this file")
    parser.add_argument("--against", type=Path, help="counts that another version kept")
    parser.add_argument("--ranges", action="store_true", help="compare device ranges instead")
    options = parser.parse_args(arguments)
    shares = [int(share) for share in options.shares.split(",")]
    forced = shares if options.forced is None else list(map(int, options.forced.split(",")))
    before = json.loads(options.against.read_text()) if options.against else {}
    kept: dict[str, dict[str, dict[str, object]]] = {}
    ratios: list[list[str]] = []
    for path in options.graphs:
        with open_stored(path) as graph:
            if options.ranges:
                _show_ranges(graph, shares, options.sources)
                continue
            ways = options.ways.split(",")
            sources = choose_sources(graph, options.sources)
            # They keep no tails in device memory, so that they are counted once.
            methods = {way: _count_method(graph, way, sources) for way in ways if way in METHODS}
            counted = {}
            for share in shares:
                directions = [way for way in ways if way in FORCED and share in forced]
                counted[share] = count_ways(graph, share, directions, sources) | methods
        kept[path.stem] = {
            str(share): {way: asdict(one) for way, one in ways.items()}
            for share, ways in counted.items()
        }
        _show_counts(path.name, counted, options.sources)
        ratios.append(ratios_row(path.stem, counted, before.get(path.stem, {})))
        if options.keep:
            options.keep.write_text(json.dumps(kept, indent=1))
    if ratios:
        _show_ratios(shares, ratios)


def choose_sources(graph: StoredGraph, count: int) -> NDArray[np.int64]:
    """Choose among the stored vertices that have neighbours."""
    candidates = np.flatnonzero(np.asarray(graph.rows.degrees))
    return np.random.default_rng(27).choice(candidates, count)


def count_ways(
    graph: StoredGraph, share: int, directions: Sequence[str], sources: NDArray[np.int64]
) -> dict[str, Counted]:
    """Count searches by auto, with the decisions of each GPU, and by forced directions."""
    autos = {
        name: _count_ours(graph, share, DeviceDirection.AUTO, sources, rates)
        for name, rates in GPUS.items()
    }
    first = next(iter(autos.values()))
    seconds = {name: one.seconds[name] for name, one in autos.items()}
    counted = {AUTO: replace(first, seconds=seconds)}
    for way in directions:
        counted[way] = _count_ours(graph, share, FORCED[way], sources, KNOWN_GPUS[0].rates)
    return counted


def _count_ours(
    graph: StoredGraph,
    share: int,
    direction: DeviceDirection,
    sources: NDArray[np.int64],
    rates: Rates,
) -> Counted:
    decided = plan(shape_of(graph), vram_bytes=None, resident_tails=f"{share}%")
    device = EmulatorDevice(
        KernelOptions(with_parents=False), checks=Checks.COUNTS, num_blocks=NUM_BLOCKS, rates=rates
    )
    searches = []
    with _placed(device, graph, decided) as search:
        for source in sources:
            steps = search.run(np.array([source], np.uint32), direction).steps
            searches.append(
                [(step.direction == "small", step.counts or Counts()) for step in steps]
            )
    return _mean(searches)


def _count_method(graph: StoredGraph, name: str, sources: NDArray[np.int64]) -> Counted:
    choice = parse_method(name)
    program = make_program(choice, with_parents=False)
    device = EmulatorDevice(
        MethodOptions(with_parents=program.with_parents),
        kernels=program.kernels,
        checks=Checks.COUNTS,
        num_blocks=NUM_BLOCKS,
    )
    with MethodSearch(device, choice, program, graph.rows, graph.in_rows) as search:
        runs = [search.run(np.array([source], np.uint32)) for source in sources]
    return _mean([[(False, step.counts or Counts()) for step in run.steps] for run in runs])


def _mean(searches: list[list[tuple[bool, Counts]]]) -> Counted:
    """Return the means over searches of the sums over steps, of which some are small levels."""
    steps = [step for search in searches for step in search]
    share = 1 / len(searches)
    return Counted(
        edges=share * sum(counts.edges_examined or 0 for _, counts in steps),
        slow_bytes=share * 32 * sum(counts.pcie_sectors or 0 for _, counts in steps),
        sectors=share * sum(counts.device_sectors or 0 for _, counts in steps),
        busiest_small=share * sum(counts.busiest_work or 0 for small, counts in steps if small),
        seconds={
            name: share * sum(modelled_seconds(counts, rates) for _, counts in steps)
            for name, rates in GPUS.items()
        },
    )


def _show_counts(name: str, counted: dict[int, dict[str, Counted]], sources: int) -> None:
    header = ("resident", "way", "edges (k)", "PCIe KB", "sectors (k)", "busiest warp, small")
    methods = {way: one for way, one in counted[min(counted)].items() if way in METHODS}
    rows = [["any", way, *one.cells()] for way, one in methods.items()]
    rows += [
        [f"{share} %", way, *one.cells()]
        for share, ways in counted.items()
        for way, one in ways.items()
        if way not in METHODS
    ]
    title = f"{name}: means of {sources} sources; microseconds are modelled"
    show(title, (*header, *(f"µs {gpu}" for gpu in GPUS)), rows)


def ratios_row(
    name: str,
    counted: dict[int, dict[str, Counted]],
    before: dict[str, dict[str, dict[str, float]]],
) -> list[str]:
    """Compare auto with its own edges at 0 %, with the best other way, and with another version.

    Every cell has a ratio for each residency; the best way is named where it is another.
    """
    old = {int(share): ways[AUTO] for share, ways in before.items()}
    rows = []
    for share, ways in counted.items():
        auto = ways[AUTO]
        sectors = [one.sectors for way, one in ways.items() if way in FORCED]
        sectors += [old[0]["sectors"]] if 0 in old else []
        cells = [_ratio(auto.edges, counted.get(0, ways)[AUTO].edges)]
        cells.append(_ratio(auto.sectors, min(sectors)) if sectors else "–")
        cells += [
            _ratio(getattr(auto, field), old[share][field]) if share in old else "–"
            for field in ("slow_bytes", "busiest_small")
        ]
        for gpu in GPUS:
            best = min(ways, key=lambda way: ways[way].seconds[gpu])
            ratio = _ratio(auto.seconds[gpu], ways[best].seconds[gpu])
            cells.append(ratio if best == AUTO else f"{ratio} {best}")
        rows.append(cells)
    return [name, *(", ".join(column) for column in zip(*rows, strict=True))]


def _show_ratios(shares: list[int], rows: list[list[str]]) -> None:
    header = ("graph", "edges / at 0 %", "sectors / best", "PCIe / before", "busiest / before")
    title = f"auto, at {', '.join(map(str, shares))} % resident"
    show(title, (*header, *(f"time / best, {gpu}" for gpu in GPUS)), rows)


def _ratio(value: float, base: float) -> str:
    return f"{value / base:.2f}" if base else "1.00" if not value else "more"


def _show_ranges(graph: StoredGraph, shares: list[int], sources: int) -> None:
    samples = sample_levels(graph, sources, Phases())
    name = Path(graph.path).name
    title = f"{name}: median (worst) percent of heads and tails, {len(samples)} sources"
    header = ("resident", "the first bytes", "as planned", "predicted / counted")
    show(title, header, [_row(graph, share, samples) for share in shares])


def _row(graph: StoredGraph, share: int, samples: list[LevelSample]) -> list[str]:
    shape = shape_of(graph)
    planned = plan(shape, vram_bytes=None, resident_tails=f"{share}%")
    first = replace(
        planned,
        device_ranges=tuple(
            align_range((0, side.num_bytes * share // 100), side.num_bytes) for side in shape.tails
        ),
    )
    graph_bytes = graph.rows.heads.nbytes + graph.rows.tails.nbytes
    cells = [f"{share} %"]
    for decided in (first, planned):
        counted = _count(graph, decided, samples)
        shown = 100 * counted / graph_bytes
        cells.append(f"{np.median(shown):.2f} ({shown.max():.2f})")
    rates = KNOWN_GPUS[0].rates
    predicted = np.array([predict(graph, planned, one, rates).slow_bytes for one in samples])
    ratios = predicted / np.maximum(counted, 1)
    return [*cells, f"{ratios.min():.2f} … {ratios.max():.2f}"]


def _count(graph: StoredGraph, decided: DevicePlan, samples: list[LevelSample]) -> np.ndarray:
    device = EmulatorDevice(KernelOptions(with_parents=False))
    counted = [0]
    with _placed(device, graph, decided) as search:
        for sample in samples:
            search.run(np.flatnonzero(sample.levels == 0).astype(np.uint32))
            counted.append(device.usage.slow_bytes or 0)
    return np.diff(counted)


def _placed(device: EmulatorDevice, graph: StoredGraph, decided: DevicePlan) -> GpuBfs:
    """Bring a graph to a device as planned."""
    ranges = decided.device_ranges
    return GpuBfs(device, graph.rows, graph.in_rows, with_parents=False, device_ranges=ranges)
