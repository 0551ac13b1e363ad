"""What a plan needs to know about a graph: sizes, and where some of its rows begin."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.kernels.rows import Rows

_SAMPLED_ROWS = 4096


class Tails(NamedTuple):
    """One direction's tails: their size, and the offsets of evenly spaced rows, row 0 first.

    ``num_rows`` counts all rows, not only those whose offsets are known.
    """

    num_bytes: int
    num_rows: int
    offsets: NDArray[np.int64]


@dataclass(frozen=True)
class Shape:
    """A graph as a plan sees it; ``tails`` are out and, if directed, in.

    ``on_disk`` says that tails can be read from the file as they are. ``num_results`` are all
    vertices, also those that take no part; 0 if results do not come from one device. They are
    ``ordered`` where stored vertices have another order than ids.
    """

    num_vertices: int
    shift: int
    tails: tuple[Tails, ...]
    on_disk: bool = True
    num_results: int = 0
    ordered: bool = False

    def of_rows(self) -> Shape:
        """Return the same for work that needs all tails in memory and gives no levels."""
        return replace(self, on_disk=False, num_results=0, ordered=False)

    @property
    def tail_bytes(self) -> int:
        """Bytes of all tails."""
        return sum(side.num_bytes for side in self.tails)


def shape_of(graph: StoredGraph, *, whole: bool = False) -> Shape:
    """Look at an open graph, up to its last non-isolated vertex or as a whole."""
    rows, in_rows = (graph.rows, graph.in_rows) if whole else graph.non_isolated_rows
    return Shape(
        num_vertices=rows.heads.size,
        shift=rows.shift,
        tails=tuple(map(tails_of, (rows, in_rows) if graph.directed else (rows,))),
        on_disk=not graph.sizes.unpacked_bytes,
        num_results=graph.num_vertices,
        ordered=graph.is_reordered,
    )


def tails_of(rows: Rows) -> Tails:
    """Look where some thousand rows begin."""
    sampled = np.linspace(0, rows.heads.size, _SAMPLED_ROWS, endpoint=False).astype(np.int64)
    offsets = rows.bases[sampled >> rows.shift] + rows.starts[sampled]
    return Tails(rows.tails.size, rows.heads.size, offsets.astype(np.int64))


def graph_bytes(graph: StoredGraph) -> int:
    """Sum up heads and tails, of both directions if there are two."""
    return sum(side.heads.nbytes + side.tails.nbytes for side in sides_of(graph))


def sides_of(graph: StoredGraph) -> list[Rows]:
    """Return the rows of out-neighbours and, if the graph is directed, of in-neighbours."""
    return [graph.rows, graph.in_rows] if graph.directed else [graph.rows]
