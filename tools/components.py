"""find the connected components; of a directed graph the weakly connected ones"""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING

from oocbfs.tools import options as shared

if TYPE_CHECKING:
    from oocbfs.results.components import ComponentsResult

_SHOWN_COMPONENTS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("graph", type=shared.path, metavar="GRAPH.ocg")
    parser.add_argument(
        "--labels",
        type=shared.path,
        metavar="FILE",
        help="write the smallest id of each vertex's component as .npy, .csv or .tsv",
    )
    parser.add_argument(
        "--giant",
        action="store_true",
        help="print only how much of the graph the largest component holds",
    )
    shared.add_engine_options(parser)
    parser.add_argument(
        "--plot", type=shared.path, metavar="FILE", help="draw the sizes as .svg or .png"
    )
    shared.add_output_options(parser)


def run(options: argparse.Namespace) -> None:
    """Find the components, write what was asked for, and report."""
    from oocbfs.formats.output.atomic import check_outputs
    from oocbfs.formats.output.vectors import check_name, write_vector

    if options.labels:
        check_name(options.labels)
    if options.plot:
        from oocbfs.plot import check_plot

        check_plot(options.plot)
    outputs = {"--labels": options.labels, "--plot": options.plot}
    check_outputs(outputs, inputs=[options.graph], force=options.force)
    shared.announce_compilation()
    shared.announce_unpacking()
    from oocbfs.search import graph

    with graph.open(options.graph, memory=options.memory) as opened:
        result = opened.components(
            threads=options.threads,
            engine=options.engine,
            vram=options.vram,
            resident_tails=options.resident_tails,
            progress=True,
            tmp=options.tmp,
        )
        if options.labels:
            write_vector(
                options.labels,
                "component",
                opened.ids_at,
                result.labels,
                threads=result.stats.threads,
                force=options.force,
            )
        if options.plot:
            from oocbfs.plot import plot_components

            plot_components(result, options.plot, force=options.force)
        if result.stats.fallback:
            print(f"using the CPU: {result.stats.fallback}", file=sys.stderr)
        if options.json:
            shared.print_json(result.summary())
        elif options.giant:
            _print_giant(result)
        else:
            _print_tables(result)
    for name in (options.labels, options.plot):
        if name:
            print(f"wrote {name}", file=sys.stderr)


def _print_giant(result: ComponentsResult) -> None:
    giant, graph = result.giant, result.graph
    if giant is None:
        print("the graph has no vertices")
        return
    shared.print_table(
        (
            ("smallest id", f"{giant.label}"),
            ("vertices", _of(giant.size, graph.num_vertices)),
            ("edges", _of(result.giant_edges, graph.num_edges)),
        )
    )


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({part / max(1, whole):.1%})"


def _print_tables(result: ComponentsResult) -> None:
    print("         smallest id          vertices   share")
    for component in result.largest(_SHOWN_COMPONENTS):
        share = component.size / result.graph.num_vertices
        print(f"{component.label:>20}  {component.size:>16,}  {share:>6.1%}")
    hidden = result.num_components - _SHOWN_COMPONENTS
    if hidden > 0:
        print(f"{'…':>20}  {hidden:,} components more")
    print("\n    size of component        components          vertices")
    for smallest, largest, components, vertices in result.size_classes():
        sizes = f"{smallest:,}" if smallest == largest else f"{smallest:,} … {largest:,}"
        print(f"{sizes:>21}  {components:>16,}  {vertices:>16,}")
    print()
    stats = result.stats
    decoded = stats.tail_bytes_decoded
    rows = [
        ("components", f"{result.num_components:,} in {result.graph.num_vertices:,} vertices"),
        (
            "seconds",
            f"{stats.seconds:.6f} with {stats.threads} threads on the {stats.engine} engine",
        ),
        ("naming", f"{stats.map_seconds:.6f} s into input ids"),
        (
            "tails decoded",
            f"{decoded:,} bytes, {decoded / max(1, stats.tail_bytes):.1%} of all",
        ),
    ]
    for tier, moved in stats.slow_bytes_by_tier.items():
        rows.append((shared.TIERS[tier], f"{moved:,} bytes"))
    shared.print_table(rows)
