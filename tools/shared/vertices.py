"""Vertices as people write them on a command line, and as they are shown to them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from oocbfs.errors import QueryError, shown
from oocbfs.options import read_whole

if TYPE_CHECKING:
    from oocbfs.search.any_graph import AnyGraph

# Any number is an id, or is refused by the graph.
_IDS = range(-(10**40), 10**40)
# The word for a source in the largest component; a vertex of that name is written in quotes.
LARGEST = "@largest"


def vertices(text: str) -> str:
    """Take ids or names, which only the graph can tell apart; none may be empty."""
    if not all(part.strip() for part in text.split(",")):
        raise argparse.ArgumentTypeError(f"{shown(text)} names no vertex")
    return text


def read_vertices(graph: AnyGraph, text: str) -> list[Any]:
    """Read ids, or names if the graph has them, separated by commas; a name may be in quotes."""
    from oocbfs.formats.names import split_names

    if graph.names is not None:
        return [text] if text in graph.names else split_names(text)
    found: list[Any] = []
    for part in text.split(","):
        try:
            found.append(read_whole(part, _IDS))
        except QueryError as error:
            problem = f"{shown(part)} is not an id: its vertices have whole numbers"
            raise QueryError(f"{graph.path}: {problem}") from error
    return found


def called(vertex: Any) -> str:
    """Write an id or a name in one line."""
    text = str(vertex)
    return text if text.isprintable() else repr(text)
