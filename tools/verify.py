"""check every checksum and every structural promise of a graph file"""

from __future__ import annotations

import argparse

from oocbfs.tools import announcements
from oocbfs.tools import options as shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "graph", "--threads")


def run(options: argparse.Namespace) -> None:
    """Verify and say so."""
    announcements.announce()
    if shared.is_in_parts(options):
        from oocbfs.cluster.verify import verify
    else:
        from oocbfs.graph.verifier import verify
    seconds = verify(options.graph, threads=options.threads, progress=True)
    print(f"{options.graph}: sound ({sum(seconds.values()):.2f} s)")
