"""write a graph's edges back, in the ids of the input, or its rows for other programs

The name of the output chooses the form. Edges: .txt .el .tsv .csv, each also with .gz .zst .xz .bz2
after it; .u32 .u64 .npy .parquet; or - for text on standard output. Those of an undirected graph
are written once. Rows, whose vertices are numbered in the order of their ids: .npz (SciPy), .metis
or .graph (METIS, also with .gz …), .sg (GAP).
"""

from __future__ import annotations

import argparse
import logging
from typing import TYPE_CHECKING

from oocbfs.errors import QueryError
from oocbfs.tools.shared import announcements, searches
from oocbfs.tools.shared import options as shared

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored

_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    shared.add(parser, "graph", "--output", "--threads", "--force", "--json")


def run(options: argparse.Namespace) -> None:
    """Decode and write."""
    shared.refuse_json_among_edges(options)
    announcements.announce()
    from oocbfs.formats.output.atomic import check_outputs
    from oocbfs.formats.output.row_files import FORMATS, choose_row_format
    from oocbfs.formats.output.writers import choose_format

    form = choose_row_format(options.output)
    if form is None:
        choose_format(options.output, also=FORMATS)
    if options.output != "-":
        outputs = {"-o": options.output}
        check_outputs(outputs, inputs=[options.graph], force=options.force, streams=True)
    with searches.open_graph(options) as opened:
        if form is None:
            num_edges = _write_edges(opened._stored, options)
        else:
            num_edges = _write_rows(opened._stored, form, options)
    shared.print_count(options, num_edges)


def _write_edges(opened: AnyStored, options: argparse.Namespace) -> int:
    from oocbfs.formats.output.writers import write_edges
    from oocbfs.progress import Phases
    from oocbfs.results.tables import about

    total = opened.num_edges
    kind = "directed" if opened.directed else "undirected, each edge once"
    with Phases()("export", total, "edge") as bar:
        return write_edges(
            opened.id_edges(),
            options.output,
            header_comment=f"Nodes: {opened.num_vertices} Edges: {total} ({kind})",
            about=about(opened),
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
        raise QueryError(f"{opened.path}: is in parts, whose rows cannot be written: export edges")
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
