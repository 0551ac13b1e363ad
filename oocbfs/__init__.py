"""Breadth-first search on compressed graphs that need not fit in memory."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import TYPE_CHECKING, Any

from oocbfs.version import __version__

if TYPE_CHECKING:
    from oocbfs.cluster.sharding import shard
    from oocbfs.conversion.converter import convert
    from oocbfs.conversion.update import update
    from oocbfs.distances.distribution import DistanceDistribution
    from oocbfs.errors import (
        BudgetError,
        ClusterError,
        FileError,
        FormatError,
        InputError,
        OocbfsError,
        OutputError,
        QueryError,
        QueueError,
    )
    from oocbfs.near.result import Neighborhood
    from oocbfs.near.subgraph import Subgraph
    from oocbfs.point.pairs import PairResults
    from oocbfs.point.paths import ShortestPaths
    from oocbfs.results.bfs import BfsResult
    from oocbfs.results.components import ComponentsResult
    from oocbfs.results.source import SourceResult, SourceResults
    from oocbfs.search.any_graph import AnyGraph
    from oocbfs.search.graph import Graph, open
    from oocbfs.search.sharded import ShardedGraph
    from oocbfs.settings import LARGEST_COMPONENT, Schedule, Settings

__all__ = [
    "LARGEST_COMPONENT",
    "AnyGraph",
    "BfsResult",
    "BudgetError",
    "ClusterError",
    "ComponentsResult",
    "DistanceDistribution",
    "FileError",
    "FormatError",
    "Graph",
    "InputError",
    "Neighborhood",
    "OocbfsError",
    "OutputError",
    "PairResults",
    "QueryError",
    "QueueError",
    "Schedule",
    "Settings",
    "ShardedGraph",
    "ShortestPaths",
    "SourceResult",
    "SourceResults",
    "Subgraph",
    "__version__",
    "convert",
    "open",
    "shard",
    "update",
]

# Who imports the package decides what becomes of its messages.
logging.getLogger(__name__).addHandler(logging.NullHandler())

# Imported on first use: numba alone takes longer than `oocbfs --help` may.
_HOMES = {
    "AnyGraph": "search.any_graph",
    "BfsResult": "results.bfs",
    "BudgetError": "errors",
    "ClusterError": "errors",
    "ComponentsResult": "results.components",
    "DistanceDistribution": "distances.distribution",
    "FileError": "errors",
    "FormatError": "errors",
    "Graph": "search.graph",
    "InputError": "errors",
    "LARGEST_COMPONENT": "settings",
    "Neighborhood": "near.result",
    "OocbfsError": "errors",
    "OutputError": "errors",
    "PairResults": "point.pairs",
    "QueryError": "errors",
    "QueueError": "errors",
    "Schedule": "settings",
    "Settings": "settings",
    "ShardedGraph": "search.sharded",
    "ShortestPaths": "point.paths",
    "SourceResult": "results.source",
    "SourceResults": "results.source",
    "Subgraph": "near.subgraph",
    "convert": "conversion.converter",
    "open": "search.graph",
    "shard": "cluster.sharding",
    "update": "conversion.update",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'oocbfs' has no attribute {name!r}")
    if name in ("convert", "open", "shard", "update"):
        import_module("oocbfs.memory").expect_addresses()
    return getattr(import_module(f"oocbfs.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
