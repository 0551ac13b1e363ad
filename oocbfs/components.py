"""Find connected components on an engine and bring them into input ids."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.components_result import ComponentsResult, ComponentsStats, Step
from oocbfs.errors import FormatError
from oocbfs.formats.ordered import available_threads
from oocbfs.kernels import components as cpu
from oocbfs.naming import name_components
from oocbfs.room import Room

if TYPE_CHECKING:
    from oocbfs.graph import Graph

Engine = Literal["auto", "cpu"]


class Settings(NamedTuple):
    """How to go about it; see ``Graph.components``."""

    threads: int | None = None
    engine: Engine = "auto"


def components(graph: Graph, settings: Settings) -> ComponentsResult:
    """Find the components of a graph; see ``Graph.components``."""
    room = Room()
    labels = room.array(graph.num_vertices, np.uint32)
    threads = available_threads(settings.threads)
    steps, seconds = _on_cpu(graph, labels, threads)
    start = time.perf_counter()
    named, counts = name_components(graph, labels, room, threads)
    graph.check_intact()
    stats = ComponentsStats(
        engine="cpu",
        threads=threads,
        seconds=seconds,
        map_seconds=time.perf_counter() - start,
        steps=steps,
        tail_bytes=graph.sizes.tail_bytes,
    )
    return ComponentsResult(graph, named, stats, counts)


def _on_cpu(graph: Graph, labels: NDArray[np.uint32], threads: int) -> tuple[list[Step], float]:
    """Work on all cores, straight from the mapped file."""
    rows, in_rows = graph.rows, graph.in_rows
    cpu.load()
    start = time.perf_counter()
    done = cpu.connect(rows, in_rows if graph.directed else None, labels, threads=threads)
    seconds = time.perf_counter() - start
    graph.check_intact()
    if done.malformed:
        raise FormatError(f"{graph.path}: a row is damaged: run 'oocbfs verify'")
    return [Step(*step) for step in done.steps], seconds
