"""find who is within some steps of each seed, or of any of several

Only what is near is read. The table has a row for each vertex near a seed, the nearest first, with
its distance. With --limit, a column cut says whether the limit has cut something off there; a
message says of how many seeds.
"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oocbfs.errors import QueryError
from oocbfs.settings import Settings, several
from oocbfs.tools.shared import announcements, searches
from oocbfs.tools.shared import options as shared
from oocbfs.tools.shared.vertices import called, read_vertices, vertices

if TYPE_CHECKING:
    from oocbfs.near.result import Neighborhood
    from oocbfs.search.any_graph import AnyGraph

_log = logging.getLogger(__name__)
_SHOWN_SEEDS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    shared.add(parser, "graph")
    parser.add_argument(
        "seeds",
        nargs="?",
        type=vertices,
        metavar="SEEDS",
        help="ids or names, such as 1,2,3",
    )
    shared.add_value(
        parser,
        "--seeds",
        shared.path,
        "FILE",
        "a file of them, one a line (no default)",
        dest="file",
    )
    parser.add_argument(
        "--depth",
        type=shared.whole(1, (1 << 31) - 1),
        required=True,
        metavar="K",
        help="so many steps, along edges that have a direction",
    )
    shared.add_value(
        parser,
        "--limit",
        shared.positive,
        "N",
        "at most N vertices near a seed, itself included: the nearest (default: all)",
    )
    shared.add_flag(parser, "--union", "find who is near any of the seeds, each vertex once")
    shared.add_flag(parser, "--parents", "add the vertex before each on a shortest path")
    forms = ".csv, .tsv (also .csv.gz, .csv.zst …) or .parquet; - prints .csv"
    shared.add(parser, "--output", help=f"the table to write: {forms}")
    engines = ("auto", "cpu", "disk")
    where = "cpu: from the mapped file; disk: each row by itself (default: auto, by --memory)"
    shared.add(parser, "--engine", choices=engines, help=where)
    shared.add(parser, "--memory", "--threads", "--force", "--json")


def run(options: argparse.Namespace) -> None:
    """Find what is near, write it, and report."""
    shared.refuse_json_among_edges(options)
    announcements.announce()
    from oocbfs.formats.io.ordered import available_threads
    from oocbfs.formats.output.atomic import check_outputs
    from oocbfs.formats.output.table_files import check_table_name, write_table
    from oocbfs.progress import Phases

    check_table_name(options.output)
    inputs = [options.graph, *([options.file] if options.file else [])]
    if options.output != "-":
        outputs = {"-o": options.output}
        check_outputs(outputs, inputs=inputs, force=options.force, streams=True)
    watch = searches.Stopwatch()
    with searches.open_graph(options) as opened:
        near = opened.neighborhood(
            _seeds(opened, options),
            **shared.chosen(options, "depth", "limit", "union", "parents", "threads"),
            options=Settings(engine=options.engine),
        )
        with Phases()("near", None, "row") as bar:
            num_rows = write_table(
                options.output,
                near._types(),
                near._batches(),
                about=near.about(),
                threads=available_threads(options.threads),
                force=options.force,
                advance=bar.update,
            )
        summary = {
            "graph": opened.path,
            "output": options.output,
            "seeds": near.num_seeds,
            **shared.chosen(options, "depth", "limit", "union"),
            "rows": num_rows,
            "cut": near.cut,
            **watch.values(),
        }
        shared.print_report(options, summary, _rows(options, near, summary))
        _tell_cut(options, near)


def _seeds(opened: AnyGraph, options: argparse.Namespace) -> list[Any]:
    """Read the seeds, which are named in one of two ways."""
    if (options.seeds is None) == (options.file is None):
        raise QueryError("name seeds, such as 1,2,3, or a file of them with --seeds")
    if options.seeds is not None:
        return read_vertices(opened, options.seeds)
    from oocbfs.formats.readers.id_lines import read_sources

    return read_sources(Path(options.file), named=opened.names is not None, what="seeds")


def _rows(
    options: argparse.Namespace, near: Neighborhood, summary: dict[str, Any]
) -> Iterator[tuple[str, str]]:
    kind = "together" if options.union else "each"
    yield "seeds", f"{near.num_seeds:,} {kind}, within {several(options.depth, 'step')}"
    yield "near", several(summary["rows"], "row")
    yield "seconds", f"{summary['seconds']:.6f}"
    yield from searches.compiling(summary["compile_seconds"])


def _tell_cut(options: argparse.Namespace, near: Neighborhood) -> None:
    """Say what the limit has cut off, also to who asked for silence."""
    cut = near.cut
    if not cut:
        return
    if options.union:
        _log.error("--limit %s has cut off what is near the seeds", f"{options.limit:,}")
        return
    shown = ", ".join(map(called, cut[:_SHOWN_SEEDS])) + (" …" if len(cut) > _SHOWN_SEEDS else "")
    _log.error(
        "--limit %s has cut off what is near %s of %s seeds: %s",
        f"{options.limit:,}",
        f"{len(cut):,}",
        f"{near.num_seeds:,}",
        shown,
    )
