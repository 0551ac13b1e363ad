"""What verbs that search share: opening a graph, and saying how it went."""

from __future__ import annotations

import argparse
import logging
import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from oocbfs.results.bfs import Stats
    from oocbfs.results.components import ComponentsStats
    from oocbfs.search.any_graph import AnyGraph

_log = logging.getLogger(__name__)


def open_graph(options: argparse.Namespace) -> AnyGraph:
    """Open a graph, in one file or in shards; both answer the same questions.

    What only one of them knows is refused where it is asked for.
    """
    from oocbfs.search import graph

    settings: dict[str, Any] = {
        name: value
        for name in ("memory", "cluster")
        if (value := getattr(options, name, None)) is not None
    }
    opened: AnyGraph = graph.open(options.graph, **settings)
    return opened


def is_sharded(options: argparse.Namespace) -> bool:
    """Return whether the graph is a folder of shards."""
    return os.path.isdir(options.graph)


class Stopwatch:
    """Counts the seconds since it was made, and those of compiling apart."""

    def __init__(self) -> None:
        from oocbfs.kernels.compiling import clock, compile_seconds

        self._clock, self._compile_seconds = clock, compile_seconds
        self._start, self._compiled = clock(), compile_seconds()

    def values(self) -> dict[str, float]:
        """Return both, for JSON."""
        compiling = self._compile_seconds() - self._compiled
        return {"seconds": self._clock() - self._start, "compile_seconds": compiling}


def compiling(seconds: float) -> Iterator[tuple[str, str]]:
    """Write how long compiling took, if anything was compiled."""
    if seconds:
        yield "compiling", f"{seconds:.6f} besides, once on this machine"


def durations(stats: Stats | ComponentsStats) -> Iterator[tuple[str, str]]:
    """Write how long a search took, with how many threads, on which engine, and its parts."""
    engine = f"{stats.threads} threads on the {stats.engine} engine"
    yield "seconds", f"{stats.seconds:.6f} with {engine}"
    parts = f"{stats.load_seconds:.6f} loading, {stats.search_seconds:.6f} searching"
    yield "of these", f"{parts}, {stats.to_ids_seconds:.6f} bringing results to ids"
    yield from compiling(stats.compile_seconds)


def tell_engine(stats: Stats | ComponentsStats) -> None:
    """Log why the CPU was used, if a GPU could have been, and why the disk."""
    tell_fallback(stats.fallback)
    if stats.engine_reason and stats.engine == "disk":  # a GPU has said it itself
        _log.info("reading from disk: %s", stats.engine_reason)


def tell_fallback(reason: str | None) -> None:
    """Log why the CPU was used, if a GPU could have been."""
    if reason:
        _log.warning("using the CPU: %s", reason)


def tell_written(*names: str | None) -> None:
    """Log which files were written."""
    for name in names:
        if name not in (None, "-"):
            _log.info("wrote %s", name)
