"""Find connected components on an engine and bring them into input ids."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import ResultArrays, fresh
from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.io.ordered import available_threads
from oocbfs.kernels.compiling import clock, compile_seconds
from oocbfs.kernels.components import connect as cpu
from oocbfs.plan.host import Division, components_needs, divide, expect_code, why_disk
from oocbfs.results.components import ComponentsOutcome, ComponentsResult, ComponentsStats
from oocbfs.results.naming import name_components
from oocbfs.results.validation import validate_components
from oocbfs.search.code import components_code
from oocbfs.search.engine import Choice, run_on_best
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph


def components(graph: StoredGraph, settings: Settings) -> ComponentsResult:
    """Find the components of a graph; see ``Graph.components``."""
    settings.check()
    with graph.reading():
        return _components(graph, settings)


def _components(graph: StoredGraph, settings: Settings) -> ComponentsResult:
    start, compiled = clock(), compile_seconds()
    graph.expect_unpacking()
    division = decide(graph, settings)
    labels = fresh(graph.num_vertices, np.uint32)
    found, (engine, fallback, reason) = _run(graph, labels, settings, division.engine)
    threads = available_threads(settings.threads)
    found_at = clock()
    named, counts = name_components(graph, labels, division.arrays, threads)
    end = clock()
    if settings.checks:
        validate_components(graph, named, counts, bounded=settings.memory is not None)
    if engine == "disk":
        graph.release()
    stats = ComponentsStats(
        engine=engine,
        threads=threads if engine in ("cpu", "disk") else 1,
        seconds=end - start,
        load_seconds=found_at - start - found.seconds,
        compile_seconds=compile_seconds() - compiled,
        traversal_seconds=found.seconds,
        naming_seconds=end - found_at,
        steps=found.steps,
        tail_bytes=graph.sizes.tail_bytes,
        slow_bytes_by_tier=found.slow_bytes_by_tier,
        fallback=fallback,
        engine_reason=found.note or reason,
    )
    return ComponentsResult(graph, named, stats, counts)


def decide(graph: StoredGraph, settings: Settings) -> Division:
    """Decide what stays in memory, and with a budget on the engine too."""
    if settings.on_device and settings.memory is not None:
        raise QueryError(f"the {settings.engine} engine keeps to no memory budget: leave it out")
    if not settings.on_host:
        return Division(settings.engine, ResultArrays(pool=graph.result_pool))
    expect_code(graph.path, components_code(graph, settings), settings.memory)
    cpu.load()
    needs = components_needs(graph, validate=settings.checks)
    return divide(graph, needs, settings, _load_disk)


def _load_disk() -> None:
    from oocbfs.disk import components as disk

    disk.load()


def _run(
    graph: StoredGraph, labels: NDArray[np.uint32], settings: Settings, engine: str
) -> tuple[ComponentsOutcome, Choice]:
    """Work on the engine asked for, or on the best there is."""
    threads = available_threads(settings.threads)

    def on_device(engine: str) -> ComponentsOutcome:
        from oocbfs.gpu.components import on_device

        return on_device(graph, engine, labels, settings)

    return run_on_best(
        engine,
        settings,
        on_cpu=lambda: _on_cpu(graph, labels, threads),
        on_disk=lambda: _on_disk(graph, labels, threads),
        on_device=on_device,
        why_disk=lambda: why_disk(graph),
    )


def _on_cpu(graph: StoredGraph, labels: NDArray[np.uint32], threads: int) -> ComponentsOutcome:
    """Work on all cores, straight from the mapped file."""
    rows, in_rows = graph.connected_rows
    cpu.load()
    start = clock()
    linked = _label_others(graph, labels)
    done = cpu.connect(rows, in_rows if graph.directed else None, linked, threads=threads)
    seconds = clock() - start
    if done.malformed:
        raise FormatError(f"{graph.path}: a row is damaged: run 'oocbfs verify'")
    return ComponentsOutcome(done.steps, seconds, {})


def _on_disk(graph: StoredGraph, labels: NDArray[np.uint32], threads: int) -> ComponentsOutcome:
    """Work on all cores, heads and starts in memory, tails on disk."""
    from oocbfs.disk import components as disk

    disk.load()
    rows = graph.disk_rows
    with rows.lock:
        rows.load()
        start = clock()
        linked = _label_others(graph, labels)
        steps, moved = disk.connect(rows, linked, both=graph.directed, threads=threads)
        seconds = clock() - start
    return ComponentsOutcome(steps, seconds, {"disk": moved})


def _label_others(graph: StoredGraph, labels: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Label the vertices behind those that are linked, each alone; give the labels of the rest."""
    count = graph.num_linked
    labels[count:] = np.arange(count, labels.size)
    return labels[:count]
