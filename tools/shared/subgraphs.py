"""Which part of a graph a command is about, as it is named on the command line."""

from __future__ import annotations

import argparse
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from oocbfs.errors import QueryError
from oocbfs.tools.shared import options as shared
from oocbfs.tools.shared.vertices import read_vertices

if TYPE_CHECKING:
    from oocbfs.near.subgraph import Subgraph
    from oocbfs.search.any_graph import AnyGraph

_log = logging.getLogger(__name__)
# What the name of a graph of its own ends in.
GRAPH = ".ocg"
_LARGEST = "largest"


def is_asked_for(options: argparse.Namespace) -> bool:
    """Return whether only a part of the graph is wanted."""
    return any(value is not None for value in shared.chosen(options, *_WAYS).values())


_WAYS = ("near", "vertices", "component")


def check(options: argparse.Namespace) -> None:
    """Refuse options that do not belong together."""
    if options.near is not None and options.depth is None:
        raise QueryError("--near needs --depth: within how many steps?")
    for name in ("depth", "limit"):
        if options.near is None and getattr(options, name) is not None:
            raise QueryError(f"--{name} is about --near: name vertices to be near to")
    if options.memory is not None and not is_asked_for(options):
        raise QueryError("--memory is about a part: all of a graph is passed over as it is mapped")


def choose(opened: AnyGraph, options: argparse.Namespace) -> Subgraph:
    """Return the part of a graph that is asked for."""
    settings = shared.chosen(options, "memory", "threads")
    if options.near is not None:
        seeds = read_vertices(opened, options.near)
        return opened.ego(seeds, options.depth, limit=options.limit, **settings)
    if options.vertices is not None:
        from oocbfs.formats.readers.id_lines import read_sources

        named = opened.names is not None
        listed = read_sources(Path(options.vertices), named=named, what="vertices")
        return opened.subgraph(listed, **settings)
    found = opened.components(**settings)
    is_name = opened.names is not None and _LARGEST in opened.names
    if options.component == _LARGEST and not is_name:
        if found.largest_component is None:
            raise QueryError(f"{opened.path}: has no vertices")
        vertex = found.largest_component.label
    else:
        (vertex, *more) = read_vertices(opened, options.component)
        if more:
            raise QueryError(f"--component {options.component}: name one vertex")
    import numpy as np

    position = opened._stored.position(vertex)
    positions = np.flatnonzero(found.labels == found.labels[position])
    from oocbfs.near.subgraph import Subgraph

    return Subgraph(
        opened._stored,
        positions,
        opened._settings(None, options.memory, threads=options.threads),
        what=f"in the component of {vertex}",
    )


def tell_cut(part: Subgraph, options: argparse.Namespace) -> None:
    """Say that a limit has cut something off, also to who asked for silence."""
    if part.cut:
        _log.error("--limit %s has cut off what is near %s", f"{options.limit:,}", options.near)
