"""What Python programs hold edges in: told by what the objects can do, and who made them."""

from __future__ import annotations

from typing import Any

from oocbfs.errors import QueryError
from oocbfs.formats.edges import EdgeStream
from oocbfs.formats.readers.memory_edges import IgraphEdges, MemoryEdges, NetworkxEdges
from oocbfs.formats.tables.columns import TableOptions


def from_memory(edges: Any, options: TableOptions) -> EdgeStream:  # noqa: ANN401
    """Make an edge stream of a table, a graph, arrays or a matrix."""
    makers = {kind.__module__.split(".")[0] for kind in type(edges).__mro__}
    if makers & {"pandas", "dask"} and hasattr(edges, "columns"):
        from oocbfs.formats.tables.frames import FrameEdges

        return FrameEdges(edges, options)
    if hasattr(edges, "__arrow_c_stream__"):
        from oocbfs.formats.tables.arrow import ArrowEdges

        return ArrowEdges(edges, options)
    if options.given():
        raise QueryError(f"{options.given()[0]} is for tables, not for a {type(edges).__name__}")
    if "networkx" in makers and hasattr(edges, "is_directed"):
        return NetworkxEdges(edges)
    if "igraph" in makers and hasattr(edges, "is_directed"):
        return IgraphEdges(edges)
    if "polars" in makers and hasattr(edges, "collect"):
        raise QueryError("a LazyFrame holds no edges yet: give what its collect() gives")
    return MemoryEdges(edges)
