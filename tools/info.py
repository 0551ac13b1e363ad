"""show what a graph file holds"""

from __future__ import annotations

import argparse

from oocbfs.memory import format_size
from oocbfs.tools import options as shared


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("graph", type=shared.path, metavar="GRAPH.ocg")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def run(options: argparse.Namespace) -> None:
    """Print the header and the sections."""
    from oocbfs.search import graph

    with graph.open(options.graph) as opened:
        info = opened.info()
    if options.json:
        shared.print_json(info)
        return
    kind = "directed, with its transpose" if info["directed"] else "undirected, stored both ways"
    ids = "as listed" if info["ids"] == "listed" else f"consecutive from {info['first_id']}"
    shared.print_table(
        (
            ("graph", f"{info['path']} ({format_size(info['file_bytes'])}, {kind})"),
            (
                "vertices",
                f"{info['vertices']:,} ({info['vertices_in_input']:,} in the input; ids {ids})",
            ),
            ("edges", f"{info['edges']:,} (directed)"),
            ("max degree", f"{info['max_degree']:,}"),
            ("order", info["order"]),
            ("bits per edge", f"{info['bits_per_edge']:.2f}"),
            (
                "input",
                f"{info['edges_read']:,} edges, {info['duplicates']:,} duplicate, {info['loops']:,} loops",
            ),
            ("format", f"version {info['format_version']}"),
            *(
                [("memory", f"{format_size(info['unpacked_bytes'])} once unpacked")]
                if info["unpacked_bytes"]
                else []
            ),
            *(
                (
                    f"  {section['name']}",
                    f"{format_size(section['bytes'])} {section['encoding']}"
                    + (
                        f", {format_size(section['stored_bytes'])} stored"
                        if section["encoding"] != "raw"
                        else ""
                    ),
                )
                for section in info["sections"]
            ),
        )
    )
