"""The graph in parts that users open: the same questions as to a graph in one file."""

from __future__ import annotations

import os
from typing import Any

from oocbfs.cluster.stored_parts import StoredParts
from oocbfs.errors import QueryError
from oocbfs.search.any_graph import AnyGraph


class ShardedGraph(AnyGraph):
    """A graph in parts, opened by ``oocbfs.open``; ``cluster`` says where its parts are searched.

    None is this process, ``"local:4"`` processes of this machine.
    """

    _stored: StoredParts

    def __reduce__(self) -> tuple[Any, ...]:
        path, stored = os.path.abspath(self.path), self._stored
        return _open_again, (path, stored.budget_bytes, stored.cluster, stored.checksum)

    @property
    def cluster(self) -> str | None:
        """Where its parts are searched; None is this process."""
        return self._stored.cluster

    @property
    def num_parts(self) -> int:
        """Number of its parts."""
        return self._stored.num_parts

    def reversed(self) -> ShardedGraph:
        """Refuse: parts hold the in-neighbours of their own vertices only."""
        raise QueryError(f"{self.path}: is in parts: turn around the graph that they were cut from")

    def release_device(self) -> None:
        """Let go of the shards, wherever they are, and of what devices hold of them."""
        self._stored.release_device()


def open_parts(
    folder: str | os.PathLike[str],
    *,
    memory: str | int | None = None,
    cluster: str | None = None,
) -> ShardedGraph:
    """Open a graph in parts, and nothing else; see ``oocbfs.open``."""
    return ShardedGraph(StoredParts(folder, memory, cluster))


def _open_again(
    folder: str, memory: int | None, cluster: str | None, checksum: int
) -> ShardedGraph:
    """Open a graph in parts that was pickled."""
    return ShardedGraph(StoredParts(folder, memory, cluster).check_same(checksum))
