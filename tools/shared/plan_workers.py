"""The part of the verb ``plan`` that is about several machines."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from oocbfs.errors import QueryError
from oocbfs.memory import format_size
from oocbfs.tools.shared import options as shared

if TYPE_CHECKING:
    from oocbfs.plan.messages import Frontier, LevelMessages, MessagePlan, Planned

# Where levels are from if a graph is searched for them.
SAMPLED = "a sampled source"


def _bandwidth(text: str) -> str:
    """Check a rate."""
    from oocbfs.plan.messages import parse_bandwidth

    return shared.checked(text, parse_bandwidth)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that plan messages."""
    machines = "plan what so many machines would send each other (default: plan for this machine)"
    shared.add_value(parser, "--workers", shared.whole(1, 1 << 20), "N", machines)
    rate = "bits a second of a machine's link, as 25G (default: 10G)"
    shared.add_value(parser, "--bandwidth", _bandwidth, "RATE", rate, default="10G")
    waits = "milliseconds that a level waits (default: 0.2 under MPI, 22 under Dask)"
    shared.add_value(parser, "--latency", shared.number, "MS", waits)
    levels = "take the levels from what 'oocbfs bfs --json' printed (default: sampled)"
    shared.add_value(parser, "--result", shared.path, "FILE", levels)


def is_wanted(options: argparse.Namespace) -> bool:
    """Return whether machines are planned for; refuse what makes no sense without them."""
    is_described = options.vertices is not None
    if options.workers is None:
        if options.graph is None:
            options.refuse("the following arguments are required: GRAPH.ocg")
        if options.result is not None:
            options.refuse("--result is for --workers")
        from oocbfs.cluster.manifest import MANIFEST

        if os.path.exists(os.path.join(options.graph, MANIFEST)):
            raise QueryError(f"{options.graph}: is a sharded graph: plan it with --workers")
        return False
    for name in ("gpu", "vram", "memory", "resident_tails", "source"):
        if getattr(options, name) is not None:
            options.refuse(f"--{name.replace('_', '-')} is for one machine: leave out --workers")
    if options.graph is not None and is_described:
        options.refuse("give GRAPH.ocg, or --vertices and --edges, not both")
    if options.graph is None and not is_described and options.result is None:
        options.refuse("give GRAPH.ocg, --vertices and --edges, or --result")
    return True


def run(options: argparse.Namespace) -> None:
    """Plan for machines that share a graph, and print what they would send."""
    from oocbfs.plan.messages import MODEL, Machines, depths, parse_bandwidth, plan_messages

    graph, frontiers, origin = _graph(options)
    machines = Machines(options.workers, parse_bandwidth(options.bandwidth))
    if options.latency is not None:
        waits = options.latency / 1000
        machines = replace(machines, latency=waits, coordinator_latency=waits)
    found = plan_messages(
        graph.vertices, graph.arcs, frontiers, machines, graph.file_bytes, graph.named
    )
    sampled = origin == SAMPLED and graph.directed is False
    summary = {
        "graph": options.graph,
        "vertices": graph.vertices,
        "edges": graph.edges,
        "arcs": graph.arcs,
        "file_bytes": graph.file_bytes,
        "levels_from": origin,
        "depths": depths(len(frontiers) - 1) if sampled and frontiers else None,
        "machines": asdict(machines),
        "model": MODEL,
        **asdict(found),
    }
    shared.print_report(options, summary, [], above=_lines(summary, found))


def _graph(options: argparse.Namespace) -> tuple[Planned, list[Frontier], str]:
    """Return what is known of a graph, its levels, and where these are from."""
    from oocbfs.plan.messages import Planned, read_frontiers, scaled, uniform_frontiers

    if options.result is not None:
        measured_vertices, measured_arcs, frontiers = read_frontiers(options.result)
        if options.graph is None:
            vertices = options.vertices or measured_vertices
            arcs = measured_arcs if options.arcs is None else options.arcs
            grown = scaled(frontiers, vertices / measured_vertices, arcs / max(1, measured_arcs))
            return Planned(vertices, arcs), grown, options.result
        graph, _ = _sampled(options.graph, 0)
        if (graph.vertices, graph.arcs) != (measured_vertices, measured_arcs):
            raise QueryError(f"{options.result}: is the result of another graph")
        return graph, frontiers, options.result
    if options.graph is not None:
        return *_sampled(options.graph, max(1, options.samples)), SAMPLED
    frontiers = uniform_frontiers(options.vertices, options.arcs)
    return Planned(options.vertices, options.arcs), frontiers, "a random graph of this size"


