"""Plan the memory of searches from many sources: how many at a time, and from where.

As for one source, a graph whose file is within the budget is searched from its mapping, if the
arrays have room too: 64 sources at a time, or else one per core. Otherwise tails stay on disk, and
as many sources share what is read as their words have room: 64, 32, 16 or 8, or else one after the
other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from oocbfs.errors import BudgetError, QueryError
from oocbfs.formats.io.ordered import available_threads
from oocbfs.kernels.many import search as kernels
from oocbfs.memory import expect_addresses, format_size, parse_size
from oocbfs.plan import disk
from oocbfs.plan.device import parse_resident
from oocbfs.plan.host import PIECE_BYTES, fast_bytes, mapping_bytes, plan_memory, search_needs
from oocbfs.settings import Emit, Engine, ManyEngine, Settings, Strategy, check_choice

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

# Graphs with more levels are long and thin: their frontiers hardly overlap.
DEEP = 64


@dataclass(frozen=True)
class DiskShare:
    """What searches from disk may take: sources at a time, and memory all in all."""

    width: int
    budget_bytes: int


@dataclass(frozen=True)
class ManyPlan:
    """How to search: rows of levels at a time on the mapping, from disk, or on a device."""

    strategy: Strategy
    threads: int
    reason: str = "it was asked for"
    rows_at_once: int = kernels.WIDTH
    disk: DiskShare | None = None
    engine: Engine = "cpu"
    vram: str | int | None = None
    resident_tails: str | int | None = None
    # Sources that run one per core at a time, if a graph turns out to be too deep; None is all
    # threads.
    most_alone: int | None = None
    # Levels are found in any case, and checked.
    checks: bool = False
    bounded: bool = False

    def found(self, emit: Emit) -> Emit:
        """Return what has to be found of each source so that this can be given."""
        return "levels" if self.checks else emit


def _check_bytes(graph: StoredGraph, plan: ManyPlan) -> int:
    """Count what a check takes: levels as whole numbers, and marks."""
    return (8 * graph.num_vertices + PIECE_BYTES) if plan.checks else 0


class Loaders(NamedTuple):
    """Load the engines: on the mapping, from disk for one source, and for so many at a time."""

    mapped: Callable[[], object]
    single: Callable[[], object]
    many: Callable[[int], object]


def plan_many(
    graph: StoredGraph, emit: Emit, strategy: Strategy, settings: Settings, loaders: Loaders
) -> ManyPlan:
    """Decide how searches keep within a budget for the whole process.

    Raises
    ------
    QueryError
        If something is asked for that there is not, or a device is to keep to a budget of host
        memory.
    BudgetError
        If nothing fits; says how much would.
    """
    check_choice("emit", emit, Emit)
    check_choice("strategy", strategy, Strategy)
    check_choice("engine", settings.engine, ManyEngine)
    if settings.vram is not None:
        parse_size(settings.vram)
    if settings.resident_tails is not None:
        parse_resident(settings.resident_tails, graph.sizes.tail_bytes)
    budget_bytes = settings.memory
    plan = ManyPlan(
        strategy,
        available_threads(settings.threads),
        checks=settings.checks,
        bounded=budget_bytes is not None,
        vram=settings.vram,
        resident_tails=settings.resident_tails,
    )
    emit = plan.found(emit)
    bytes_each = kernels.bytes_per_vertex(plan.threads, levels=emit != "summary")
    if emit == "levels":
        bytes_each += 2 * kernels.WIDTH
    expect_addresses(graph.sizes.file_bytes + bytes_each * graph.num_vertices)
    if budget_bytes is None:
        return replace(plan, engine=settings.engine)
    if settings.on_device:
        raise QueryError(f"the {settings.engine} engine keeps to no memory budget: leave it out")
    if mapping_bytes(graph) <= budget_bytes:
        loaders.mapped()
        free_bytes = budget_bytes - mapping_bytes(graph) - _check_bytes(graph, plan)
        if emit == "levels" and graph.is_reordered:
            free_bytes -= 4 * graph.num_vertices  # the stored vertices of positions
        mapped = from_mapping(graph.num_vertices, emit, free_bytes, plan)
        if mapped is not None:
            return mapped
    return _from_disk(graph, emit, budget_bytes, plan, loaders)


def from_mapping(n: int, emit: Emit, free_bytes: int, plan: ManyPlan) -> ManyPlan | None:
    """Fit the arrays beside the mapping: fewer rows of levels at a time, then no sharing."""
    together = n * kernels.bytes_per_vertex(plan.threads, levels=emit != "summary")
    rows = kernels.WIDTH
    if emit == "levels":
        # The caller may hold on to one block of rows while the next one is filled.
        rows = min(rows, (free_bytes - together) // max(1, 2 * n))
    # Results wait in line while others are under way.
    alone = n * (17 if emit == "summary" else 26)
    at_once = free_bytes // max(1, alone) - 2
    if plan.strategy != "one-per-core" and rows > 0 and together <= free_bytes:
        return replace(plan, rows_at_once=rows, most_alone=max(1, at_once))
    if plan.strategy == "together" or at_once < 1:
        return None
    reason = plan.reason
    if plan.strategy == "auto":
        reason = f"searching 64 at a time takes {format_size(together)}"
    return replace(plan, strategy="one-per-core", reason=reason, most_alone=at_once)


def _from_disk(
    graph: StoredGraph, emit: Emit, budget_bytes: int, plan: ManyPlan, loaders: Loaders
) -> ManyPlan:
    """Fit the words beside heads and starts, which are loaded here if they have room."""
    # What does not fit one source fits no group of them.
    needs = search_needs(graph, with_parents=False, validate=False, threads=plan.threads)
    plan_memory(graph, needs, Settings(engine="disk", memory=budget_bytes), loaders.single)
    graph.disk_rows.load()
    non_isolated = graph.num_non_isolated

    def needed(width: int) -> int:
        needed_bytes = fast_bytes(graph) + disk.MANY_BYTES + disk.words_bytes(non_isolated, width)
        needed_bytes += _check_bytes(graph, plan)
        needed_bytes += disk.scratch_bytes(plan.threads) * graph.sizes.has_framed_tails
        if emit != "summary":
            # Levels of a byte, which are written at random: in files they would be read again and
            # again. A row in the order of the ids, and the one that the caller holds, come later.
            needed_bytes += (width + 2) * graph.num_vertices
        if emit == "levels" and graph.is_reordered:
            needed_bytes += 4 * graph.num_vertices  # pages of the order
        return needed_bytes

    for width in disk.WIDTHS if plan.strategy != "one-per-core" else ():
        if needed(width) <= budget_bytes:
            loaders.many(width)  # which takes memory too
        if needed(width) <= budget_bytes:
            return replace(plan, disk=DiskShare(width, budget_bytes))
    width = min(disk.WIDTHS)
    if plan.strategy == "together":
        raise BudgetError(
            f"{graph.path}: {format_size(budget_bytes)} are not enough "
            f"for {width} sources at a time: allow {format_size(needed(width))}"
        )
    if plan.strategy == "auto":
        plan = replace(plan, strategy="one-per-core", reason=f"not even {width} have room")
    return replace(plan, disk=DiskShare(width, budget_bytes))
