"""Compare what a plan predicts for a Kronecker graph with what a search of it does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from oocbfs.conversion.converter import convert
from oocbfs.first_contact.comparing import DifferenceError
from oocbfs.first_contact.target import Target
from oocbfs.generate import generators
from oocbfs.kernels.cuda.source import MEASURE_KERNELS, KernelOptions
from oocbfs.plan.device import plan
from oocbfs.plan.prediction import (
    LevelSample,
    predict,
    predict_seconds,
    sample_levels,
)
from oocbfs.plan.rates import Rates
from oocbfs.plan.shape import shape_of
from oocbfs.progress import Phases
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import Settings

_SCALES = {"cuda": 20, "emulator": 10}
_SHARES = ("0%", "50%", "100%")
_SOURCES = 3
_ROUNDS = 5


class Forecasted(NamedTuple):
    """Medians of some sources: predicted and counted bytes, or predicted and measured seconds.

    None is what cannot be known: a GPU counts no bytes, and time in the emulator means nothing.
    """

    graph: str
    share: str
    predicted_bytes: int
    counted_bytes: int | None
    predicted_seconds: float | None
    measured_seconds: float | None


def compare_forecasts(
    target: Target, folder: Path, rates: Rates | None, phases: Phases
) -> Iterator[Forecasted]:
    """Search a graph from some sources with each share of its tails resident."""
    scale = _SCALES[target.engine]
    with phases("graph", None, "file"):
        convert(generators.kron(scale), folder / "forecast.ocg")
    with open_file(folder / "forecast.ocg") as graph:
        samples = sample_levels(graph._stored, _SOURCES, phases)
        with phases("predict", len(_SHARES), "share") as bar:
            for share in _SHARES:
                runs = [_compare(target, graph, sample, share, rates) for sample in samples]
                yield Forecasted(
                    f"Kronecker {scale}", share, *map(_median, zip(*runs, strict=True))
                )
                bar.update(1)


def _median(values: tuple[Any, ...]) -> Any:
    return None if None in values else median(values)


def _compare(
    target: Target, graph: Graph, sample: LevelSample, share: str, rates: Rates | None
) -> tuple[int, int | None, float | None, float | None]:
    stored = graph._stored
    decided = plan(shape_of(stored), vram_bytes=None, resident_tails=share)
    decides_by = rates or target.device(KernelOptions(), MEASURE_KERNELS).rates
    forecast = predict(stored, decided, sample, decides_by)
    source = int(stored.ids_of(np.flatnonzero(sample.levels == 0))[0])
    order = np.arange(graph.num_vertices) if stored.order is None else stored.order
    options = Settings(resident_tails=share)
    seconds = []
    for _ in range(_ROUNDS if target.is_gpu else 1):
        done = graph.bfs(source, engine=target.engine, options=options)
        if not np.array_equal(done.levels[order], sample.levels):
            raise DifferenceError(
                f"levels of {graph.num_vertices:,} vertices differ from the CPU's"
            )
        seconds.append(done.stats.search_seconds)
    if rates is None:
        return forecast.slow_bytes, done.stats.slow_bytes, None, None
    predicted = predict_seconds(rates, forecast, graph.num_vertices)
    return forecast.slow_bytes, None, predicted, median(seconds)
