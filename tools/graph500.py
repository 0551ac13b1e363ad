"""run the Graph500 benchmark: construct a Kronecker graph, traverse it from 64 roots, validate each"""

from __future__ import annotations

import argparse
import sys

from oocbfs.tools import options as shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("--scale", type=shared.whole(1, 31), required=True, help="2^SCALE vertices")
    parser.add_argument(
        "--edge-factor", type=shared.edge_factor, default=16, help="edges per vertex"
    )
    parser.add_argument("--roots", type=shared.positive, default=64, help="default: 64")
    parser.add_argument("--seed", type=shared.seed, default=1)
    shared.add_threads(parser)
    parser.add_argument(
        "--memory", type=shared.size, metavar="SIZE", help="bound for the construction"
    )
    parser.add_argument(
        "--tmp",
        type=shared.folder,
        metavar="FOLDER",
        help="for edges and graph (default: the system's)",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> None:
    """Run and print the statistics block."""
    shared.announce_compilation()
    from oocbfs import graph500
    from oocbfs.formats.io.ordered import available_threads

    outcome = graph500.run(
        options.scale,
        options.edge_factor,
        num_roots=options.roots,
        seed=options.seed,
        threads=available_threads(options.threads),
        memory=options.memory,
        folder=options.tmp,
        progress=_say,
    )
    _say("")
    block = outcome.statistics()
    if options.json:
        shared.print_json({**block, "roots": outcome.roots, "seconds": outcome.seconds.tolist()})
        return
    for name, value in block.items():
        print(f"{name + ':':<28}{value:.9g}")


def _say(message: str) -> None:
    """Show what is being done, on a terminal only, each message over the last."""
    if sys.stderr.isatty():
        print(f"\r\033[K{message}", end="", file=sys.stderr, flush=True)
