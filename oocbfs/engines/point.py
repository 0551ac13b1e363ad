"""Only what is touched, one thread: small reaches, from tables instead of arrays of all vertices.

A search that reaches much goes over to an engine that is made for that; see ``point.reached`` for
the bound. Paths between two vertices are not asked for here: see ``point.ask``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from oocbfs.engines.base import Engine, ReachesTooMuch
from oocbfs.kernels.compiling import clock
from oocbfs.plan.host import MemoryPlan
from oocbfs.point.reached import ReachedSet, ReachSearch
from oocbfs.query import ById, Output, Query, Reached, Run
from oocbfs.results.to_ids import check_parents
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph


class _Point(Engine):
    def refusal(self, graph: StoredGraph, settings: Settings) -> str | None:
        if graph.is_sharded:
            return f"{graph.path}: a sharded graph knows no --engine point: leave it out"
        return None

    def needs(self, graph: StoredGraph, settings: Settings) -> MemoryPlan:
        """Say what a small reach takes: nothing beforehand."""
        graph.expect_unpacking()
        return MemoryPlan(self.name)

    def run(self, graph: StoredGraph, query: Query, out: Output, settings: Settings) -> Run:
        if query.parents:
            check_parents(graph)
        start = clock()
        found = None
        if query.direction != "bottom-up":
            found = ReachSearch(graph, settings).search(query)
        if found is None:
            raise ReachesTooMuch
        seconds = clock() - start
        sizes = np.bincount(found.levels).astype(np.int64)
        arcs = int(graph.degrees_at(found.vertices).sum(dtype=np.int64))
        by_id = ById(None, None, Reached(sizes, arcs), clock() - start - seconds)
        moved = {"disk": found.disk_bytes} if found.from_disk else {}
        records = found.log.records
        depth, reached = int(records["num_levels"].sum()), ReachedSet(graph, found)
        return Run(self.name, 1, depth, seconds, records, moved, by_id=by_id, kept=reached)


ENGINES = {"point": _Point("point")}
