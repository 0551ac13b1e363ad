"""Edges between names that are in memory already: pairs of strings, arrays of strings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

import numpy as np

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, NamedEdges
from oocbfs.formats.names import pack
from oocbfs.kernels.names.parse import PROBLEMS
from oocbfs.kernels.names.words import GOOD, MAX_NAME_BYTES, TOO_LONG, check_names

_BATCH_EDGES = 1 << 14


class MemoryNames:
    """A stream of edges over pairs of names, or over two sequences of them.

    A name is a string, or a whole number, which is named by its decimal digits.
    """

    name = "memory"
    unit = "edge"

    def __init__(self, edges: Any) -> None:
        self.declared = Declared()
        if isinstance(edges, tuple) and len(edges) == 2 and not isinstance(edges[0], str):
            sources, targets = (_listed(side) for side in edges)
            if len(sources) != len(targets):
                raise InputError("sources and targets must have the same length")
            edges = zip(sources, targets, strict=True)
            self.total: int | None = len(sources)
        else:
            if isinstance(edges, np.ndarray) and edges.ndim == 2 and edges.shape[1] != 2:
                edges = edges.T
            edges = _listed(edges) if hasattr(edges, "tolist") else edges
            self.total = len(edges) if hasattr(edges, "__len__") else None
        if not isinstance(edges, Iterable):
            raise InputError(f"{type(edges).__name__} is not a list of edges: give pairs of names")
        self._edges: Iterator[Any] = iter(edges)
        self.done = 0

    def named_batches(self) -> Iterator[NamedEdges]:
        """Yield the edges in order."""
        while batch := list(islice(self._edges, _BATCH_EDGES)):
            names: list[bytes] = []
            for edge in batch:
                if isinstance(edge, (str, bytes)) or not hasattr(edge, "__len__") or len(edge) != 2:
                    raise InputError(f"edge {self.done}: {edge!r} is not a pair of names")
                names += map(as_bytes, edge)
            yield pack_names(names)
            self.done += len(batch)


def pack_names(names: list[bytes]) -> NamedEdges:
    """Put names one after the other; refuses what is no name."""
    if max(map(len, names), default=0) > MAX_NAME_BYTES:
        raise InputError(PROBLEMS[TOO_LONG])
    edges = NamedEdges(*pack(names))
    code, number = check_names(edges.text, edges.starts, edges.lengths)
    if code != GOOD:
        raise InputError(f"{PROBLEMS[code]}: {names[number][:40]!r}")
    return edges


def _listed(side: Any) -> list[Any]:
    return side.tolist() if hasattr(side, "tolist") else list(side)


def as_bytes(name: object) -> bytes:
    """Encode a name."""
    if isinstance(name, (int, np.integer)) and not isinstance(name, bool):
        return str(int(name)).encode()
    if not isinstance(name, str):
        raise InputError(f"{name!r} is not a name: names are strings or whole numbers")
    try:
        return name.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"{name!r} is not a name: it is not Unicode text") from error


class NetworkxNames(MemoryNames):
    """The edges of a networkx graph whose nodes are names; those without edges become loops."""

    name = "networkx graph"

    def __init__(self, graph: Any) -> None:
        alone = ((node, node) for node, degree in graph.degree() if degree == 0)
        super().__init__(chain(((u, v) for u, v in graph.edges()), alone))
        self.declared.directed = graph.is_directed()
        self.declared.directed_why = f"a networkx {type(graph).__name__} is"


class IgraphNames(MemoryNames):
    """The edges of an igraph graph by the names of its vertices, or by their numbers."""

    name = "igraph graph"

    def __init__(self, graph: Any) -> None:
        names = graph.vs["name"] if "name" in graph.vs.attributes() else range(graph.vcount())
        alone = ((names[v], names[v]) for v in range(graph.vcount()) if graph.degree(v) == 0)
        super().__init__(chain(((names[u], names[v]) for u, v in graph.get_edgelist()), alone))
        self.declared.directed = graph.is_directed()
        self.declared.directed_why = "the igraph graph is"
