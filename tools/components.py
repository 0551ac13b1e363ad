"""find the connected components; of a directed graph the weakly or strongly connected ones"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from oocbfs.settings import Settings
from oocbfs.tools.shared import announcements, searches, vectors
from oocbfs.tools.shared import options as shared
from oocbfs.tools.shared.vertices import called

if TYPE_CHECKING:
    from oocbfs.results.components import ComponentsResult

_SHOWN_COMPONENTS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "graph")
    vectors.add_vector(parser, "--labels", "the smallest id of each vertex's component")
    every = "find the strongly connected components of a directed graph"
    shared.add_flag(parser, "--strong", every)
    only = "print only how much of the graph the largest component holds"
    shared.add_flag(parser, "--largest", only)
    shared.add_engine_options(parser)
    shared.add(parser, "--cluster")
    shared.add_file(parser, "--plot", "draw the sizes as .svg or .png")
    shared.add(parser, "--force", "--json")


def run(options: argparse.Namespace) -> None:
    """Find the components, write what was asked for, and report."""
    vectors.check_files(options, "labels")
    announcements.announce()

    with searches.open_graph(options) as opened:
        result = opened.components(
            progress=True,
            strong=options.strong,
            **shared.chosen(options, *shared.ENGINE),
            options=Settings(**shared.chosen(options, *shared.DEVICE)),
        )
        if options.labels:
            between = result.labels_between
            vectors.write_column(options, options.labels, "component", between, result)
        if options.plot:
            result.plot(options.plot, force=options.force)
        searches.tell_engine(result.stats)
        if options.largest:
            nothing = () if result.largest_component else ("the graph has no vertices",)
            shared.print_report(options, result.summary(), _largest_rows(result), above=nothing)
        else:
            shared.print_report(options, result.summary(), _rows(result), above=_sizes(result))
    searches.tell_written(options.labels, options.plot)


def _largest_rows(result: ComponentsResult) -> Iterator[tuple[str, str]]:
    largest, graph = result.largest_component, result.graph
    if largest is not None:
        yield "smallest id", called(largest.label)
        yield "vertices", _of(largest.size, graph.num_vertices)
        yield "edges", _of(result.largest_edges, graph.num_edges)


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({part / max(1, whole):.1%})"


def _sizes(result: ComponentsResult) -> Iterator[str]:
    """Write the largest components, and how many there are of each size."""
    yield "         smallest id          vertices   share"
    for component in result.largest(_SHOWN_COMPONENTS):
        share = component.size / result.graph.num_vertices
        yield f"{called(component.label):>20}  {component.size:>16,}  {share:>6.1%}"
    hidden = result.num_components - _SHOWN_COMPONENTS
    if hidden > 0:
        yield f"{'…':>20}  {hidden:,} more components"
    yield "\n    size of component        components          vertices"
    for smallest, largest, components, vertices in result.size_classes():
        sizes = f"{smallest:,}" if smallest == largest else f"{smallest:,} … {largest:,}"
        yield f"{sizes:>21}  {components:>16,}  {vertices:>16,}"
    yield ""


def _rows(result: ComponentsResult) -> Iterator[tuple[str, str]]:
    stats = result.stats
    decoded = stats.tail_bytes_decoded
    share = decoded / max(1, stats.tail_bytes)
    strongly = ", strongly connected" if result.strong else ""
    yield (
        "components",
        f"{result.num_components:,} in {result.graph.num_vertices:,} vertices{strongly}",
    )
    yield from searches.durations(stats)
    yield "tails decoded", f"{decoded:,} bytes, {share:.1%} of all"
    for tier, moved in stats.slow_bytes_by_tier.items():
        yield shared.TIERS[tier], f"{moved:,} bytes"