def _sampled(path: str, samples: int) -> tuple[Planned, list[Frontier]]:
    """Search from random sources; return the levels of the deepest."""
    from oocbfs.cluster.manifest import is_sharded
    from oocbfs.graph.stored import open_stored

    if is_sharded(path):
        return _sampled_shards(path, samples)
    import numpy as np

    from oocbfs.plan.messages import Planned, sampled_frontiers
    from oocbfs.plan.prediction import sample_levels
    from oocbfs.progress import Phases

    with open_stored(path) as opened, opened.reading():
        sizes = opened.num_vertices, opened.num_arcs, opened.sizes.file_bytes, opened.directed
        found = sample_levels(opened, samples, Phases()) if samples else []
        if not found:
            return Planned(*sizes), []
        deepest = max(found, key=lambda sample: sample.num_levels)
        reached = deepest.levels >= 0
        degrees = np.asarray(opened.rows.degrees)[reached]
        edges = np.bincount(deepest.levels[reached], weights=degrees)
        return Planned(*sizes), sampled_frontiers(deepest.sizes.tolist(), edges.tolist())


def _sampled_shards(path: str, samples: int) -> tuple[Planned, list[Frontier]]:
    """Search a sharded graph, in this process; it says itself which levels went up."""
    import numpy as np

    from oocbfs.plan.messages import Frontier, Planned
    from oocbfs.search.sharded import open_sharded
    from oocbfs.settings import Settings

    with open_sharded(path) as opened:
        stored = opened._stored
        shape = stored.shape
        graph = Planned(
            opened.num_vertices,
            opened.num_arcs,
            stored.manifest.file_bytes,
            opened.directed,
            named=(shape.useful, shape.non_isolated),
        )
        candidates = np.flatnonzero(stored.stored_degrees)
        chosen = np.random.default_rng(1).permutation(candidates)[:samples]
        forced = Settings(force=True)
        results = [opened.bfs(int(one), options=forced) for one in stored.ids_of(chosen)]
        if not results:
            return graph, []
        deepest = max(results, key=lambda result: result.depth)
        return graph, [
            Frontier(
                level.frontier,
                level.exchange["frontier_edges"],
                level.direction != "top-down",
                level.exchange["vertices"],
            )
            for level in deepest.stats.levels
            if level.exchange is not None
        ]


def _lines(summary: dict[str, Any], found: MessagePlan) -> Iterator[str]:
    name = summary["graph"] or "a graph"
    workers, rate = summary["machines"]["workers"], 8 * summary["machines"]["bandwidth"]
    yield (
        f"{name}: {summary['vertices']:,} vertices, {summary['arcs']:,} arcs; "
        f"{workers:,} workers, {rate / 1e9:g} Gbit/s"
    )
    parts = ", ".join(f"{name} {format_size(size)}" for name, size in found.worker_bytes.items())
    yield f"a worker holds {format_size(sum(found.worker_bytes.values()))}: {parts}"
    yield ""
    yield _row(
        "level", "direction", "frontier", "its edges", "bottom-up", "top-down", "coordinator"
    )
    yield from shared.shortened(list(enumerate(found.levels)), lambda pair: _level(*pair))
    yield ""
    for exchange in found.exchanges:
        yield (
            f"{exchange.name:<20} {format_size(exchange.num_bytes):>10} a search, "
            f"{exchange.seconds:,.3f} s of messages, of which {exchange.latency_seconds:,.3f} wait"
        )
    if summary["depths"] is not None:
        least, most = summary["depths"]
        yield (
            f"depth: {len(found.levels) - 1:,} from the sampled source; "
            f"{least:,} to {most:,} from any other that it reaches"
        )
    yield from (f"warning: {warning}" for warning in found.warnings)
    yield ""
    yield f"Predictions, not measurements; levels of {summary['levels_from']}. {summary['model']}"


def _level(number: int, level: LevelMessages) -> str:
    sent = map(format_size, (level.bottom_up_bytes, level.top_down_bytes, level.coordinator_bytes))
    return _row(number, level.direction, f"{level.frontier:,.0f}", f"{level.edges:,.0f}", *sent)


def _row(number: object, direction: str, frontier: str, edges: str, *sent: str) -> str:
    row = f"{number:>5}  {direction:<9}  {frontier:>15}  {edges:>19}"
    return row + "".join(f"  {size:>11}" for size in sent)
