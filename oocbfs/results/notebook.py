"""What notebooks show of graphs and results: a small table, and a picture beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from html import escape
from typing import TYPE_CHECKING

from oocbfs.errors import OocbfsError
from oocbfs.memory import format_size
from oocbfs.pictures.degrees import degree_panels
from oocbfs.pictures.svg import Panel, inline
from oocbfs.results.bfs import listed
from oocbfs.results.panels import file_panel, levels_panel, sizes_panel, sources_panel

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.results.bfs import BfsResult
    from oocbfs.results.components import ComponentsResult
    from oocbfs.results.source import SourceResult

# More sources than this are not told apart.
_LINES = 8
# Degrees of larger graphs take longer to count than a picture may.
_MOST_DEGREES = 1 << 24


def graph_html(graph: AnyStored) -> str:
    """Show what a graph file holds."""
    info = graph.info()
    rows = [
        ("vertices", f"{graph.num_vertices:,}"),
        ("edges", f"{graph.num_edges:,}, {'' if graph.directed else 'un'}directed"),
        (f"largest {'in- or out-' if graph.directed else ''}degree", f"{info['max_degree']:,}"),
        ("order", info["order"]),
        ("file", f"{format_size(info['file_bytes'])}, {info['bits_per_arc']:.1f} bits per arc"),
    ]
    panels = [file_panel(graph)]
    if 0 < graph.num_vertices <= _MOST_DEGREES:
        with suppress(OocbfsError):  # of a graph that was closed
            name = "out-degree" if graph.directed else "degree"
            panels.append(degree_panels({name: graph.degree_histogram()})[0])
    return _shown(graph.path, rows, panels)


def bfs_html(result: BfsResult) -> str:
    """Show what a search found."""
    stats = result.stats
    rows = [
        ("graph", result.graph.path),
        ("source", listed(result.sources)),
        ("reached", f"{result.reached:,} of {result.graph.num_vertices:,} vertices"),
        ("depth", f"{result.depth:,}"),
        ("seconds", f"{stats.seconds:.6f} with {stats.threads} threads"),
        ("engine", stats.engine if stats.method == "auto" else f"{stats.engine}, {stats.method}"),
    ]
    return _shown(result.title, rows, [levels_panel(result.level_sizes.tolist())])


def components_html(result: ComponentsResult) -> str:
    """Show what components there are."""
    n = result.graph.num_vertices
    largest = max(result.histogram, default=0)
    rows = [
        ("graph", result.graph.path),
        ("components", f"{result.num_components:,} in {n:,} vertices"),
        ("largest", f"{largest:,} vertices, {largest / max(1, n):.1%}"),
        ("seconds", f"{result.stats.seconds:.6f} with {result.stats.threads} threads"),
        ("engine", result.stats.engine),
    ]
    return _shown(result.title, rows, [sizes_panel(result.size_classes())])


def sources_html(graph: AnyStored, results: Sequence[SourceResult]) -> str:
    """Show what was found from several sources."""
    rows = [
        (
            f"from {result.source}",
            f"{result.reached:,} of {graph.num_vertices:,} vertices, depth {result.depth:,}",
        )
        for result in results
    ]
    panel = sources_panel({str(r.source): r.level_sizes.tolist() for r in results[:_LINES]})
    return _shown(graph.path, rows, [panel])


def _shown(title: str, rows: Iterable[tuple[str, str]], panels: list[Panel]) -> str:
    cells = "".join(
        f'<tr><th style="text-align:left">{escape(name)}</th>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    return f"<div><table>{cells}</table>{inline(title, panels)}</div>"
