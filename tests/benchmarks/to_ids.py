"""Results in the order of ids: what the host takes for it, and the model of what a GPU takes.

The host's part is measured, on a random order. With a graph, the model of a search and its results
is printed by part for some GPUs: as results came before (levels of four bytes, brought into order
by one thread of the host) and as they come now. A graph that is smaller than the one that is meant
is scaled, and the memory of the GPUs with it. Nothing of that was measured on a GPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from oocbfs.arrays import ResultPool
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.graph.stored import StoredGraph
from oocbfs.kernels.results import levels as kernels
from oocbfs.plan.device import plan
from oocbfs.plan.prediction import (
    USABLE_SHARE,
    Forecast,
    predict,
    predict_seconds,
    sample_levels,
)
from oocbfs.plan.rates import KNOWN_GPUS, Rates
from oocbfs.plan.shape import shape_of
from oocbfs.plan.to_ids import predict_to_ids
from oocbfs.progress import Phases
from oocbfs.results.to_ids import count_sizes
from oocbfs.search.graph import open_file
from tests.benchmarks.common import show

_GPUS = ("RTX 3060 Laptop", "A100 80GB", "H100 PCIe")
# Results that come from a device at a time.
_PIECE = 4 << 20


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench to_ids", description=__doc__)
    parser.add_argument("graph", nargs="?", type=Path, metavar="GRAPH.ocg")
    parser.add_argument("--scale", type=int, default=1, help="how many times the graph is meant")
    parser.add_argument("--vertices", type=int, default=65_600_000)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args(arguments)
    threads = [int(count) for count in options.threads.split(",")]
    measured = {count: measure(options.vertices, count, options.runs) for count in threads}
    rows = [
        [name, *(f"{1000 * measured[count][name]:.0f} ms" for count in threads)]
        for name in measured[threads[0]]
    ]
    title = f"{options.vertices:,} levels on the host, medians of {options.runs}"
    show(title, ("step", *(f"threads: {count}" for count in threads)), rows)
    if options.graph is not None:
        with open_file(options.graph) as graph:
            before = sum(measured[1].values()) - measured[1]["widen bytes"]
            print_model(graph._stored, options.scale, before, threads[-1])


def measure(num_vertices: int, threads: int, runs: int) -> dict[str, float]:
    """Time what the host does to levels, in seconds."""
    rng = np.random.default_rng(1)
    order = rng.permutation(num_vertices).astype(np.uint32)
    levels = rng.integers(-1, 9, num_vertices).astype(np.int32)
    small = levels.astype(np.uint8)
    out = ResultPool().allocate(num_vertices, np.int32)  # on huge pages, as results are
    out[:] = 0
    degrees = np.ones(num_vertices, np.uint32)

    def widen() -> None:
        for first in range(0, num_vertices, _PIECE):
            piece = small[first : first + _PIECE]
            over_ranges(kernels.widen_levels, piece.size, threads, out, first, piece)

    steps: dict[str, Callable[[], Any]] = {
        "bring into order": lambda: over_ranges(
            kernels.levels_to_ids, num_vertices, threads, out, 0, levels, order
        ),
        "count levels": lambda: count_sizes(levels, 9, threads),
        "count edges": lambda: over_ranges(
            kernels.count_reached, num_vertices, threads, levels, degrees
        ),
        "widen bytes": widen,
    }
    return {name: median(_seconds(step) for _ in range(runs)) for name, step in steps.items()}


def _seconds(step: Callable[[], Any]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def print_model(graph: StoredGraph, scale: int, before_seconds: float, threads: int) -> None:
    """Print what a search and its results take by the model, before and now."""
    samples = sample_levels(graph, 8, Phases())
    num_vertices = scale * graph.num_vertices
    rows = []
    for gpu in KNOWN_GPUS:
        if gpu.name not in _GPUS:
            continue
        usable = int(USABLE_SHARE * gpu.vram_bytes) // scale
        decided = plan(shape_of(graph), vram_bytes=usable)
        forecasts = [predict(graph, decided, sample, gpu.rates) for sample in samples]
        search = median(_scaled(gpu.rates, forecast, num_vertices, scale) for forecast in forecasts)
        to_ids = predict_to_ids(
            gpu.rates,
            num_vertices,
            on_device=decided.order_bytes > 0,
            with_parents=False,
            threads=threads,
        )
        copied = 4 * num_vertices / gpu.rates.copy_bandwidth
        milliseconds = [
            search,
            copied,
            before_seconds,
            search + copied + before_seconds,
            to_ids.device_seconds,
            to_ids.copy_seconds,
            to_ids.host_seconds,
            search + to_ids.seconds,
        ]
        rows.append([gpu.name, *(f"{1000 * part:.1f}" for part in milliseconds)])
    before = ("before: copied", "host, one thread", "in all")
    now = ("now: to ids", "copied", "written meanwhile", "in all")
    title = f"model of {num_vertices:,} vertices, {scale * graph.num_arcs:,} arcs, in ms"
    show(title, ("GPU", "search", *before, *now), rows)


def _scaled(rates: Rates, forecast: Forecast, num_vertices: int, scale: int) -> float:
    """Predict for a graph so many times as large, with as many levels."""
    larger = replace(
        forecast,
        work_seconds=scale * forecast.work_seconds,
        disk_bytes=scale * forecast.disk_bytes,
    )
    return predict_seconds(rates, larger, num_vertices)
