"""Search a graph by a method of the papers, on a GPU or in the emulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oocbfs.gpu.load import make_device
from oocbfs.gpu.search import fill, follow_schedule, run_of, timed
from oocbfs.kernels.methods.axes import MethodOptions
from oocbfs.methods.choice import MethodChoice
from oocbfs.methods.programs import make_program
from oocbfs.methods.search import MethodSearch
from oocbfs.progress import Phases
from oocbfs.query import Output, Query, Run
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph


def run_on_device(
    graph: StoredGraph, method: MethodChoice, query: Query, out: Output, settings: Settings
) -> Run:
    """Fill levels and parents of stored vertices."""
    program = make_program(method, with_parents=query.parents)

    def load() -> MethodSearch:
        phases = Phases(show=settings.progress)
        options = MethodOptions(with_parents=program.with_parents)
        device = make_device(settings.engine, options, program.kernels, phases, counted=True)
        return MethodSearch(device, method, program, graph.rows, graph.in_rows)

    key = (settings.engine, str(method), query.parents)
    with graph.kept_search.use(key, load) as search:
        follow_schedule(search.device, settings)
        done, seconds = timed(graph, search.run, query)
        fill(out, done)
    return run_of(settings.engine, done, seconds)
