"""All cores, straight from the mapped file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.engines.base import Engine
from oocbfs.errors import FormatError
from oocbfs.formats.io.ordered import available_threads
from oocbfs.kernels.bfs import search as kernels
from oocbfs.kernels.compiling import clock
from oocbfs.query import ById, Output, Query, Reached, Run
from oocbfs.results.to_ids import check_parents
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.results.components import ComponentsRun

_NO_ORDER = np.empty(0, np.uint32)
_NO_IDS = np.empty(0, np.uint64)
DIRECTIONS = {
    "auto": kernels.AUTO,
    "top-down": kernels.TOP_DOWN,
    "bottom-up": kernels.BOTTOM_UP,
}


def limits_of(query: Query) -> dict[str, int]:
    """Return where a search stops and which way it goes, as compiled code takes it."""
    return {
        "direction": DIRECTIONS[query.direction],
        "max_depth": -1 if query.max_depth is None else query.max_depth,
        "target": -1 if query.target is None else query.target,
    }


def label_isolated(graph: StoredGraph, labels: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Label the vertices behind the last that has an edge, each alone; return the others'."""
    count = graph.num_non_isolated
    labels[count:] = np.arange(count, labels.size)
    return labels[:count]


class _Cpu(Engine):
    def run(self, graph: StoredGraph, query: Query, out: Output, settings: Settings) -> Run:
        kernels.load()
        # A budget has no room for an order of all vertices.
        by_id = settings.memory is None
        # Who searches a second time is likely to search a third time.
        decoded = by_id and graph.kept_scratch
        rows, in_rows = graph.decoded_rows if decoded else graph.non_isolated_rows
        if rows.heads.size < out.num_vertices and query.sources.max() >= rows.heads.size:
            rows, in_rows = graph.rows, graph.in_rows
        parents: NDArray[Any] | None = None
        if not by_id:
            parents = out.parents
        elif query.parents:
            check_parents(graph)
            parents = out.arrays.allocate(out.num_vertices, np.int64)
        start = clock()
        done = kernels.search(
            rows,
            in_rows,
            query.sources,
            out.levels,
            parents,
            to_ids=_to_ids(graph, query) if by_id else None,
            threads=out.threads,
            kept=graph.kept_scratch if by_id else None,
            **limits_of(query),
        )
        seconds = clock() - start
        if done.malformed:
            raise FormatError(f"{graph.path}: a row is damaged: run 'oocbfs verify'")
        run = Run(
            self.name, out.threads, done.depth, seconds - done.to_ids_seconds, done.records, {}
        )
        if not by_id:
            return run
        reached = Reached(done.sizes, done.edges)
        return run._replace(by_id=ById(out.levels, parents, reached, done.to_ids_seconds))

    def connect(
        self, graph: StoredGraph, labels: NDArray[np.uint32], settings: Settings
    ) -> ComponentsRun:
        from oocbfs.kernels.components import connect as components
        from oocbfs.results.components import ComponentsRun

        rows, in_rows = graph.non_isolated_rows
        components.load()
        threads = available_threads(settings.threads)
        start = clock()
        non_isolated = label_isolated(graph, labels)
        sides = rows, in_rows if graph.directed else None
        done = components.connect(*sides, non_isolated, threads=threads)
        seconds = clock() - start
        if done.malformed:
            raise FormatError(f"{graph.path}: a row is damaged: run 'oocbfs verify'")
        return ComponentsRun(self.name, threads, done.steps, seconds, {})


def _to_ids(graph: StoredGraph, query: Query) -> kernels.ToIds:
    """Return how stored vertices become positions and, for parents, ids."""
    ids = _NO_IDS if graph.listed_ids is None else graph.listed_ids
    first_id = graph.first_id if query.parents else 0
    if graph.order is None:
        return kernels.ToIds(_NO_ORDER, _NO_ORDER, ids, first_id)
    return kernels.ToIds(graph.stored_at, graph.order, ids, first_id)


ENGINES = {"cpu": _Cpu("cpu")}
