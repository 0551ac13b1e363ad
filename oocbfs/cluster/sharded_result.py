"""Results of a sharded search that stay as the driver has them, until somebody wants numbers.

A driver keeps a byte for each vertex, and four with parents, in the order of the file. Results
by id take four and eight more. Here they go to ids a range of positions at a time: to write them
in files, or to look at some.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import ResultArrays
from oocbfs.errors import QueryError, shown
from oocbfs.formats.edges import Ids
from oocbfs.formats.output.part_files import bounds_of, write_parts
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.results.later import LaterResult
from oocbfs.results.tables import dask_of_files
from oocbfs.results.to_ids import parents_to_ids

if TYPE_CHECKING:
    from oocbfs.cluster.results import AllResults
    from oocbfs.cluster.stored_shards import StoredShards

_PIECE = 1 << 20


class ShardedResult(LaterResult):
    """Levels of a sharded graph, not gathered; the graph must be open while they are asked for.

    ``levels`` and ``parents`` gather all of them, once.
    """

    _stored: StoredShards
    _found: AllResults

    @cached_property
    def parents(self) -> NDArray[np.int64]:
        """Id of each vertex's parent; see ``BfsResult.parents``."""
        stored = self._found.parents
        if not stored.size:
            return self._again().parents
        return parents_to_ids(self._stored, stored, ResultArrays(), self.stats.threads)

    @property
    def has_parents(self) -> bool:
        """Whether parents were asked for."""
        return bool(self._found.parents.size)

    def levels_between(self, first: int, stop: int) -> NDArray[np.int32]:
        """Levels at positions first … stop-1."""
        return self._found.levels_of(stored_between(self._stored, first, stop))

    def parents_between(self, first: int, stop: int) -> NDArray[np.int64]:
        """Parents at positions first … stop-1, as ids."""
        stored = self._found.parents
        if not stored.size:
            return self._again().parents[first:stop]
        found = stored[stored_between(self._stored, first, stop)]
        ids = np.full(found.size, -1, np.int64)
        known = found != NO_HEAD
        ids[known] = self._stored.ids_of(found[known]).astype(np.int64)
        return ids

    def _levels_of(self, ids: Ids) -> NDArray[np.int32]:
        stored = self._stored.stored(ids).astype(np.uint32)
        return self._found.levels_of(stored)

    def _parents_of(self, ids: Ids) -> Ids:
        parents = self._found.parents[self._stored.stored(ids)]
        return self._stored.ids_of(parents)

    def write_levels(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write levels into a folder with a file for each shard, such as ``levels.parquet/``.

        Raises
        ------
        OutputError
            If it exists, or cannot be written; then nothing is there.
        """
        self._write(path, "level", self.levels_between, force=force)

    def write_parents(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write parents into a folder, as ``write_levels`` does."""
        self._write(path, "parent", self.parents_between, force=force)

    def _write(
        self,
        path: str | os.PathLike[str],
        name: str,
        values_at: Callable[[int, int], NDArray[Any]],
        *,
        force: bool,
    ) -> None:
        write_parts(
            os.path.join(path, ""),
            self._stored.num_shards,
            name,
            self._stored.num_vertices,
            self._stored.id_column,
            values_at,
            as_column=self._stored.as_column if name == "parent" else lambda values: values,
            about=self.about(),
            threads=self.stats.threads,
            force=force,
        )

    def to_dask(self, chunk: int | str | os.PathLike[str] = "") -> Any:
        """Return the levels as a Dask array with a chunk for each shard.

        ``chunk`` is a folder that workers see and that is made here, such as ``"levels.npy/"``:
        whoever computes with a shard reads it there. This process never holds all levels.
        """
        if isinstance(chunk, int) or Path(chunk).suffix != ".npy":
            raise QueryError(
                f"{shown(chunk)}: levels that were not gathered need a folder that all workers "
                "see: name one that ends in .npy"
            )
        path = Path(chunk)
        self.write_levels(path)
        bounds = bounds_of(self._stored.num_vertices, self._stored.num_shards)
        sizes = [stop - first for first, stop in bounds]
        return dask_of_files(sorted(os.path.abspath(name) for name in path.iterdir()), sizes)


def stored_between(graph: StoredShards, first: int, stop: int) -> NDArray[np.uint32]:
    """Return the stored vertices at positions first … stop-1, without those of all others."""
    with graph.reading():
        if graph.order is None:
            return np.arange(first, stop, dtype=np.uint32)
        if "stored_at" in graph.__dict__:
            return graph.stored_at[first:stop]
        found = np.empty(stop - first, np.uint32)
        for begin in range(0, graph.num_vertices, _PIECE):
            positions = graph.order[begin : begin + _PIECE]
            inside = np.flatnonzero((positions >= first) & (positions < stop))
            found[positions[inside] - np.uint32(first)] = inside + begin
        return found
