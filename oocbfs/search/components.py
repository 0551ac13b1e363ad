"""Find connected components on an engine and bring them into input ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import fresh
from oocbfs.engines.base import Engine
from oocbfs.engines.choice import Choice, run_on_best
from oocbfs.errors import QueryError
from oocbfs.formats.io.ordered import available_threads
from oocbfs.kernels.compiling import clock, compile_seconds
from oocbfs.plan.host import why_disk
from oocbfs.results.components import ComponentsResult, ComponentsRun, ComponentsStats
from oocbfs.results.to_ids import components_to_ids
from oocbfs.results.validation import validate_components
from oocbfs.search.decision import decide_components
from oocbfs.search.run import only_engine, refuse
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.stored import StoredGraph


def components(graph: AnyStored, settings: Settings, *, strong: bool = False) -> ComponentsResult:
    """Find the components of a graph; see ``AnyGraph.components``."""
    settings.check()
    # Without directions they are the same.
    strong = strong and graph.directed
    only = only_engine(graph, settings)
    if only is not None:
        refuse(only, graph, settings)
    with graph.reading():
        start, compiled = clock(), compile_seconds()
        memory_plan = (
            decide_components(cast("StoredGraph", graph), settings)
            if only is None
            else only.needs(graph, settings)
        )
        labels = fresh(graph.num_vertices, np.uint32)
        if strong:
            run, choice = _connect_strongly(graph, labels, settings, only)
        elif only is not None:
            run, choice = only.connect(graph, labels, settings), Choice(only.name)
        else:
            run, choice = run_on_best(
                memory_plan.engine,
                settings,
                lambda engine: engine.connect(graph, labels, settings),
                lambda: why_disk(cast("StoredGraph", graph)),
            )
        threads = available_threads(settings.threads)
        found_at = clock()
        by_id, counts = components_to_ids(graph, labels, memory_plan.arrays, threads)
        end = clock()
        if settings.checks:
            bounded = settings.memory is not None
            validate_components(graph, by_id, counts, bounded=bounded, strong=strong)
        if run.engine == "disk":
            graph.release()
    stats = ComponentsStats(
        engine=run.engine,
        threads=run.threads,
        seconds=end - start,
        load_seconds=found_at - start - run.seconds,
        compile_seconds=compile_seconds() - compiled,
        search_seconds=run.seconds,
        to_ids_seconds=end - found_at,
        steps=run.steps,
        tail_bytes=graph.sizes.tail_bytes,
        slow_bytes_by_tier=run.slow_bytes_by_tier,
        fallback=choice.fallback,
        engine_reason=run.note or choice.reason,
    )
    return ComponentsResult(graph, by_id, stats, counts, strong)


def _connect_strongly(
    graph: AnyStored, labels: NDArray[np.uint32], settings: Settings, only: Engine | None
) -> tuple[ComponentsRun, Choice]:
    """Find strongly connected components: each of their searches chooses its engine."""
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.search.strong import connect_strongly

    if not isinstance(graph, StoredGraph):
        raise QueryError(
            f"{graph.path}: strongly connected components are found in a graph in one file: "
            "name the file that it was cut from"
        )
    if only is not None:
        raise QueryError("strongly connected components are found without devices and method")
    run, choice = connect_strongly(graph, labels, settings)
    return run, choice
