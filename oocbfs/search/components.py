"""Find connected components on an engine and bring them into input ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np

from oocbfs.arrays import fresh
from oocbfs.engines.choice import Choice, run_on_best
from oocbfs.formats.io.ordered import available_threads
from oocbfs.kernels.compiling import clock, compile_seconds
from oocbfs.plan.host import why_disk
from oocbfs.results.components import ComponentsResult, ComponentsStats
from oocbfs.results.to_ids import components_to_ids
from oocbfs.results.validation import validate_components
from oocbfs.search.decision import decide_components
from oocbfs.search.run import only_engine, refuse
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.stored import StoredGraph


def components(graph: AnyStored, settings: Settings) -> ComponentsResult:
    """Find the components of a graph; see ``AnyGraph.components``."""
    settings.check()
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
        if only is not None:
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
        named, counts = components_to_ids(graph, labels, memory_plan.arrays, threads)
        end = clock()
        if settings.checks:
            validate_components(graph, named, counts, bounded=settings.memory is not None)
        if run.engine == "disk":
            graph.release()
    stats = ComponentsStats(
        engine=run.engine,
        threads=run.threads,
        seconds=end - start,
        load_seconds=found_at - start - run.seconds,
        compile_seconds=compile_seconds() - compiled,
        traversal_seconds=run.seconds,
        naming_seconds=end - found_at,
        steps=run.steps,
        tail_bytes=graph.tail_bytes,
        slow_bytes_by_tier=run.slow_bytes_by_tier,
        fallback=choice.fallback,
        engine_reason=run.note or choice.reason,
    )
    return ComponentsResult(graph, named, stats, counts)
