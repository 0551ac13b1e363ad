"""Plan for a graph that does not exist yet: what its file, its conversion and a search will take.

Bounds are those that conversions and searches keep to. What is likely is what was measured on
another graph, and seconds are assumed to grow with the edges: see MODEL.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from oocbfs.conversion.disk import DiskNeed
from oocbfs.conversion.plan import least_budget
from oocbfs.errors import QueryError
from oocbfs.formats.container.layout import MAX_VERTICES
from oocbfs.formats.io.limits import MAX_SHARDS
from oocbfs.graph.sizes import Sizes
from oocbfs.plan.host import fast_bytes, mapping_bytes, search_needs
from oocbfs.plan.messages import BYTES_PER_ARC, Machines, plan_messages, uniform_frontiers

# Of 902 million edges of text in 127 s, and of a search of 3.6 billion arcs from disk in 3 s.
_EDGES_PER_SECOND = 902e6 / 127
_ARCS_PER_SECOND = 3.6e9 / 3.0
MODEL = (
    "Bounds: vertices and edges as described, ids that are numbers from 0 on. "
    "Measured: 2.4 bytes an arc, of a power law of Friendster's size without frames; 7.1 million "
    "edges a second from text and 1.2 billion arcs a second of a search from disk, both on 2 cores "
    "with memory for all tables. Assumed: that seconds grow with the edges, that the disk keeps "
    "up, that an order by degree pays, and that levels are those of a random graph."
)


@dataclass(frozen=True)
class Described:
    """A graph of which only this is known, with what ``plan.host`` asks of one that is open."""

    num_vertices: int
    num_edges: int
    directed: bool
    # As it would be converted, and opened within a budget.
    is_reordered, has_disk_rows = True, False
    budget_bytes = disk_rows_bytes = 0

    @property
    def num_arcs(self) -> int:
        """Arcs that a search may look at: an edge without a direction is two."""
        return self.num_edges * (1 if self.directed else 2)

    @property
    def fast_bytes(self) -> int:
        """Bytes of heads and starts, of both directions."""
        return 8 * self.num_vertices * (2 if self.directed else 1)

    @property
    def file_bytes(self) -> int:
        """Bytes of its file, as they were measured elsewhere."""
        sides = 2 if self.directed else 1
        return int(BYTES_PER_ARC * self.num_arcs * sides)

    @property
    def sizes(self) -> Sizes:
        """The same by section, as far as it is known."""
        rows = self.file_bytes - self.fast_bytes
        return Sizes(
            file_bytes=self.file_bytes,
            fast_bytes=self.fast_bytes,
            ids_bytes=0,
            tail_bytes=rows,
            graph_bytes=rows,
            unpacked_bytes=0,
            is_archive=False,
            has_frames=False,
            has_framed_tails=False,
        )


def plan_described(
    graph: Described, *, budget_bytes: int, bandwidth: float, threads: int
) -> dict[str, Any]:
    """Return what a graph will take within a budget for one process, and links of a bandwidth.

    Raises
    ------
    QueryError
        If no file can hold it.
    """
    check_limits(graph)
    need = DiskNeed(
        graph.num_edges,
        max(1, (graph.num_vertices - 1).bit_length()),
        max(1 << 20, budget_bytes - least_budget(0, directed=graph.directed)),
        directed=graph.directed,
        known_vertices=graph.num_vertices,
    )
    return {
        "vertices": graph.num_vertices,
        "edges": graph.num_edges,
        "arcs": graph.num_arcs,
        "directed": graph.directed,
        "memory_bytes": budget_bytes,
        "file_bytes": graph.file_bytes,
        "file_at_most_bytes": need.output_bytes,
        "convert": {
            "needed_bytes": least_budget(graph.num_vertices, directed=graph.directed),
            "disk_at_most_bytes": need.most_bytes,
            "seconds": graph.num_edges / _EDGES_PER_SECOND,
        },
        "search": _search(graph, budget_bytes, threads),
        "shards": _shards(graph, budget_bytes, bandwidth),
        "model": MODEL,
    }


def check_limits(graph: Described) -> None:
    """Refuse what the format cannot hold, and what is no graph."""
    if graph.num_vertices > MAX_VERTICES:
        raise QueryError(
            f"{graph.num_vertices:,} vertices are more than the {MAX_VERTICES:,} that a graph file "
            "holds, and shards of one, too: vertices are numbers of 32 bits"
        )
    most = graph.num_vertices * (graph.num_vertices - 1) // (1 if graph.directed else 2)
    if graph.num_edges > most:
        raise QueryError(
            f"{graph.num_edges:,} edges are more than the {most:,} that {graph.num_vertices:,} "
            "vertices have at most"
        )


def _search(graph: Described, budget_bytes: int, threads: int) -> dict[str, Any]:
    """Decide on the engine as a search does that has a budget."""
    needs = search_needs(graph, with_parents=False, validate=False, threads=threads)
    mapped_bytes = mapping_bytes(graph) + needs.mapped_bytes
    disk_bytes = fast_bytes(graph) + needs.disk_bytes
    engine = "cpu" if mapped_bytes <= budget_bytes else "disk"
    return {
        "engine": engine if min(mapped_bytes, disk_bytes) <= budget_bytes else None,
        "needed_bytes": mapped_bytes if engine == "cpu" else disk_bytes,
        "mapped_bytes": mapped_bytes,
        "seconds": graph.num_arcs / _ARCS_PER_SECOND,
    }


def _shards(graph: Described, budget_bytes: int, bandwidth: float) -> dict[str, Any] | None:
    """Return what machines hold and send: the least power of two of them that have room."""
    frontiers = uniform_frontiers(graph.num_vertices, graph.num_arcs)
    for workers in (2**k for k in range(1, MAX_SHARDS.bit_length())):
        found = plan_messages(
            graph.num_vertices,
            graph.num_arcs,
            frontiers,
            Machines(workers, bandwidth),
            graph.file_bytes,
        )
        held_bytes = sum(found.worker_bytes.values())
        if held_bytes <= budget_bytes:
            return {
                "workers": workers,
                "bandwidth": bandwidth,
                "worker_bytes": found.worker_bytes,
                "held_bytes": held_bytes,
                "exchanges": [asdict(exchange) for exchange in found.exchanges],
            }
    return None
