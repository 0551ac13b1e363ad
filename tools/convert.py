"""convert any edge list into one compressed .ocg file, in bounded memory

Formats are recognised by content: edge lists (space, tab, comma), adjacency lists, Matrix Market,
DIMACS, METIS, LDBC Graphalytics, GAP .sg, numpy and SciPy files; each plain or as gzip, zstd, xz,
bzip2 or zip.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, get_args

from oocbfs.errors import OutputError
from oocbfs.memory import format_size
from oocbfs.settings import IdNames
from oocbfs.tools import options as shared

if TYPE_CHECKING:
    from oocbfs.conversion.converter import Report

FORMATS = ("edges", "adjacency", "mtx", "dimacs", "metis", "ldbc", "sg", "npy", "npz", "u32", "u64")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "inputs",
        nargs="+",
        type=shared.path,
        metavar="INPUT",
        help="files, or - for standard input",
    )
    parser.add_argument("-o", "--output", type=shared.path, required=True, metavar="GRAPH.ocg")
    parser.add_argument("--format", choices=FORMATS, help="(default: recognised by content)")
    parser.add_argument(
        "--ids",
        choices=get_args(IdNames),
        default="auto",
        help="vertices are all ids up to the largest, or those that occur (default: by density)",
    )
    shared.add_work_options(parser)


def run(options: argparse.Namespace) -> None:
    """Convert and report."""
    if options.output == "-":
        raise OutputError("a graph cannot be written to standard output: name a file")
    convert(options.inputs, options, ids=options.ids, format=options.format)


def convert(inputs: object, options: argparse.Namespace, **settings: object) -> None:
    """Convert whatever ``oocbfs.convert`` takes and print the report."""
    shared.announce_compilation()
    from oocbfs.conversion import converter

    report = converter.convert(
        inputs,
        options.output,
        directed=options.directed,
        order=options.order,
        memory=options.memory,
        threads=options.threads,
        zstd=options.zstd,
        tmp=options.tmp,
        force=options.force,
        progress=True,
        **settings,  # type: ignore[arg-type]
    )
    if options.json:
        shared.print_json(report.as_dict())
    else:
        shared.print_table(_table(report))


def _table(report: Report) -> tuple[tuple[str, str], ...]:
    phases = ", ".join(f"{name} {seconds:.2f}" for name, seconds in report.seconds_by_phase.items())
    kind = "directed, with its transpose" if report.directed else "undirected, stored both ways"
    return (
        ("graph", f"{report.output} ({format_size(report.file_bytes)}, {kind})"),
        (
            "vertices",
            f"{report.vertices:,} ({report.vertices_in_input:,} in the input; ids {report.ids})",
        ),
        ("edges read", f"{report.edges_read:,}"),
        ("  loops", f"{report.loops:,} dropped"),
        ("  duplicates", f"{report.duplicates:,} dropped"),
        ("edges stored", f"{report.edges:,} (directed)"),
        ("max degree", f"{report.max_degree:,}"),
        ("order", f"{report.order}: {report.order_why}"),
        ("bits per edge", f"{report.bits_per_edge:.2f}"),
        ("seconds", f"{report.seconds:.2f} with {report.threads} threads ({phases})"),
        ("peak memory", format_size(report.peak_bytes)),
        ("spilled", format_size(report.spilled_bytes)),
    )
