"""What a sharded search may take of the memory: results in memory, or in mapped files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from oocbfs import memory
from oocbfs.arrays import ResultArrays
from oocbfs.cluster.shard import ShardRef
from oocbfs.errors import BudgetError
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.reader import Container
from oocbfs.graph.sizes import Sizes
from oocbfs.plan.disk import SEARCH_BYTES, scratch_bytes
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.cluster.stored_shards import StoredShards

# Bitmaps that a driver holds: frontier, next frontier, visited, and marks of four threads at most.
_BITMAPS = 7


# Engines whose shards are on devices.
ON_DEVICES = ("cuda", "emulator")

# Bitmaps that a shard is given and makes in a step, coded or not.
_SHARD_BITMAPS = 3


def choose_shard_engine(container: Container, ref: ShardRef) -> str:
    """Choose where the tails of a shard are: in the mapped file, or on disk if that is too large.

    Raises
    ------
    BudgetError
        If neither has room; says how much is needed.
    """
    if ref.memory is None or ref.engine in ("cpu", *ON_DEVICES):
        return "cpu" if ref.engine == "auto" else ref.engine
    sizes = Sizes.of(container)
    bitmap_bytes = _SHARD_BITMAPS * (ref.num_vertices // 8 + 16)
    # Shards are of about the same size.
    mapped_bytes = (
        memory.used_bytes() + bitmap_bytes + ref.held * (sizes.file_bytes + sizes.unpacked_bytes)
    )
    if ref.engine == "auto" and mapped_bytes <= ref.memory:
        return "cpu"
    least_bytes = memory.used_bytes() + bitmap_bytes + sizes.fast_bytes + SEARCH_BYTES
    least_bytes += container.raw_bytes(Kind.DEGREES)
    least_bytes += scratch_bytes() * sizes.has_framed_tails
    if least_bytes > ref.memory:
        raise BudgetError(
            f"{ref.path}: a search needs {memory.format_size(least_bytes)} of memory and may take "
            f"{memory.format_size(ref.memory)}: allow more, or cut the graph into more shards"
        )
    return "disk"


def result_arrays(graph: StoredShards, settings: Settings) -> ResultArrays:
    """Return where results go, within the budget of this process if it has one.

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
            f"{graph.path}: a search needs {memory.format_size(least_bytes)} of memory here and "
            f"may take {memory.format_size(settings.memory)}: allow more"
        )
    return ResultArrays(settings.memory - least_bytes, settings.tmp or graph.spill_folder)
