"""find a shortest path between two vertices, or all of them"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from oocbfs.errors import QueryError
from oocbfs.settings import Settings, several
from oocbfs.tools.shared import announcements, searches
from oocbfs.tools.shared import options as shared
from oocbfs.tools.shared.vertices import called, read_vertices, vertices

if TYPE_CHECKING:
    from oocbfs.search.any_graph import AnyGraph

# Paths that --all shows if it is not told how many.
_SHOWN = 10
_ENGINES = ("auto", "cpu", "disk")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "graph")
    for name, what in (("source", "from this vertex"), ("target", "to this one")):
        parser.add_argument(name, type=vertices, metavar="ID", help=f"{what}: an id or a name")
    parser.add_argument(
        "--all",
        nargs="?",
        type=shared.positive,
        const=_SHOWN,
        metavar="N",
        help=f"count all shortest paths, and print the first N (default of N: {_SHOWN})",
    )
    shared.add(parser, "--max-depth")
    engines = "as for bfs; paths are found on the CPU, or with rows read from disk"
    shared.add(parser, "--engine", choices=_ENGINES, help=f"{engines} (default: auto)")
    shared.add(parser, "--memory", "--json")


def run(options: argparse.Namespace) -> None:
    """Search from both ends, and print the path."""
    announcements.announce()
    with searches.open_graph(options) as opened:
        ends = _vertex(opened, options.source), _vertex(opened, options.target)
        asked = {
            "max_depth": options.max_depth,
            "options": Settings(engine=options.engine),
        }
        values: dict[str, Any] = {"graph": opened.path, "source": ends[0], "target": ends[1]}
        if options.all is None:
            path = opened.shortest_path(*ends, **asked)
            values |= {"distance": -1 if path is None else len(path) - 1, "path": path}
            lines = [_line(path, options.max_depth)]
        else:
            every = opened.all_shortest_paths(*ends, **asked)
            paths = every.first(options.all)
            edges = every.num_edges
            values |= {"distance": every.distance, "count": every.count, "edges": edges}
            values |= {"paths": paths}
            lines = list(_lines(paths, every.count, options.max_depth))
    shared.print_report(options, values, (), above=lines)


def _vertex(opened: AnyGraph, text: str) -> Any:
    """Read one id or name."""
    found = read_vertices(opened, text)
    if len(found) > 1:
        raise QueryError(f"{text}: name one vertex at each end")
    return found[0]


def _line(path: list[Any] | None, max_depth: int | None = None) -> str:
    if path is None:
        bound = "" if max_depth is None else f" of at most {several(max_depth, 'step')}"
        return f"no path{bound}"
    return f"{several(len(path) - 1, 'step')}: {' → '.join(map(called, path))}"


def _lines(paths: list[list[Any]], count: int, max_depth: int | None) -> Iterator[str]:
    if not paths:
        yield _line(None, max_depth)
        return
    yield several(count, "shortest path")
    yield from map(_line, paths)
    if count > len(paths):
        yield f"… and {count - len(paths):,} more"
