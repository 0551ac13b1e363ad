"""run the Graph500 benchmark: construct a Kronecker graph, traverse it from 64 roots, validate"""

from __future__ import annotations

import argparse
import sys

from oocbfs.tools import announcements
from oocbfs.tools import options as shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "--scale", type=shared.whole(1, 31))
    shared.add(parser, "--edge-factor")
    parser.add_argument(
        "--roots", type=shared.positive, default=64, metavar="N", help="roots to traverse from (64)"
    )
    shared.add(parser, "--seed", "--threads")
    shared.add(parser, "--memory", help="limit for the construction, such as 4G")
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
        progress=_say,
        **shared.chosen(options, "seed", "memory"),
    )
    _say("")
    block = result.statistics()
    values = {**block, "roots": result.roots, "seconds": result.seconds.tolist()}
    lines = (f"{name + ':':<28}{value:.9g}" for name, value in block.items())
    shared.print_report(options, values, (), above=lines)


def _say(message: str) -> None:
    """Show what is being done, on a terminal only, each message over the last."""
    if sys.stderr.isatty():
        print(f"\r\033[K{message}", end="", file=sys.stderr, flush=True)
