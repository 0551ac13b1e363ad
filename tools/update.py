"""add edges to a graph file and take others out, in place, without sorting it again

The new file replaces the old one when it is whole: open readers keep the old one, and whatever
happens meanwhile, the file is the old graph or the new one. What is removed is removed even if it
is added, too.
"""

from __future__ import annotations

import argparse

from oocbfs.tools import convert
from oocbfs.tools.shared import announcements
from oocbfs.tools.shared import options as shared

_READING = (
    *("add", "remove", "remove_vertices"),
    *("ids", "format", "columns", "delimiter", "header", "where"),
)
_WORK = ("directed", "order", "memory", "tmp", "codec", "threads")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    shared.add(parser, "graph", help="the graph to replace")
    parser.add_argument(
        "--add",
        nargs="+",
        type=shared.path,
        metavar="INPUT",
        help="edges to add: files or folders of them, graphs, or - for standard input "
        "(default: none)",
    )
    convert.add_removing(parser)
    convert.add_reading(parser)
    shared.add_work_options(parser, from_graph=True, in_place=True)


def run(options: argparse.Namespace) -> None:
    """Update and report."""
    announcements.announce_compilation()
    from oocbfs.conversion.update import update

    settings = shared.chosen(options, *_READING, *_WORK)
    report = update(options.graph, progress=True, **settings)
    shared.print_report(options, report.as_dict(), convert.table(report))
