"""write one page about a graph: degrees, components, levels, plans; it needs no other file"""

from __future__ import annotations

import argparse
import logging
import shlex

from oocbfs.settings import file_name
from oocbfs.tools.shared import announcements
from oocbfs.tools.shared import options as shared

_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "graph")
    shared.add(parser, "--output", metavar="FILE.html", help="the page to write")
    searches = "searches to show, 8 at most (default: 4)"
    shared.add_value(parser, "--sources", shared.whole(1, 8), "N", searches, default=4)
    shared.add(parser, "--seed", help="seed of random sources (default: 1)")
    limit = "limit for the process, as for bfs; then nothing is predicted (default: none)"
    shared.add(parser, "--memory", help=limit)
    shared.add(
        parser, "--tmp", help="folder for results that do not fit in memory (default: the graph's)"
    )
    shared.add(parser, "--threads", "--force", "--json")


def run(options: argparse.Namespace) -> None:
    """Search, write the page, and say where it is."""
    from oocbfs.errors import OutputError
    from oocbfs.formats.output.atomic import atomic_output, check_outputs

    if not options.output.lower().endswith((".html", ".htm")):
        raise OutputError(f"{options.output}: name the page .html")
    check_outputs({"-o": options.output}, inputs=[options.graph], force=options.force)
    announcements.announce()
    from oocbfs.report.facts import gather
    from oocbfs.report.page import as_html
    from oocbfs.search import graph
    from oocbfs.tools.plan import plan_known

    with graph.open_file(options.graph, memory=options.memory) as opened:
        with opened._stored.reading():
            plan = None if options.memory else plan_known(opened._stored, options.sources)
        facts = gather(
            opened,
            num_sources=options.sources,
            seed=options.seed,
            plan=plan,
            command=_command(options),
            **shared.chosen(options, "threads", "tmp"),
        )
        html = as_html(opened, facts)
        with atomic_output(options.output, force=options.force) as file:
            file.write(html.encode())
        if options.json:
            shared.print_json(facts.summary())
    if not options.json:
        _log.info("wrote %s: %s bytes", options.output, f"{len(html.encode()):,}")


def _command(options: argparse.Namespace) -> str:
    """Write the command that makes the same page again; folders are left out."""
    words = ["oocbfs", "report", file_name(options.graph)]
    words += ["-o", file_name(options.output)]
    words += ["--sources", str(options.sources), "--seed", str(options.seed)]
    if options.memory:
        words += ["--memory", options.memory]
    return shlex.join(words)
