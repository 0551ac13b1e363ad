"""write a graph's edges back as an edge list, in the ids of the input

The name of the output chooses the form: .txt .el .tsv .csv, each also with .gz .zst .xz .bz2 after
it; .u32 .u64 .npy; or - for standard output. Edges of an undirected graph are written once.
"""

from __future__ import annotations

import argparse

from oocbfs.tools import announcements
from oocbfs.tools import options as shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    shared.add(parser, "graph", "--output", "--threads", "--force", "--json")


def run(options: argparse.Namespace) -> None:
    """Decode and write."""
    shared.refuse_json_among_edges(options)
    announcements.announce()
    from oocbfs.formats.output.atomic import check_outputs
    from oocbfs.formats.output.writers import choose_format, write_edges
    from oocbfs.progress import Phases

    choose_format(options.output)
    if options.output != "-":
        outputs = {"-o": options.output}
        check_outputs(outputs, inputs=[options.graph], force=options.force, streams=True)
    with shared.open_graph(options) as opened:
        total = opened.num_edges // (1 if opened.directed else 2)
        kind = "directed" if opened.directed else "undirected, each edge once"
        comment = f"Nodes: {opened.num_vertices} Edges: {total} ({kind})"
        with Phases()("export", total, "edge") as bar:
            num_edges = write_edges(
                opened.edges(),
                options.output,
                header_comment=comment,
                progress=bar.update,
                **shared.chosen(options, "threads", "force"),
            )
    shared.print_count(options, num_edges)
