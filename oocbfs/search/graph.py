"""The graph in one file that users open: its searches, each imported when it is asked for."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, overload

from oocbfs.errors import QueryError
from oocbfs.graph.stored import StoredGraph, open_stored
from oocbfs.graph.vertices import Vertex
from oocbfs.search.any_graph import AnyGraph
from oocbfs.settings import Settings

# Opening a graph needs none of their kernels.
if TYPE_CHECKING:
    from oocbfs.search.sharded import ShardedGraph


class Graph(AnyGraph):
    """A graph in an ``.ocg`` file, opened by ``oocbfs.open``."""

    _stored: StoredGraph

    def __reduce__(self) -> tuple[Any, ...]:
        stored = self._stored
        if not stored.is_named:
            raise QueryError(f"{self.path}: has no file that another process could open")
        path = os.path.abspath(self.path)
        return _open_again, (path, stored.budget_bytes, stored.checksum, stored.is_reversed)

    def _largest(self, parents: bool, settings: Settings) -> Vertex:
        if settings.memory is not None and settings.on_host:
            from oocbfs.search.decision import decide

            with self._stored.reading():
                self._stored.expect_unpacking()
                decide(self._stored, from_largest=True, parents=parents, settings=settings)
        return super()._largest(parents, settings)

    def reversed(self) -> Graph:
        """Open the same graph with every edge turned around; it is closed by itself."""
        return Graph(self._stored.reversed())

    def release_device(self) -> None:
        """Release what a GPU holds of the graph, and what is pinned for it."""
        self._stored.release_device()


@overload
def open(
    path: str | os.PathLike[str], *, memory: str | int | None = None, cluster: str
) -> ShardedGraph: ...
@overload
def open(
    path: str | os.PathLike[str], *, memory: str | int | None = None, cluster: None = None
) -> AnyGraph: ...
def open(
    path: str | os.PathLike[str], *, memory: str | int | None = None, cluster: str | None = None
) -> AnyGraph:
    """Open a graph for reading: a file, or the folder of a sharded graph.

    Parameters
    ----------
    path
        The file, or the folder.
    memory
        Bound for the process while it searches, as ``"4G"``; see ``AnyGraph.bfs``.
    cluster
        Where the shards of a graph are searched, such as ``"local:4"``: four processes of this
        machine. None is this process.

    Raises
    ------
    FormatError
        If the file is not a graph, is damaged, or comes from another version.
    """
    if os.path.isdir(path):
        from oocbfs.search.sharded import open_sharded

        return open_sharded(path, memory=memory, cluster=cluster)
    graph = open_file(path, memory=memory)
    if cluster is not None:
        graph.close()
        raise QueryError(
            f"{graph.path}: is in one file, and a cluster wants shards: cut it with 'oocbfs shard'"
        )
    return graph


def open_file(path: str | os.PathLike[str], *, memory: str | int | None = None) -> Graph:
    """Open a graph in one file, and nothing else; see ``open``."""
    return Graph(open_stored(path, memory=memory))


def _open_again(path: str, memory: int | None, checksum: int, is_reversed: bool) -> Graph:
    """Open a graph that was pickled."""
    stored = open_stored(path, memory=memory).check_same(checksum)
    return Graph(stored.reversed() if is_reversed else stored)
