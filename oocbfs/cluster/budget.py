"""What a search in parts may take of the memory: results in memory, or in mapped files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oocbfs import memory
from oocbfs.arrays import ResultArrays
from oocbfs.errors import BudgetError
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.cluster.graph import ShardedGraph

# Bitmaps that a driver holds: frontier, next frontier, visited, what is useless, and one to merge.
_BITMAPS = 6


def result_arrays(graph: ShardedGraph, *, parents: bool, settings: Settings) -> ResultArrays:
    """Say where results go, within the budget of this process if it has one.

    Raises
    ------
    BudgetError
        If not even the bitmaps of a search have room; says how much they need.
    """
    if settings.memory is None:
        return ResultArrays(pool=graph.result_pool)
    # Levels are bytes meanwhile.
    least_bytes = memory.used_bytes() + graph.num_vertices
    least_bytes += _BITMAPS * (graph.num_vertices // 8 + 16)
    if least_bytes > settings.memory:
        raise BudgetError(
            f"{graph.path}: a traversal needs {memory.format_size(least_bytes)} of memory here and "
            f"may take {memory.format_size(settings.memory)}: allow more"
        )
    return ResultArrays(settings.memory - least_bytes, settings.tmp or graph.spill_folder)
