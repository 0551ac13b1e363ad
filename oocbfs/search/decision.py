"""Decide on a search and on the one for its source, if that takes one, before any work.

A budget of memory decides on the engine, too; ``plan`` asks the same as a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, cast

from oocbfs.arrays import ResultArrays
from oocbfs.errors import BudgetError, QueryError
from oocbfs.formats.container import unpacking
from oocbfs.formats.io.ordered import available_threads
from oocbfs.kernels.bfs import search as bfs
from oocbfs.kernels.compiling import call
from oocbfs.plan import disk as disk_plan
from oocbfs.plan.distances import distances_needs
from oocbfs.plan.host import (
    MemoryPlan,
    components_needs,
    expect_code,
    plan_memory,
    search_needs,
    spill_folder,
    unbounded_plan,
)
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.kernels.compiling import Code


def decide(
    graph: StoredGraph, *, from_largest: bool, parents: bool, settings: Settings
) -> list[MemoryPlan]:
    """Return the memory plan of each search, that of the one with levels last.

    Raises
    ------
    BudgetError
        If one of them does not fit; says how much is enough for both.
    """
    searches: list[Callable[[], MemoryPlan]] = [lambda: decide_bfs(graph, parents, settings)]
    if from_largest:
        searches.insert(0, lambda: decide_components(graph, settings.for_largest()))
    plans, errors = [], []
    for search in searches:
        try:
            plans.append(search())
        except BudgetError as error:
            errors.append(error)
    if errors:
        raise max(errors, key=lambda error: error.needed_bytes or 0)
    return plans


def decide_bfs(graph: StoredGraph, parents: bool, settings: Settings) -> MemoryPlan:
    """Decide what stays in memory, and with a budget on the engine too; see ``plan.host``."""
    graph.expect_unpacking()
    if not settings.on_host:
        return unbounded_plan(graph, settings.engine)
    from oocbfs.search.code import search_code

    expect_code(graph.path, search_code(graph, parents, settings), settings.memory)
    _load_unpacking(graph)
    bfs.load()
    threads = available_threads(settings.threads)
    needs = search_needs(graph, with_parents=parents, validate=settings.checks, threads=threads)
    return plan_memory(graph, needs, settings, load_disk)


def decide_components(graph: StoredGraph, settings: Settings) -> MemoryPlan:
    """Decide the same for components."""
    graph.expect_unpacking()
    if settings.on_device and settings.memory is not None:
        raise QueryError(f"the {settings.engine} engine keeps to no memory budget: leave it out")
    if not settings.on_host:
        return unbounded_plan(graph, settings.engine)
    from oocbfs.kernels.components import connect
    from oocbfs.search.code import components_code

    expect_code(graph.path, components_code(graph, settings), settings.memory)
    _load_unpacking(graph)
    connect.load()
    needs = components_needs(graph, validate=settings.checks)
    return plan_memory(graph, needs, settings, _load_disk_components)


def decide_distances(
    graph: AnyStored, settings: Settings, codes: Iterable[Code], num_sources: int
) -> MemoryPlan:
    """Decide what distances of a whole graph may take beside its searches, before any work.

    Searches come first: what is left of a budget is half for their caches, and half for arrays.
    """
    if settings.memory is None or settings.on_device or graph.is_sharded:
        return MemoryPlan()
    graph = cast("StoredGraph", graph)
    graph.expect_unpacking()
    # While little is loaded, there is room to compile.
    codes = list(codes)
    others = _distances_code(graph, settings, settings.memory)
    expect_code(graph.path, [*codes, *others], settings.memory)
    _load_unpacking(graph)
    bfs.load()
    for code in codes:
        call(code.module, code.function)
    threads = available_threads(settings.threads)
    needs = distances_needs(graph, threads=threads, num_sources=num_sources)
    plan = plan_memory(graph, needs, settings, load_disk)
    free_bytes = (settings.memory - plan.needed_bytes) // 2
    return replace(plan, arrays=ResultArrays(free_bytes, settings.tmp or spill_folder(graph)))


def _distances_code(graph: StoredGraph, settings: Settings, budget_bytes: int) -> Iterable[Code]:
    from oocbfs.disk import many as disk
    from oocbfs.search.code import components_code, many_code, search_code
    from oocbfs.search.strong import CODE

    yield from components_code(graph, settings)
    yield from CODE if graph.directed else ()
    yield from search_code(graph, False, settings)
    if graph.sizes.file_bytes + graph.sizes.unpacked_bytes <= budget_bytes:
        yield from many_code(graph, "levels", settings)
    if settings.engine != "cpu":
        yield from map(disk.code, disk_plan.WIDTHS)


def _load_unpacking(graph: StoredGraph) -> None:
    if graph.sizes.has_frames:
        unpacking.load()


def load_disk() -> None:
    """Compile the kernels of the engine that reads from disk, or load them from the cache."""
    from oocbfs.disk import bfs

    bfs.load()


def _load_disk_components() -> None:
    from oocbfs.disk import components

    components.load()
