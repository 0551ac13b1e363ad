"""Bytes over PCIe by how much of the tails is resident, and where: counted by the emulator.

The device range that the plan chooses against the first bytes, and what the plan predicts against
the count.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.emulator_device import EmulatorDevice
from oocbfs.kernels.cuda.source import KernelOptions
from oocbfs.plan.device import DevicePlan, plan
from oocbfs.plan.prediction import LevelSample, predict_bytes, sample_levels
from oocbfs.plan.ranges import align_range
from oocbfs.plan.shape import shape_of
from oocbfs.progress import Phases
from oocbfs.search.graph import Graph, open_file
from tests.benchmarks.common import show


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench resident", description=__doc__)
    parser.add_argument("graphs", nargs="+", type=Path, metavar="GRAPH.ocg")
    parser.add_argument("--shares", default="0,10,25,50", help="percents of the tails")
    parser.add_argument("--sources", type=int, default=16)
    options = parser.parse_args(arguments)
    shares = [int(share) for share in options.shares.split(",")]
    for path in options.graphs:
        with open_file(path) as graph:
            samples = sample_levels(graph._stored, options.sources, Phases())
            rows = [_row(graph, share, samples) for share in shares]
        title = f"{path.name}: median (worst) percent of heads and tails, {len(samples)} sources"
        header = ("resident", "the first bytes", "as planned", "predicted / counted")
        show(title, header, rows)


def _row(graph: Graph, share: int, samples: list[LevelSample]) -> list[str]:
    shape = shape_of(graph._stored)
    planned = plan(shape, vram_bytes=None, resident_tails=f"{share}%")
    first = replace(
        planned,
        device_ranges=tuple(
            align_range((0, side.num_bytes * share // 100), side.num_bytes) for side in shape.tails
        ),
    )
    graph_bytes = graph._stored.rows.heads.nbytes + graph._stored.rows.tails.nbytes
    cells = [f"{share} %"]
    for decided in (first, planned):
        counted = _count(graph, decided, samples)
        shown = 100 * counted / graph_bytes
        cells.append(f"{np.median(shown):.2f} ({shown.max():.2f})")
    predicted = np.array(
        [predict_bytes(graph._stored, planned, sample).slow_bytes for sample in samples]
    )
    ratios = predicted / np.maximum(counted, 1)
    return [*cells, f"{ratios.min():.2f} … {ratios.max():.2f}"]


def _count(graph: Graph, decided: DevicePlan, samples: list[LevelSample]) -> np.ndarray:
    device = EmulatorDevice(KernelOptions(with_parents=False))
    counted = [0]
    with GpuBfs(
        device,
        graph._stored.rows,
        graph._stored.in_rows,
        with_parents=False,
        device_ranges=decided.device_ranges,
    ) as search:
        for sample in samples:
            search.run(np.flatnonzero(sample.levels == 0).astype(np.uint32))
            counted.append(device.usage.slow_bytes or 0)
    return np.diff(counted)
