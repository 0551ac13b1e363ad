"""cut a graph into shards, to be searched by several processes or machines

The cut is block-cyclic, by words of 64 vertices. The folder holds a manifest, a file with the
names of the vertices, and a file for each shard. It appears when it is whole.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from oocbfs.memory import format_size
from oocbfs.tools.shared import announcements
from oocbfs.tools.shared import options as shared

if TYPE_CHECKING:
    from oocbfs.cluster.manifest import Manifest


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    shared.add(parser, "graph")
    shared.add(parser, "--output", metavar="FOLDER", help="the folder to write")
    shared.add(parser, "--parts", required=True)
    shared.add(parser, "--codec")
    shared.add(parser, "--force", help="replace an existing folder of shards")
    shared.add(parser, "--json")


def run(options: argparse.Namespace) -> None:
    """Cut and report."""
    announcements.announce()
    from oocbfs.cluster.sharding import shard

    manifest = shard(
        options.graph,
        options.output,
        progress=True,
        **shared.chosen(options, "parts", "codec", "force"),
    )
    shared.print_report(options, _summary(manifest), _rows(manifest))


def _summary(manifest: Manifest) -> dict[str, Any]:
    return {
        "output": str(manifest.folder),
        "vertices": manifest.num_vertices,
        "edges": manifest.num_edges,
        "arcs": manifest.num_arcs,
        "directed": manifest.directed,
        "file_bytes": manifest.file_bytes,
        "parts": [vars(file) for file in manifest.shards],
    }


def _rows(manifest: Manifest) -> Iterator[tuple[str, str]]:
    size = format_size(manifest.file_bytes)
    yield "graph", f"{manifest.folder} ({size}, {len(manifest.shards)} shards)"
    yield "vertices", f"{manifest.num_vertices:,}"
    yield "edges", shared.count_edges(manifest.num_edges, directed=manifest.directed)
    for file in manifest.shards:
        yield f"  {file.name}", f"{file.arcs:,} arcs, {format_size(file.bytes)}"
