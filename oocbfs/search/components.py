"""Find connected components on an engine and bring them into input ids."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import fresh
from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.io.ordered import available_threads
from oocbfs.kernels.components import connect as cpu
from oocbfs.plan.host import Division, divide_components
from oocbfs.results.components import ComponentsResult, ComponentsStats, Found
from oocbfs.results.naming import name_components
from oocbfs.search.bfs import choose_engine, unused_device
from oocbfs.settings import Engine, check_choice

if TYPE_CHECKING:
    from oocbfs.graph.graph import Graph


class Settings(NamedTuple):
    """How to go about it; see ``Graph.components``."""

    threads: int | None = None
    engine: Engine = "auto"
    vram: str | int | None = None
    resident_tails: str | int | None = None
    progress: bool = False
    memory: int | None = None
    tmp: str | os.PathLike[str] | None = None


def components(graph: Graph, settings: Settings) -> ComponentsResult:
    """Find the components of a graph; see ``Graph.components``."""
    check_choice("engine", settings.engine, Engine)
    with graph.reading():
        return _components(graph, settings)


def _components(graph: Graph, settings: Settings) -> ComponentsResult:
    graph.expect_unpacking()
    division = _divide(graph, settings)
    labels = fresh(graph.num_vertices, np.uint32)
    found, engine, fallback = _run(graph, labels, settings, division.engine)
    threads = available_threads(settings.threads)
    start = time.perf_counter()
    named, counts = name_components(graph, labels, division.arrays, threads)
    if engine == "disk":
        graph.release()
    stats = ComponentsStats(
        engine=engine,
        threads=threads if engine in ("cpu", "disk") else 1,
        seconds=found.seconds,
        map_seconds=time.perf_counter() - start,
        steps=found.steps,
        tail_bytes=graph.sizes.tail_bytes,
        slow_bytes_by_tier=found.slow_bytes_by_tier,
        fallback=fallback,
    )
    return ComponentsResult(graph, named, stats, counts)


def _divide(graph: Graph, settings: Settings) -> Division:
    """Decide what stays in memory, and with a budget on the engine too."""
    on_device = settings.engine in ("cuda", "emulator")
    if on_device and settings.memory is not None:
        raise QueryError(f"the {settings.engine} engine keeps to no memory budget: leave it out")
    if on_device or (settings.engine == "auto" and settings.memory is None):
        return Division(settings.engine)
    cpu.load()
    return divide_components(graph, settings.engine, settings.memory, tmp=settings.tmp)


def _run(
    graph: Graph, labels: NDArray[np.uint32], settings: Settings, engine: str
) -> tuple[Found, str, str | None]:
    """Work on the engine asked for, or on the best there is; say which, and why no better."""
    fallback = unused_device(settings.engine, settings.vram, settings.resident_tails)
    threads = available_threads(settings.threads)
    if engine == "disk":
        return _on_disk(graph, labels, threads), engine, fallback
    if engine == "auto":
        engine, fallback = choose_engine(asked=fallback is not None)
    if engine != "cpu":
        from oocbfs.gpu.components import on_device
        from oocbfs.gpu.engine import UNUSABLE

        try:
            return on_device(graph, engine, labels, settings), engine, None
        except UNUSABLE as error:
            if settings.engine != "auto":
                raise
            fallback = str(error)
    return _on_cpu(graph, labels, threads), "cpu", fallback


def _on_cpu(graph: Graph, labels: NDArray[np.uint32], threads: int) -> Found:
    """Work on all cores, straight from the mapped file."""
    rows, in_rows = graph.rows, graph.in_rows if graph.directed else None
    cpu.load()
    start = time.perf_counter()
    done = cpu.connect(rows, in_rows, labels, threads=threads)
    seconds = time.perf_counter() - start
    if done.malformed:
        raise FormatError(f"{graph.path}: a row is damaged: run 'oocbfs verify'")
    return Found(done.steps, seconds, {})


def _on_disk(graph: Graph, labels: NDArray[np.uint32], threads: int) -> Found:
    """Work on all cores, heads and starts in memory, tails on disk."""
    from oocbfs.disk import components as disk_components

    rows = graph.disk_rows
    with rows.lock:
        rows.load()
        start = time.perf_counter()
        steps, moved = disk_components.connect(rows, labels, both=graph.directed, threads=threads)
        seconds = time.perf_counter() - start
    return Found(steps, seconds, {"disk": moved})
