"""convert any edge list into one compressed .ocg file, in bounded memory"""

from __future__ import annotations

import argparse
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args

from oocbfs.errors import OutputError
from oocbfs.formats.readers.table import FORMATS, UNMARKED
from oocbfs.memory import format_size
from oocbfs.options import read_share
from oocbfs.settings import IdNames
from oocbfs.tools.shared import announcements, tables
from oocbfs.tools.shared import options as shared

if TYPE_CHECKING:
    from oocbfs.conversion.converter import Report

_FORMATS = ", ".join(format.title for format in FORMATS if format.name not in UNMARKED)
_DESCRIPTION = (
    f"Formats are recognised by content: {_FORMATS}; each plain or as gzip, zstd, xz, bzip2 or zip."
)


# Options of this verb alone, by their names in Python.
_READING = ("ids", "format", *tables.COLUMNS, "where", "allow_empty")
_SAMPLING = ("sample", "sample_vertices", "seed")
_REMOVING = ("remove", "remove_vertices")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = f"{__doc__}\n\n{textwrap.fill(_DESCRIPTION, 96)}"
    parser.add_argument(
        "inputs",
        nargs="+",
        type=shared.path,
        metavar="INPUT",
        help="files, folders of files, graphs, or - for standard input",
    )
    shared.add(parser, "--output", metavar="GRAPH.ocg")
    add_reading(parser)
    _add_sampling(parser)
    add_removing(parser)
    shared.add_flag(parser, "--allow-empty", "take inputs without edges, too")
    shared.add_work_options(parser, from_graph=True)
    shared.add(
        parser,
        "--parts",
        help="write a folder of so many shards; see oocbfs shard (default: one file)",
    )


def add_reading(parser: argparse.ArgumentParser) -> None:
    """Declare how edges are read."""
    tables.add_columns(parser)
    parser.add_argument(
        "--ids",
        choices=get_args(IdNames),
        default="auto",
        help="vertices are all ids up to the largest, or those that occur (default: auto, by "
        "density); names: ids are text, or numbers of any size",
    )
    tables.add_where(parser)


def _add_sampling(parser: argparse.ArgumentParser) -> None:
    """Declare which part of all edges is taken."""
    for name, what in (
        ("--sample", "edges, in all their copies and both directions"),
        ("--sample-vertices", "vertices, with the edges among them"),
    ):
        text = f"take a share of the {what}, by a hash of their ids (default: all)"
        shared.add_value(parser, name, shared.typed(read_share), "PERCENT", text)
    shared.add(parser, "--seed", help="the same seed takes the same sample (default: 1)")


def add_removing(parser: argparse.ArgumentParser) -> None:
    """Declare what is taken out."""
    parser.add_argument(
        "--remove",
        nargs="+",
        type=shared.path,
        metavar="INPUT",
        help="edges to leave out, in files or graphs as the inputs are; those that are not there "
        "are counted (default: none)",
    )
    shared.add_value(
        parser,
        "--remove-vertices",
        shared.path,
        "FILE",
        "vertices to leave out with all their edges: a file of ids, one in each line "
        "(default: none)",
    )


def run(options: argparse.Namespace) -> None:
    """Convert and report."""
    if options.output == "-":
        raise OutputError("a graph cannot be written to standard output: name a file")
    settings = shared.chosen(options, *_READING, *_SAMPLING, *_REMOVING)
    if options.parts is not None:
        settings["parts"] = options.parts
    convert(options.inputs, options, **settings)


def convert(inputs: object, options: argparse.Namespace, **settings: Any) -> None:
    """Convert anything that ``oocbfs.convert`` takes and print the report."""
    announcements.announce_compilation()
    from oocbfs.cluster import sharding
    from oocbfs.conversion import converter

    make = sharding.convert_sharded if "parts" in settings else converter.convert
    report: Report = make(
        inputs,
        options.output,
        progress=True,
        **shared.chosen(options, *shared.WORK),
        **settings,
    )
    shared.print_report(options, report.as_dict(), table(report))


def table(report: Report) -> tuple[tuple[str, str], ...]:
    """Write what a conversion did in two columns."""
    phases = ", ".join(f"{name} {seconds:.2f}" for name, seconds in report.seconds_by_phase.items())
    kind = "directed, with its transpose" if report.directed else "undirected, stored both ways"
    ids = shared.kind_of_ids(report.ids, report.first_id)
    taken = tuple(
        (name, text)
        for name, text in (("columns", report.columns), ("sample", report.sample))
        if text
    )
    return (
        ("graph", f"{report.output} ({format_size(report.file_bytes)})"),
        ("direction", f"{kind}: {report.directed_why}"),
        *taken,
        (
            "vertices",
            f"{report.vertices:,} ({report.vertices_in_input:,} in the input; ids {ids})",
        ),
        ("edges read", f"{report.edges_read:,}"),
        ("  loops", f"{report.loops:,} dropped"),
        ("  duplicates", f"{report.duplicates:,} dropped"),
        *_taken_out(report),
        ("edges", shared.count_edges(report.edges, directed=report.directed)),
        ("max degree", shared.max_degree(report.directed, report.max_degree)),
        ("order", f"{report.order}: {report.order_why}"),
        ("codec", f"{report.codec}: {report.codec_why}"),
        ("bits per arc", f"{report.bits_per_arc:.2f}"),
        ("seconds", f"{report.seconds:.2f} with {report.threads} threads ({phases})"),
        ("peak memory", format_size(report.peak_bytes)),
        ("spilled", f"{format_size(report.spilled_bytes)}{_promised(report)}"),
    )


def _promised(report: Report) -> str:
    most = report.disk_at_most_bytes
    return "" if most is None else f"; at most {format_size(most)} on disk, with the graph file"


def _taken_out(report: Report) -> Iterator[tuple[str, str]]:
    """Say what was removed, and what of the wish was not there."""
    for what, removed, missing in (
        ("edges", report.removed_edges, report.missing_edges),
        ("vertices", report.removed_vertices, report.missing_vertices),
    ):
        if removed or missing:
            yield (f"{what} removed", f"{removed:,}; {missing:,} more were not there")
