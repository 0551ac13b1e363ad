"""run the Graph500 benchmark: construct a Kronecker graph, search it from 64 roots, validate"""

from __future__ import annotations

import argparse

from oocbfs.tools.shared import announcements
from oocbfs.tools.shared import options as shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "--scale", type=shared.whole(1, 31))
    shared.add(parser, "--edge-factor")
    roots = "roots to search from (default: 64)"
    shared.add_value(parser, "--roots", shared.positive, "N", roots, default=64)
    shared.add(parser, "--seed")
    shared.add(parser, "--engine", help="what searches; see oocbfs bfs (default: auto)")
    shared.add(parser, "--threads")
    limit = "limit for the construction, such as 4G (default: half of what is free)"
    shared.add(parser, "--memory", help=limit)
    shared.add(parser, "--tmp", help="folder for edges and graph (default: the system's)")
    shared.add(parser, "--json")


def run(options: argparse.Namespace) -> None:
    """Run and print the statistics block."""
    announcements.announce_compilation()
    from oocbfs import graph500
    from oocbfs.formats.io.ordered import available_threads

    result = graph500.run(
        options.scale,
        options.edge_factor,
        num_roots=options.roots,
        folder=options.tmp,
        threads=available_threads(options.threads),
        progress=True,
        **shared.chosen(options, "seed", "engine", "memory"),
    )
    values = {
        **result.statistics(),
        "engine": result.engine,
        "threads": result.threads,
        "roots": result.roots,
        "seconds": result.seconds.tolist(),
        "nedge": [int(count) for count in result.edges],
        "validate_seconds": result.validation_seconds.tolist(),
    }
    shared.print_report(options, values, (), above=result.lines())
