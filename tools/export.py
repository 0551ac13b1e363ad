"""write a graph's edges back, in the ids of the input, or its rows for other programs

The name of the output chooses the form. Edges: .txt .el .tsv .csv, each also with .gz .zst .xz .bz2
after it; .u32 .u64 .npy .parquet; or - for text on standard output. Those of an undirected graph
are written once. Rows, whose vertices are numbered in the order of their ids: .npz (SciPy), .metis
or .graph (METIS, also with .gz …), .sg (GAP).

With --near, --vertices or --component, only the edges between those vertices; then also as a graph
of its own, .ocg. Ids and names stay what they are. An edge list does not have vertices without an
edge.
"""

from __future__ import annotations

import argparse
import logging
import os
from typing import TYPE_CHECKING

from oocbfs.errors import QueryError
from oocbfs.tools.shared import announcements, searches, subgraphs
from oocbfs.tools.shared import options as shared
from oocbfs.tools.shared.vertices import vertices

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.near.subgraph import Subgraph

_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    shared.add(parser, "graph", "--output")
    parts = parser.add_argument_group("a part of the graph")
    which = parts.add_mutually_exclusive_group()
    shared.add_value(
        which, "--near", vertices, "IDS", "all within --depth steps of these ids or names"
    )
    shared.add_value(which, "--vertices", shared.path, "FILE", "those in a file, one a line")
    shared.add_value(
        which, "--component", vertices, "ID", "the component of a vertex; largest: the largest one"
    )
    depth = "so many steps, along edges that have a direction (no default)"
    shared.add_value(parts, "--depth", shared.whole(1, (1 << 31) - 1), "K", f"with --near: {depth}")
    limit = "with --near: at most N vertices, the nearest (default: all)"
    shared.add_value(parts, "--limit", shared.positive, "N", limit)
    limit = "limit for the process; rows are read from disk if the file has no room (default: none)"
    shared.add(parts, "--memory", help=limit)
    folder = "as .ocg, .npz, .metis or .sg: folder for temporary data (default: the output's)"
    shared.add(parts, "--tmp", help=folder)
    shared.add(parser, "--threads", "--force", "--json")


def run(options: argparse.Namespace) -> None:
    """Decode and write."""
    shared.refuse_json_among_edges(options)
    announcements.announce()
    from oocbfs.formats.output.atomic import check_outputs
    from oocbfs.formats.output.row_files import FORMATS, choose_row_format
    from oocbfs.formats.output.writers import choose_format

    subgraphs.check(options)
    form = choose_row_format(options.output)
    is_graph = subgraphs.is_asked_for(options) and options.output.endswith(subgraphs.GRAPH)
    if form is None and not is_graph:
        also = (*FORMATS, *((subgraphs.GRAPH[1:],) if subgraphs.is_asked_for(options) else ()))
        choose_format(options.output, also=also)
    inputs = [path for path in (options.graph, options.vertices) if path is not None]
    if options.output != "-":
        outputs = {"-o": options.output}
        check_outputs(outputs, inputs=inputs, force=options.force, streams=not is_graph)
    with searches.open_graph(options) as opened:
        if subgraphs.is_asked_for(options):
            part = subgraphs.choose(opened, options)
            if is_graph or form is not None:
                num_edges = _by_graph(part, form, options)
            else:
                num_edges = _write_edges(opened._stored, options, part)
            subgraphs.tell_cut(part, options)
        elif form is None:
            num_edges = _write_edges(opened._stored, options)
        else:
            num_edges = _write_rows(opened._stored, form, options)
    shared.print_count(options, num_edges)


def _by_graph(part: Subgraph, form: str | None, options: argparse.Namespace) -> int:
    """Write a part as a graph, or its rows, by way of a graph that has no name."""
    settings = shared.chosen(options, "threads", "memory")
    if form is None:
        return part.save(options.output, force=options.force, tmp=options.tmp, **settings).edges
    folder = options.tmp or os.path.dirname(os.path.realpath(options.output))
    with part.stored(folder, options.threads) as opened:
        return _write_rows(opened, form, options)


def _write_edges(
    opened: AnyStored, options: argparse.Namespace, part: Subgraph | None = None
) -> int:
    from oocbfs.formats.output.writers import write_edges
    from oocbfs.progress import Phases
    from oocbfs.results.tables import about

    total = opened.num_edges if part is None else None
    kind = "directed" if opened.directed else "undirected, each edge once"
    comment = f"Nodes: {opened.num_vertices} Edges: {total} ({kind})"
    if part is not None:
        kind = "Directed" if opened.directed else "Undirected"
        comment = f"{kind} graph, a part: {part.num_vertices} vertices"
    with Phases()("export", total, "edge") as bar:
        return write_edges(
            opened.id_edges() if part is None else part.id_edges(),
            options.output,
            header_comment=comment,
            about=about(opened) if part is None else part.about(),
            largest_id=opened.largest_id if opened.num_vertices else 0,
            names=None if opened.names is None else opened.names.take,
            progress=bar.update,
            **shared.chosen(options, "threads", "force"),
        )


def _write_rows(opened: AnyStored, form: str, options: argparse.Namespace) -> int:
    from oocbfs.formats.output.row_files import (
        FIRST,
        GAP,
        NPZ,
        choose_row_format,
        keeps_ids,
        write_rows,
    )
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.progress import Phases

    if not isinstance(opened, StoredGraph):
        raise QueryError(f"{opened.path}: is in shards, whose rows cannot be written: export edges")
    choose_row_format(options.output, opened)
    numbered = f"{options.output}: vertices are numbered from {FIRST[form]} in the order of their"
    lost = "which this format cannot hold"
    if opened.names is not None:
        _log.info("%s names, %s", numbered, lost)
    elif not keeps_ids(form, opened):
        kept = "which are in the array ids" if form == NPZ else lost
        _log.info("%s ids, %s", numbered, kept)
    sides = 2 if form == GAP and opened.directed else 1
    with Phases()("export", sides * opened.num_arcs, "neighbour") as bar:
        settings = shared.chosen(options, "threads", "force")
        return write_rows(opened, options.output, progress=bar.update, **settings)
