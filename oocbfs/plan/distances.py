"""Plan the memory of distances of a whole graph: searches come first, the rest may go to files.

Bounds, degrees and estimates of all vertices are only ever gone along, so that they live in mapped
files where they have no room; what is beside them while something is searched is counted here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from oocbfs.arrays import PIECE
from oocbfs.plan.host import Needs, components_needs, search_needs

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

# Of an element of a piece that is gone along: copies, and what chooses among them.
_PIECE_BYTES = 40
# What searches leave behind that went before, of each direction: stacks, code, what malloc does not
# give back. 3 to 6 MB were seen.
_LEFT_BYTES = 8 << 20
# Of a source: its position, how many vertices it reaches, two sums and its depth.
_SOURCE_BYTES = 40


def distances_needs(graph: StoredGraph, *, threads: int, num_sources: int) -> Needs:
    """Return what searches take beside what they say of all vertices, and what finds components."""
    n = graph.num_vertices
    needs = search_needs(graph, with_parents=False, validate=False, threads=threads)
    components = components_needs(graph, validate=False)
    # The levels that were handed out last; of a directed graph also those of the way back, and
    # before that labels and marks of the strong components.
    beside_bytes = _PIECE_BYTES * min(n, PIECE) + n + 6 * n * graph.directed
    beside_bytes += _SOURCE_BYTES * num_sources + _LEFT_BYTES * (1 + graph.directed)
    # The graph turned around unpacks for itself; from disk, both unpack degrees and order.
    turned_bytes = graph.sizes.unpacked_bytes * graph.directed
    mapped_bytes = max(needs.mapped_bytes + beside_bytes + turned_bytes, components.mapped_bytes)
    beside_bytes += 8 * n * graph.sizes.has_frames * (1 + graph.directed)
    held_bytes = needs.held_bytes + beside_bytes
    least_bytes = needs.disk_bytes + beside_bytes
    return replace(
        needs,
        what="finding distances",
        mapped_bytes=mapped_bytes,
        held_bytes=held_bytes + max(0, components.disk_bytes - least_bytes),
    )
