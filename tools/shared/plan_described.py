"""The part of the verb ``plan`` that is about a graph that does not exist yet."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from oocbfs.memory import available_bytes, format_size, parse_size
from oocbfs.options import read_whole
from oocbfs.tools.shared import options as shared

# Of a graph that is only described; which of them a file may hold is said when they are looked at.
_MOST_VERTICES, _MOST_ARCS = 1 << 40, 1 << 48


def _count(most: int) -> Any:
    """Make a function that reads a whole number, which may be written as 3.5e9."""

    def read(text: str) -> int:
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?e[0-9]{1,2}", text):
            text = f"{Decimal(text).normalize():f}"
        return read_whole(text, range(most + 1))

    return shared.typed(read)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what a graph is described by."""
    described = "plan for a graph that is only described, as 3.5e9 (default: for GRAPH.ocg)"
    shared.add_value(parser, "--vertices", _count(_MOST_VERTICES), "N", described)
    edges = "its edges; with --directed each is one arc, otherwise two (no default)"
    shared.add_value(parser, "--edges", _count(_MOST_ARCS), "N", edges)
    arcs = "its arcs, instead of --edges: directed edges, and undirected ones twice (no default)"
    shared.add_value(parser, "--arcs", _count(_MOST_ARCS), "N", arcs)
    shared.add_flag(parser, "--directed", "the edges that --edges counts have directions")


def is_wanted(options: argparse.Namespace) -> bool:
    """Return whether a graph is described and no machines are given; refuse half of it."""
    if options.edges is not None:
        if options.arcs is not None:
            options.refuse("give --edges or --arcs, not both")
        options.arcs = options.edges * (1 if options.directed else 2)
    elif options.directed:
        options.refuse("--directed is for --edges")
    if (options.vertices is None) != (options.arcs is None):
        options.refuse("--vertices and --edges (or --arcs) belong together")
    if options.vertices is None or options.workers is not None:
        return False
    if options.graph is not None:
        options.refuse("give GRAPH.ocg, or --vertices and --edges, not both")
    for name in ("gpu", "vram", "resident_tails", "source", "result"):
        if getattr(options, name) is not None:
            options.refuse(f"--{name.replace('_', '-')} is for a graph that is there")
    return True


def run(options: argparse.Namespace) -> None:
    """Plan for a graph that is only described, and print what it takes."""
    from oocbfs.formats.io.ordered import available_threads
    from oocbfs.plan.described import Described, plan_described
    from oocbfs.plan.messages import parse_bandwidth

    num_edges = options.arcs // (1 if options.directed else 2)
    graph = Described(options.vertices, num_edges, options.directed)
    summary = plan_described(
        graph,
        budget_bytes=available_bytes() if options.memory is None else parse_size(options.memory),
        bandwidth=parse_bandwidth(options.bandwidth),
        threads=available_threads(options.threads),
    )
    lines = [*shared.in_columns(_rows(summary)), "", f"Predictions. {summary['model']}"]
    shared.print_report(options, summary, (), above=[_shape(summary), *lines])


def _shape(summary: dict[str, Any]) -> str:
    kind = "directed" if summary["directed"] else "undirected"
    return f"{summary['vertices']:,} vertices, {summary['edges']:,} edges, {kind}"


def _rows(summary: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Write the answers for people."""
    budget = format_size(summary["memory_bytes"])
    likely, most = summary["file_bytes"], summary["file_at_most_bytes"]
    yield "file", f"about {format_size(likely)}, at most {format_size(most)}"
    convert, search, shards = summary["convert"], summary["search"], summary["shards"]
    disk = f"at most {format_size(convert['disk_at_most_bytes'])} on disk, with the file"
    fits = convert["needed_bytes"] <= summary["memory_bytes"]
    yield "converting", _needs(convert, budget if not fits else None, disk)
    where = "from disk" if search["engine"] == "disk" else "in memory"
    yield "a search", _needs(search, budget if search["engine"] is None else None, where)
    if shards is None:
        yield "shards", f"no number of machines of {budget} has room"
    else:
        held = format_size(shards["held_bytes"])
        yield "shards", f"{shards['workers']:,} machines hold {held} each"
        rate = f"{8 * shards['bandwidth'] / 1e9:g} Gbit/s"
        for exchange in shards["exchanges"]:
            sent, seconds = format_size(exchange["num_bytes"]), exchange["seconds"]
            yield f"  {exchange['name']}", f"{sent} a search, {seconds:,.3f} s at {rate}"


def _needs(found: dict[str, Any], too_little: str | None, more: str) -> str:
    """Write what a step needs, or that a budget is too little for it."""
    needed = format_size(found["needed_bytes"])
    if too_little is not None:
        return f"cannot within {too_little}: needs {needed} of memory"
    return f"needs {needed} of memory; {more}; {_time(found['seconds'])}"


def _time(seconds: float) -> str:
    """Write seconds, or hours where there are many."""
    return f"about {seconds:,.1f} s" if seconds < 3600 else f"about {seconds / 3600:,.1f} hours"
