"""find the distance of every vertex from a source, or from the nearest of several"""

from __future__ import annotations

import argparse
import sys
from itertools import accumulate
from typing import TYPE_CHECKING, get_args

from oocbfs.errors import QueryError
from oocbfs.settings import Direction
from oocbfs.tools import options as shared

if TYPE_CHECKING:
    from oocbfs.results.bfs import BfsResult, Level
    from oocbfs.search.graph import Graph

# A table longer than this shows its first and last levels.
_SHOWN_LEVELS = 40
# Levels are 32 bits wide.
_DEPTH = shared.whole(0, 2**31 - 1)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.add_argument("graph", type=shared.path, metavar="GRAPH.ocg")
    parser.add_argument(
        "--source",
        required=True,
        type=_ids,
        metavar="ID",
        help="an id, or several as 1,2,3, or giant: the smallest id of the largest component",
    )
    for name in ("levels", "parents"):
        parser.add_argument(
            f"--{name}",
            type=shared.path,
            metavar="FILE",
            help=f"write {name} as .npy, .csv or .tsv",
        )
    parser.add_argument(
        "--target", type=shared.whole_number, metavar="ID", help="stop there and print the path"
    )
    parser.add_argument("--max-depth", type=_DEPTH, metavar="N", help="stop after so many levels")
    shared.add_engine_options(parser)
    parser.add_argument(
        "--direction",
        choices=get_args(Direction),
        default="auto",
        help="force one (default: each level takes the cheaper)",
    )
    parser.add_argument(
        "--alpha",
        type=shared.number,
        default=15.0,
        help="go bottom-up when the frontier's edges exceed the unexplored ones / ALPHA (15)",
    )
    parser.add_argument(
        "--beta",
        type=shared.number,
        default=2.0,
        help="stay so while they exceed 1 / BETA of those that bottom-up would examine (2)",
    )
    parser.add_argument("--validate", action="store_true", help="check by the rules of Graph500")
    parser.add_argument(
        "--plot", type=shared.path, metavar="FILE", help="draw the levels as .svg or .png"
    )
    shared.add_output_options(parser)


def _ids(text: str) -> list[int] | None:
    """Read ids; None is one of the giant's."""
    return None if text == "giant" else [shared.whole_number(part) for part in text.split(",")]


def _giant(opened: Graph, options: argparse.Namespace) -> int:
    """Find a source in the largest component."""
    giant = opened.components(threads=options.threads, tmp=options.tmp).giant
    if giant is None:
        raise QueryError(f"{opened.path}: has no vertex to start from")
    return giant.label


def run(options: argparse.Namespace) -> None:
    """Traverse, write what was asked for, and report."""
    from oocbfs.formats.output.atomic import check_outputs
    from oocbfs.formats.output.vectors import check_name, write_vector

    for path in filter(None, (options.levels, options.parents)):
        check_name(path)
    if options.plot:
        from oocbfs.plot import check_plot

        check_plot(options.plot)
    outputs = {f"--{name}": getattr(options, name) for name in ("levels", "parents", "plot")}
    check_outputs(outputs, inputs=[options.graph], force=options.force)
    shared.announce_compilation()
    shared.announce_unpacking()
    from oocbfs.search import graph

    with graph.open(options.graph, memory=options.memory) as opened:
        result = opened.bfs(
            options.source or _giant(opened, options),
            parents=options.parents is not None,
            threads=options.threads,
            direction=options.direction,
            alpha=options.alpha,
            beta=options.beta,
            max_depth=options.max_depth,
            target=options.target,
            validate=options.validate,
            engine=options.engine,
            vram=options.vram,
            resident_tails=options.resident_tails,
            progress=True,
            tmp=options.tmp,
        )
        for path, name in ((options.levels, "level"), (options.parents, "parent")):
            if path is not None:
                values = result.levels if name == "level" else result.parents
                write_vector(
                    path,
                    name,
                    opened.ids_at,
                    values,
                    threads=result.stats.threads,
                    force=options.force,
                )
        if options.plot:
            from oocbfs.plot import plot_levels

            plot_levels(result, options.plot, force=options.force)
        path_found = _path(result, options.target)
        summary = result.summary()
    if result.stats.fallback:
        print(f"using the CPU: {result.stats.fallback}", file=sys.stderr)
    if options.json:
        shared.print_json({**summary, "path": path_found, "validated": options.validate})
    else:
        _print_tables(result, options, path_found)


def _path(result: BfsResult, target: int | None) -> list[int] | None:
    """Give the path to the target, if there is one to be found."""
    if target is None or result.level_of(target) < 0:
        return None
    return result.path_to(target)


def _print_tables(result: BfsResult, options: argparse.Namespace, path: list[int] | None) -> None:
    stats = result.stats
    tiers = sorted({tier for level in stats.levels for tier in level.slow_bytes})
    print(
        "level  direction     frontier  edges examined  heads answered       seconds"
        + "".join(f"  {tier + ' bytes':>15}" for tier in tiers)
    )
    firsts = accumulate((level.num_levels for level in stats.levels), initial=0)
    levels = list(zip(firsts, stats.levels, strict=False))
    hidden = len(levels) - _SHOWN_LEVELS
    for number, level in levels if hidden <= 0 else levels[: _SHOWN_LEVELS // 2]:
        print(_row(number, level, tiers))
    if hidden > 0:
        print(f"  …    {hidden:,} levels more")
        for number, level in levels[-(_SHOWN_LEVELS // 2) :]:
            print(_row(number, level, tiers))
    print()
    examined = sum(level.edges_examined or 0 for level in stats.levels)
    looks = f", {examined:,} looks at one" if examined else ""
    reached = (
        f"{result.reached:,} of {result.graph.num_vertices:,} vertices, depth {result.depth:,}"
    )
    rows = [
        ("reached", reached),
        ("edges", f"{stats.edges_traversed:,} in the reached part{looks}"),
        (
            "seconds",
            f"{stats.seconds:.6f} with {stats.threads} threads on the {stats.engine} engine",
        ),
        ("renaming", f"{stats.map_seconds:.6f} s into input ids"),
        ("edges/second", f"{stats.edges_per_second:,.0f}"),
    ]
    for tier, moved in stats.slow_bytes_by_tier.items():
        share = moved / max(1, stats.graph_bytes)
        rows.append((shared.TIERS[tier], f"{moved:,} bytes, {share:.1%} of the graph"))
    if options.validate:
        rows.append(("validated", "levels and parents" if options.parents else "levels"))
    if options.target is not None:
        found = f"{len(path) - 1} steps: " + " → ".join(map(str, path)) if path else "not reached"
        rows.append((f"path to {options.target}", found))
    shared.print_table(rows)
    for name in (options.levels, options.parents, options.plot):
        if name:
            print(f"wrote {name}", file=sys.stderr)


def _row(number: int, level: Level, tiers: list[str]) -> str:
    edges = "–" if level.edges_examined is None else f"{level.edges_examined:,}"
    shown = str(number) if level.num_levels == 1 else f"{number}…{number + level.num_levels - 1}"
    return (
        f"{shown:>5}  {level.direction:<9}  {level.frontier:>11,}  {edges:>14}  "
        f"{level.heads_answered:>14,}  {level.seconds:>12.6f}"
        + "".join(f"  {level.slow_bytes.get(tier, 0):>15,}" for tier in tiers)
    )
