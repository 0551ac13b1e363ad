"""write a graph's edges back as an edge list, in the ids of the input

The name of the output chooses the form: .txt .el .tsv .csv, each with .gz .zst .xz .bz2 behind it;
.u32 .u64 .npy; or - for standard output. Edges of an undirected graph are written once.
"""

from __future__ import annotations

import argparse
import sys

from oocbfs.tools import options as shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("graph", type=shared.path, metavar="GRAPH.ocg")
    parser.add_argument("-o", "--output", type=shared.path, required=True, metavar="FILE")
    shared.add_output_options(parser)


def run(options: argparse.Namespace) -> None:
    """Decode and write."""
    shared.refuse_json_among_edges(options)
    shared.announce_compilation()
    shared.announce_unpacking()
    from oocbfs.formats.output.atomic import check_outputs
    from oocbfs.formats.output.writers import choose_format, write_edges
    from oocbfs.progress import Phases
    from oocbfs.search import graph

    choose_format(options.output)
    if options.output != "-":
        outputs = {"-o": options.output}
        check_outputs(outputs, inputs=[options.graph], force=options.force, streams=True)
    with graph.open(options.graph) as opened:
        total = opened.num_edges // (1 if opened.directed else 2)
        kind = "directed" if opened.directed else "undirected, each edge once"
        with Phases()("export", total, "edge") as bar:
            count = write_edges(
                opened.edges(),
                options.output,
                threads=options.threads,
                header_comment=f"Nodes: {opened.num_vertices} Edges: {total} ({kind})",
                force=options.force,
                progress=bar.update,
            )
    if options.json:
        shared.print_json({"output": options.output, "edges": count})
    else:
        print(f"{options.output}: {count:,} edges", file=sys.stderr)
