"""show what a graph file holds"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import Any

from oocbfs.memory import format_size
from oocbfs.tools.shared import options as shared
from oocbfs.tools.shared import searches


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "graph", "--json")


def run(options: argparse.Namespace) -> None:
    """Print what the header says, and the sections."""
    with searches.open_graph(options) as opened:
        info = opened.info()
    parts = map(_shard_row, info.get("parts", ()))
    sections = map(_section_row, info["sections"])
    shared.print_report(options, info, [*_graph_rows(info), *parts, *sections])


def _graph_rows(info: dict[str, Any]) -> Iterator[tuple[str, str]]:
    kind = "directed, with its transpose" if info["directed"] else "undirected, stored both ways"
    ids = shared.kind_of_ids(info["ids"], info["first_id"])
    vertices = f"{info['vertices']:,} ({info['vertices_in_input']:,} in the input; ids {ids})"
    dropped = f"{info['duplicates']:,} duplicate, {info['loops']:,} loops"
    yield "graph", f"{info['path']} ({format_size(info['file_bytes'])}, {kind})"
    yield "vertices", vertices
    yield "edges", shared.count_edges(info["edges"], directed=info["directed"])
    yield "max degree", shared.max_degree(info["directed"], info["max_degree"])
    yield "order", info["order"]
    yield "bits per arc", f"{info['bits_per_arc']:.2f}"
    yield "input", f"{info['edges_read']:,} edges, {dropped}"
    yield "format", f"version {info['format_version']}"
    if info["unpacked_bytes"]:
        yield "memory", f"{format_size(info['unpacked_bytes'])} once unpacked"


def _section_row(section: dict[str, Any]) -> tuple[str, str]:
    text = f"{format_size(section['bytes'])} {section['encoding']}"
    if section["encoding"] != "raw":
        text += f", {format_size(section['stored_bytes'])} stored"
    return f"  {section['name']}", text


def _shard_row(part: dict[str, Any]) -> tuple[str, str]:
    text = f"{part['vertices']:,} vertices, {part['arcs']:,} arcs, {format_size(part['bytes'])}"
    return f"  {part['name']}", text
