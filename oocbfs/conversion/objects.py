"""What Python programs hold edges in: told by what the objects can do, and who made them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from oocbfs.errors import QueryError
from oocbfs.formats.edges import EdgeStream, NamedEdgeStream
from oocbfs.formats.readers.memory_edges import IgraphEdges, MemoryEdges, NetworkxEdges
from oocbfs.formats.tables.columns import TableOptions
from oocbfs.formats.tables.memory_names import IgraphNames, MemoryNames, NetworkxNames
from oocbfs.graph.open_graph import OpenGraph

if TYPE_CHECKING:
    from oocbfs.formats.tables.arrow import ArrowEdges
    from oocbfs.formats.tables.frames import FrameEdges


def from_memory(edges: Any, options: TableOptions) -> EdgeStream:
    """Make an edge stream of a table, a graph, arrays or a matrix."""
    table = _table(edges, options, named=False)
    return _of_graph(edges, NetworkxEdges, IgraphEdges, MemoryEdges) if table is None else table


def names_from_memory(edges: Any, options: TableOptions) -> NamedEdgeStream:
    """Make a stream of edges between names of a table, a graph, pairs or arrays."""
    table = _table(edges, options, named=True)
    return _of_graph(edges, NetworkxNames, IgraphNames, MemoryNames) if table is None else table


def is_alone(edges: object) -> bool:
    """Return whether something is an input by itself, and no edge, row or column of one."""
    if isinstance(edges, (str, os.PathLike, OpenGraph)):
        return True
    return (
        _is_lazy(edges)
        or any(hasattr(edges, name) for name in ("__arrow_c_stream__", "tocoo", "batches"))
        or bool(_makers(edges) & {"pandas", "dask", "polars"} and hasattr(edges, "columns"))
        or any(_is_graph(edges, maker) for maker in ("networkx", "igraph"))
    )


def _of_graph(edges: Any, networkx: Any, igraph: Any, other: Any) -> Any:
    """Make a stream of a graph of networkx, of one of igraph, or of anything else."""
    if _is_graph(edges, "networkx"):
        return networkx(edges)
    return igraph(edges) if _is_graph(edges, "igraph") else other(edges)


def _table(edges: Any, options: TableOptions, *, named: bool) -> FrameEdges | ArrowEdges | None:
    """Make a stream of a table; None if it is none."""
    makers = _makers(edges)
    if makers & {"pandas", "dask"} and hasattr(edges, "columns"):
        from oocbfs.formats.tables.frames import FrameEdges

        return FrameEdges(edges, options, named=named)
    if _is_lazy(edges):
        from oocbfs.formats.tables.arrow import LazyEdges

        return LazyEdges(edges, options, named=named)
    if hasattr(edges, "__arrow_c_stream__"):
        from oocbfs.formats.tables.arrow import ArrowEdges

        return ArrowEdges(edges, options, named=named)
    if options.given():
        raise QueryError(f"{options.given()[0]} is for tables, not for a {type(edges).__name__}")
    return None


def _is_lazy(edges: object) -> bool:
    """Return whether something is a LazyFrame, which has no rows before it is asked."""
    return "polars" in _makers(edges) and hasattr(edges, "collect")


def _is_graph(edges: object, maker: str) -> bool:
    return maker in _makers(edges) and hasattr(edges, "is_directed")


def _makers(edges: object) -> set[str]:
    return {kind.__module__.split(".")[0] for kind in type(edges).__mro__}
