"""The sharded graph that users open: the same questions as to a graph in one file."""

from __future__ import annotations

import os
from typing import Any

from oocbfs.cluster.stored_shards import StoredShards
from oocbfs.errors import QueryError
from oocbfs.search.any_graph import AnyGraph


class ShardedGraph(AnyGraph):
    """A sharded graph, opened by ``oocbfs.open``; ``cluster`` says where its shards are searched.

    None is this process, ``"local:4"`` processes of this machine.
    """

    _stored: StoredShards

    def __reduce__(self) -> tuple[Any, ...]:
        path, stored = os.path.abspath(self.path), self._stored
        return _open_again, (path, stored.budget_bytes, stored.cluster, stored.checksum)

    @property
    def cluster(self) -> str | None:
        """Where its shards are searched; None is this process."""
        return self._stored.cluster

    @property
    def num_shards(self) -> int:
        """Number of its shards."""
        return self._stored.num_shards

    def reversed(self) -> ShardedGraph:
        """Refuse: shards hold the in-neighbours of their own vertices only."""
        raise QueryError(
            f"{self.path}: is in shards: turn around the graph that they were cut from"
        )

    def release_device(self) -> None:
        """Let go of the shards, wherever they are, and of what devices hold of them."""
        self._stored.release_device()


def open_sharded(
    folder: str | os.PathLike[str],
    *,
    memory: str | int | None = None,
    cluster: str | None = None,
) -> ShardedGraph:
    """Open a sharded graph, and nothing else; see ``oocbfs.open``."""
    return ShardedGraph(StoredShards(folder, memory, cluster))


def _open_again(
    folder: str, memory: int | None, cluster: str | None, checksum: int
) -> ShardedGraph:
    """Open a sharded graph that was pickled."""
    return ShardedGraph(StoredShards(folder, memory, cluster).check_same(checksum))
