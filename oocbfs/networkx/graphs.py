"""Graphs as networkx sees them: its whole interface for reading, on top of a file or of arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Self

import networkx as nx

from oocbfs.networkx.backing import Backing, ConvertedBacking, OpenedBacking
from oocbfs.networkx.names import Node, all_nodes
from oocbfs.search import graph as files

if TYPE_CHECKING:
    from oocbfs.search.graph import Graph

BACKEND = "oocbfs"


class _Nodes(Mapping[Node, dict[str, Any]]):
    """The nodes of a graph, without attributes."""

    def __init__(self, backing: Backing) -> None:
        self._backing = backing

    def __len__(self) -> int:
        return len(self._backing.names)

    def __iter__(self) -> Iterator[Any]:
        return all_nodes(self._backing.names)

    def __contains__(self, node: object) -> bool:
        return self._backing.names.position(node) is not None

    def __getitem__(self, node: Node) -> dict[str, Any]:
        if node not in self:
            raise KeyError(node)
        return {}


class _Adjacency(_Nodes):
    """The neighbours of each node, read when they are asked for."""

    def __init__(self, backing: Backing, *, inward: bool = False) -> None:
        super().__init__(backing)
        self._inward = inward

    def __getitem__(self, node: Node) -> dict[Any, Any]:
        position = self._backing.names.position(node)
        if position is None:
            raise KeyError(node)
        neighbours = self._backing.neighbours(position, inward=self._inward)
        counts = self._backing.edge_counts(position, inward=self._inward)
        if counts is None:
            return {neighbour: {} for neighbour in neighbours}
        return {
            neighbour: {key: {} for key in range(count)}
            for neighbour, count in zip(neighbours, counts, strict=True)
        }


class _Backed:
    """What the graphs of this backend have in common.

    A graph that networkx makes of such a class itself, such as a copy or a view, has nothing behind
    it, and is a graph of networkx like any other.
    """

    _backing: Backing

    @classmethod
    def _on(cls, backing: Backing) -> Any:
        """Make a graph on top of a backing."""
        graph: Any = cls()
        graph._node = _Nodes(backing)
        graph._adj = _Adjacency(backing)
        if graph.is_directed():
            graph._pred = _Adjacency(backing, inward=True)
        graph._backing = backing
        graph.__networkx_backend__ = BACKEND
        return nx.freeze(graph)

    def number_of_edges(self, u: Node | None = None, v: Node | None = None) -> int:
        """Count the edges, or those between two nodes, as in networkx."""
        if u is None and is_backed(self):
            return self._backing.num_edges
        return super().number_of_edges(u, v)  # type: ignore[misc,no-any-return]

    def size(self, weight: str | None = None) -> float:
        """Count the edges: all weigh 1."""
        if is_backed(self):
            return self._backing.num_edges if weight is None else float(self._backing.num_edges)
        return super().size(weight)  # type: ignore[misc,no-any-return]

    def subgraph(self, nodes: Any) -> Any:
        """Return the subgraph of some nodes; of a file it is made of their rows."""
        if not is_backed(self) or not self._backing.is_file:
            return super().subgraph(nodes)  # type: ignore[misc]
        from oocbfs.networkx.near import induced

        return induced(self, nodes)

    @property
    def ocg(self) -> Graph:
        """The same graph as ``oocbfs.open`` gives it; vertices of a converted one are positions."""
        return self._backing.engine

    def close(self) -> None:
        """Close the file."""
        self._backing.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


class OcgGraph(_Backed, nx.Graph):  # type: ignore[misc]
    """An undirected graph that cannot be changed."""


class OcgDiGraph(_Backed, nx.DiGraph):  # type: ignore[misc]
    """A directed graph that cannot be changed."""


class OcgMultiGraph(_Backed, nx.MultiGraph):  # type: ignore[misc]
    """An undirected graph with parallel edges that cannot be changed."""


class OcgMultiDiGraph(_Backed, nx.MultiDiGraph):  # type: ignore[misc]
    """A directed graph with parallel edges that cannot be changed."""


def is_backed(graph: object) -> bool:
    """Return whether a graph has a file or arrays behind it."""
    return getattr(graph, "__networkx_backend__", None) == BACKEND


def open(path: str | os.PathLike[str], *, memory: str | int | None = None) -> Any:
    """Open an ``.ocg`` file as a graph of networkx that cannot be changed.

    Nodes are the ids of the file, ascending; so are the neighbours of each node.

    Parameters
    ----------
    path
        The file.
    memory
        Bound for the process while it searches, as ``"4G"``; see ``oocbfs.open``.

    Raises
    ------
    FormatError
        If the file is not a graph, is damaged, or comes from another version.
    """
    graph = files.open_file(path, memory=memory)
    return (OcgDiGraph if graph.directed else OcgGraph)._on(OpenedBacking(graph))


def convert_from_nx(
    graph: Any,
    *,
    edge_attrs: dict[str, Any] | None = None,
    node_attrs: dict[str, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> Any:
    """Convert a graph of networkx: nodes and neighbours keep their order, attributes are left out.

    networkx calls this by itself, and keeps the result until the graph changes.

    Raises
    ------
    NotImplementedError
        If attributes of nodes or edges are wanted.
    """
    if edge_attrs or node_attrs or preserve_edge_attrs or preserve_node_attrs:
        raise NotImplementedError("oocbfs keeps no attributes of nodes and edges")
    if not isinstance(graph, nx.Graph):
        raise TypeError(f"a graph of networkx is wanted, not {type(graph).__name__}")
    kinds = {
        (False, False): OcgGraph,
        (True, False): OcgDiGraph,
        (False, True): OcgMultiGraph,
        (True, True): OcgMultiDiGraph,
    }
    kind = kinds[graph.is_directed(), graph.is_multigraph()]
    converted = kind._on(ConvertedBacking(graph))
    if preserve_graph_attrs:
        converted.graph.update(graph.graph)
    return converted


def convert_to_nx(obj: Any, *, name: str | None = None) -> Any:
    """Return a graph as one of networkx that can be changed; anything else as it is."""
    if not is_backed(obj):
        return obj
    kinds = (nx.Graph, nx.MultiGraph), (nx.DiGraph, nx.MultiDiGraph)
    graph = kinds[obj.is_directed()][obj.is_multigraph()](**obj.graph)
    graph.add_nodes_from(obj)
    rows = graph._adj
    for node, neighbours in obj._adj.items():
        row = rows[node]
        for neighbour, data in neighbours.items():
            # The two ways of an undirected edge share what they hold.
            is_back = not graph.is_directed() and node in rows[neighbour]
            row[neighbour] = rows[neighbour][node] if is_back else data
    if graph.is_directed():
        for node, neighbours in obj._pred.items():
            graph._pred[node].update((neighbour, rows[neighbour][node]) for neighbour in neighbours)
    return graph
