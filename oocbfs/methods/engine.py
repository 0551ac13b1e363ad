"""Traverse a graph by a method of the papers, on a GPU or in the emulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from oocbfs.gpu.engine import fill, follow_schedule
from oocbfs.gpu.load import make_device
from oocbfs.kernels.methods.axes import MethodOptions
from oocbfs.methods.choice import parse_method
from oocbfs.methods.programs import make_program
from oocbfs.methods.run import SECTOR_BYTES
from oocbfs.methods.search import MethodResult, MethodSearch
from oocbfs.progress import Phases
from oocbfs.results.bfs import BfsOutcome, Task
from oocbfs.results.counts import sum_counts
from oocbfs.results.levels import Level
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph


def on_device(graph: StoredGraph, task: Task, settings: Settings) -> BfsOutcome:
    """Fill levels and parents of stored vertices."""
    choice = parse_method(settings.method)
    program = make_program(choice, with_parents=task.with_parents)

    def load() -> MethodSearch:
        phases = Phases(show=settings.progress)
        options = MethodOptions(with_parents=program.with_parents)
        device = make_device(settings.engine, options, program.kernels, phases, counted=True)
        return MethodSearch(device, choice, program, graph.rows, graph.in_rows)

    key = (settings.engine, str(choice), task.with_parents)
    with graph.kept_search.use(key, load) as search:
        follow_schedule(search.device, settings)
        done, seconds = fill(graph, search, task, settings)
    records = _fit(list(_records(done)), done.depth)
    moved = sum(record.slow_bytes.get("host", 0) for record in records)
    by_tier = {"host": moved} if any(record.slow_bytes for record in records) else {}
    return BfsOutcome(done.depth, seconds, records, by_tier, around=done.around)


def _records(done: MethodResult) -> Iterator[Level]:
    for step, duplicates, seconds in zip(done.steps, done.duplicates, done.seconds, strict=True):
        counts = replace(step.counts, duplicates=duplicates)
        sectors = counts.pcie_sectors
        yield Level(
            direction=step.kind,
            frontier=0,  # known when all levels are
            edges_examined=counts.edges_examined,
            heads_answered=0,
            tail_bytes=0,
            seconds=seconds,
            slow_bytes={} if sectors is None else {"host": SECTOR_BYTES * sectors},
            counts=counts,
        )


def _fit(records: list[Level], depth: int) -> list[Level]:
    """Bring steps and levels together: the last record takes what is left of either.

    Methods that contract first, or go on until nothing changes, need a step more than there are
    levels; passes that find several levels need fewer.
    """
    kept, rest = records[: max(1, depth)], records[max(1, depth) :]
    if rest:
        last = kept[-1]
        together = [last, *rest]
        kept[-1] = replace(
            last,
            edges_examined=sum(record.edges_examined or 0 for record in together),
            seconds=sum(record.seconds for record in together),
            slow_bytes=_added(together),
            counts=sum_counts(record.counts for record in together if record.counts is not None),
        )
    if kept and depth > len(kept):
        kept[-1] = replace(kept[-1], num_levels=depth - len(kept) + 1)
    return kept


def _added(records: list[Level]) -> dict[str, int]:
    tiers = {tier for record in records for tier in record.slow_bytes}
    return {tier: sum(record.slow_bytes.get(tier, 0) for record in records) for tier in tiers}
