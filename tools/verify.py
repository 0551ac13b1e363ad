"""check every checksum and every structural promise of a graph file"""

from __future__ import annotations

import argparse

from oocbfs.tools.shared import announcements, searches
from oocbfs.tools.shared import options as shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "graph", "--threads", "--json")


def run(options: argparse.Namespace) -> None:
    """Verify and say so."""
    announcements.announce()
    if searches.is_sharded(options):
        from oocbfs.cluster.verify import verify
    else:
        from oocbfs.graph.verifier import verify
    phases = verify(options.graph, threads=options.threads, progress=True)
    seconds = sum(phases.values())
    report = {
        "graph": options.graph,
        "sound": True,
        "seconds": seconds,
        "seconds_by_phase": phases,
    }
    line = f"{options.graph}: sound ({seconds:.2f} s)"
    shared.print_report(options, report, (), above=(line,))
