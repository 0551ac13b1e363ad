"""Find connected components on an engine and bring them into input ids."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.budget import divide_components
from oocbfs.components_result import ComponentsResult, ComponentsStats, Step
from oocbfs.errors import FormatError
from oocbfs.formats.ordered import available_threads
from oocbfs.kernels import components as cpu
from oocbfs.naming import name_components

if TYPE_CHECKING:
    from oocbfs.graph import Graph

Engine = Literal["auto", "cpu", "disk"]


class Settings(NamedTuple):
    """How to go about it; see ``Graph.components``."""

    threads: int | None = None
    engine: Engine = "auto"
    memory: int | None = None
    tmp: str | os.PathLike[str] | None = None


class Found(NamedTuple):
    """What an engine did, besides filling labels."""

    steps: list[Step]
    seconds: float
    slow_bytes_by_tier: dict[str, int]


def components(graph: Graph, settings: Settings) -> ComponentsResult:
    """Find the components of a graph; see ``Graph.components``."""
    cpu.load()
    division = divide_components(graph, settings.engine, settings.memory, tmp=settings.tmp)
    labels = np.empty(graph.num_vertices, np.uint32)
    threads = available_threads(settings.threads)
    on_engine = _on_disk if division.engine == "disk" else _on_cpu
    found = on_engine(graph, labels, threads)
    start = time.perf_counter()
    named, counts = name_components(graph, labels, division.room, threads)
    graph.check_intact()
    if division.engine == "disk":
        graph.release()
    stats = ComponentsStats(
        engine=division.engine,
        threads=threads,
        seconds=found.seconds,
        map_seconds=time.perf_counter() - start,
        steps=found.steps,
        tail_bytes=graph.sizes.tail_bytes,
        slow_bytes_by_tier=found.slow_bytes_by_tier,
    )
    return ComponentsResult(graph, named, stats, counts)


def _on_cpu(graph: Graph, labels: NDArray[np.uint32], threads: int) -> Found:
    """Work on all cores, straight from the mapped file."""
    rows, in_rows = graph.rows, graph.in_rows if graph.directed else None
    start = time.perf_counter()
    done = cpu.connect(rows, in_rows, labels, threads=threads)
    seconds = time.perf_counter() - start
    graph.check_intact()
    if done.malformed:
        raise FormatError(f"{graph.path}: a row is damaged: run 'oocbfs verify'")
    return Found([Step(*step) for step in done.steps], seconds, {})


def _on_disk(graph: Graph, labels: NDArray[np.uint32], threads: int) -> Found:
    """Work on all cores, heads and starts in memory, tails on disk."""
    from oocbfs import disk_components

    rows = graph.disk_rows
    with rows.lock:
        rows.load()
        start = time.perf_counter()
        steps, moved = disk_components.connect(rows, labels, both=graph.directed, threads=threads)
        seconds = time.perf_counter() - start
    return Found([Step(*step) for step in steps], seconds, {"disk": moved})
