"""What the vertices of a graph are called in networkx: any hashable objects, in their order."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

Node = Hashable
Positions = NDArray[np.integer[Any]]
_PIECE = 1 << 16


class NodeNames(ABC):
    """Nodes by their position, and positions by their node."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def position(self, node: Node) -> int | None:
        """Return the position of a node, None if there is none; what cannot be a node raises."""

    @abstractmethod
    def nodes(self, positions: Positions) -> list[Any]:
        """Return the nodes at some positions."""


def name_nodes(nodes: list[Node]) -> NodeNames:
    """Name vertices by the nodes of a graph, in their order."""
    if set(map(type, nodes)) <= {int} and nodes == list(range(len(nodes))):
        return Consecutive(0, len(nodes))
    return Objects(nodes)


def name_ids(graph: StoredGraph) -> NodeNames:
    """Name vertices by the ids of a file, or by its names."""
    if graph.names is not None:
        return Named(graph)
    if graph.listed_ids is None:
        return Consecutive(graph.first_id, graph.num_vertices)
    return Listed(graph)


def all_nodes(names: NodeNames) -> Iterator[Any]:
    """Yield all nodes in their order."""
    for first in range(0, len(names), _PIECE):
        yield from names.nodes(np.arange(first, min(first + _PIECE, len(names))))


class Consecutive(NodeNames):
    """Whole numbers from a first one on."""

    def __init__(self, first: int, count: int) -> None:
        self._first = first
        self._count = count

    def __len__(self) -> int:
        return self._count

    def position(self, node: Node) -> int | None:
        """Return the position of a node, None if there is none."""
        number = _whole(node)
        known = number is not None and 0 <= number - self._first < self._count
        return number - self._first if number is not None and known else None

    def nodes(self, positions: Positions) -> list[Any]:
        """Return the nodes at some positions."""
        return list((positions.astype(np.uint64) + np.uint64(self._first)).tolist())


class _OfFile(NodeNames):
    """What a file calls its vertices."""

    def __init__(self, graph: StoredGraph) -> None:
        self._graph = graph

    def __len__(self) -> int:
        return self._graph.num_vertices


class Listed(_OfFile):
    """The ids of a file, where they are not consecutive."""

    def position(self, node: Node) -> int | None:
        """Return the position of a node, None if there is none."""
        number = _whole(node)
        if number is None or not 0 <= number < 2**64:
            return None
        with self._graph.reading():
            listed = self._graph.listed_ids
            assert listed is not None
            place = int(np.searchsorted(listed, np.uint64(number)))
            return place if place < listed.size and int(listed[place]) == number else None

    def nodes(self, positions: Positions) -> list[Any]:
        """Return the nodes at some positions."""
        with self._graph.reading():
            listed = self._graph.listed_ids
            assert listed is not None
            return list(listed[positions].tolist())


class Named(_OfFile):
    """The names of a file, which are strings."""

    def position(self, node: Node) -> int | None:
        """Return the position of a node, None if there is none."""
        hash(node)
        if not isinstance(node, str):
            return None
        assert self._graph.names is not None
        place = int(self._graph.names.find([node])[0])
        return place if place >= 0 else None

    def nodes(self, positions: Positions) -> list[Any]:
        """Return the nodes at some positions."""
        assert self._graph.names is not None
        return list(self._graph.names.take(positions))


class Objects(NodeNames):
    """Any hashable objects."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._positions = {node: position for position, node in enumerate(nodes)}

    def __len__(self) -> int:
        return len(self._nodes)

    def position(self, node: Node) -> int | None:
        """Return the position of a node, None if there is none."""
        return self._positions.get(node)

    def positions(self, nodes: Iterator[Node], count: int) -> NDArray[np.int64]:
        """Find the positions of nodes that are there."""
        return np.fromiter(map(self._positions.__getitem__, nodes), np.int64, count)

    def nodes(self, positions: Positions) -> list[Any]:
        """Return the nodes at some positions."""
        return list(map(self._nodes.__getitem__, positions.tolist()))


def _whole(node: Any) -> int | None:
    """Return the whole number that a node is equal to, as it would be found in a dictionary."""
    hash(node)
    try:
        number = int(node)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if number == node else None
