"""What graphs among the inputs fix: which ids vertices have, and whether edges have a direction."""

from __future__ import annotations

from collections.abc import Sequence

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared
from oocbfs.graph.stored import StoredGraph
from oocbfs.settings import IdNames


def reconcile_ids(ids: IdNames, graphs: Sequence[StoredGraph]) -> IdNames:
    """Return how ids are read, which graphs know; refuse names together with numbers."""
    named = [graph for graph in graphs if graph.names is not None]
    numbered = [graph for graph in graphs if graph.names is None]
    if named and numbered:
        raise InputError(
            f"has names, and {numbered[0].path} has numbers: they are not one graph",
            path=named[0].path,
        )
    if named and ids not in ("auto", "names"):
        raise InputError(f"has names: leave out --ids {ids}", path=named[0].path)
    if numbered and ids == "names":
        raise InputError("has numbers as ids: leave out --ids names", path=numbered[0].path)
    return "names" if named else ids


def reconcile_direction(asked: bool | None, graphs: Sequence[StoredGraph]) -> bool | None:
    """Return whether graphs are directed, None without any; refuse what would turn their edges."""
    if not graphs:
        return None
    first = graphs[0]
    other = next((graph for graph in graphs if graph.directed != first.directed), None)
    if other is not None:
        one, two = (first, other) if first.directed else (other, first)
        raise InputError(
            f"is directed, and {two.path} is undirected: export the edges of one, and convert "
            "them as the other",
            path=one.path,
        )
    if asked is not None and asked != first.directed:
        kinds = ("undirected", "directed")
        raise InputError(
            f"is {kinds[first.directed]}: leave out --{kinds[asked]}, or export its edges before",
            path=first.path,
        )
    return first.directed


def check_declared(graph: StoredGraph, declared: Declared, name: str, asked: bool | None) -> None:
    """Refuse edges that are said to be of the other kind, unless the user says otherwise."""
    if asked is None and declared.dispute:
        raise InputError(declared.dispute)
    if asked is None and declared.directed not in (None, graph.directed):
        kinds = ("undirected", "directed")
        raise InputError(
            f"is {kinds[graph.directed]}, but {name} is {kinds[not graph.directed]}: give "
            f"--{kinds[graph.directed]} to take its edges all the same",
            path=graph.path,
        )
