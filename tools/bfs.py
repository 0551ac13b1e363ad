"""find the distance of every vertex from a source, or from the nearest of several"""

from __future__ import annotations

import argparse
import logging
from collections.abc import Iterator
from dataclasses import asdict
from itertools import accumulate
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from oocbfs.errors import QueryError
from oocbfs.results.counts import COLUMNS
from oocbfs.settings import LARGEST_COMPONENT, Largest, Settings, is_verifying
from oocbfs.tools.shared import announcements, searches, vectors
from oocbfs.tools.shared import options as shared
from oocbfs.tools.shared.vertices import LARGEST, called, read_vertices, vertices

if TYPE_CHECKING:
    from oocbfs.results.bfs import BfsResult
    from oocbfs.results.counts import Counts
    from oocbfs.results.levels import Level
    from oocbfs.search.any_graph import AnyGraph

_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    # Neither is needed to list the methods.
    shared.add(parser, "graph", nargs="?")
    shared.add_value(
        parser,
        "--source",
        vertices,
        "ID",
        "an id or a name, several such as 1,2,3, or @largest: the smallest id of the largest "
        "component; a vertex of that name is '\"@largest\"' (no default)",
    )
    for name in ("levels", "parents"):
        vectors.add_vector(parser, f"--{name}", name)
    text = "write no rows of vertices that were not reached; .npy has no ids to tell rows apart"
    shared.add_flag(parser, "--reached-only", text)
    shared.add(parser, "--target", type=vertices)
    shared.add(parser, "--max-depth")
    shared.add_engine_options(parser)
    shared.add(parser, "--cluster")
    shared.add(parser, "--direction", "--validate", "--method", "--devices")
    shared.add_file(parser, "--plot", "draw the levels as .svg or .png")
    shared.add(parser, "--force", "--json")
    parser.set_defaults(refuse=parser.error)


def _sources(opened: AnyGraph, text: str) -> list[Any] | Largest:
    """Read ids or names, or the word for the largest component."""
    if text != LARGEST:
        return read_vertices(opened, text)
    if opened.names is not None and text in opened.names:
        _log.info("%s is the largest component; its vertex is '\"%s\"'", text, text)
    return LARGEST_COMPONENT


def _target(opened: AnyGraph, text: str | None) -> Any:
    """Read one id or name."""
    if text is None:
        return None
    found = read_vertices(opened, text)
    if len(found) > 1:
        raise QueryError(f"--target {text}: name one vertex")
    return found[0]


def _for_shards(options: argparse.Namespace) -> dict[str, Any]:
    """Return what only a sharded graph takes; its results are gathered if one file wants them."""
    if not searches.is_sharded(options):
        return {}
    from oocbfs.formats.output.part_files import is_folder

    files = [path for path in (options.levels, options.parents) if path is not None]
    return {"force": options.force, "gather": not all(map(is_folder, files))}


def _refuse_missing(options: argparse.Namespace) -> None:
    given = {"GRAPH.ocg": options.graph is not None, "--source": options.source is not None}
    missing = [name for name, is_given in given.items() if not is_given]
    if missing:
        options.refuse(f"the following arguments are required: {', '.join(missing)}")


def _list_methods(options: argparse.Namespace) -> None:
    """Print every method, what it does, whose it is, and its options."""
    from oocbfs.engines.lab import METHODS

    if options.json:
        shared.print_json({"methods": [asdict(method) for method in METHODS.values()]})
        return
    for method in METHODS.values():
        engines = ", ".join(method.engines)
        print(f"{method.name:<16} {method.line}")
        print(f"{'':<16} {method.paper}; {method.rows} rows; runs on {engines}")
        for option in method.options:
            joined = " joined by +" if option.several else ""
            values = "|".join(option.values)
            print(f"{'':<16} {option.name}={values}{joined} (default: {option.default})")


def run(options: argparse.Namespace) -> None:
    """Search, write what was asked for, and report."""
    if options.graph is None and options.method == "list":
        _list_methods(options)
        return
    _refuse_missing(options)
    vectors.check_files(options, "levels", "parents")
    announcements.announce()

    with searches.open_graph(options) as opened:
        target, sources = _target(opened, options.target), _sources(opened, options.source)
        if isinstance(sources, list) and len(sources) == 1 and _wants_path_only(options):
            _print_path(opened, sources[0], target, options)
            return
        result = opened.bfs(
            sources,
            parents=options.parents is not None,
            progress=True,
            target=target,
            **shared.chosen(options, "max_depth", "validate", *shared.ENGINE),
            options=Settings(
                **shared.chosen(options, "direction", "method", "devices", *shared.DEVICE),
                **_for_shards(options),
            ),
        )
        for path, name in ((options.levels, "level"), (options.parents, "parent")):
            if path is not None:
                between = result.levels_between if name == "level" else result.parents_between
                vectors.write_column(options, path, name, between, result)
        if options.plot:
            result.plot(options.plot, force=options.force)
        path_found = _path(result, target)
        summary = result.summary() if options.json else {}
    searches.tell_engine(result.stats)
    options.validate = options.validate or is_verifying()
    summary |= {"path": path_found, "validated": options.validate}
    rows = _rows(result, options, path_found)
    shared.print_report(options, summary, rows, above=_levels(result))
    if not options.json:
        searches.tell_written(options.levels, options.parents, options.plot)


def _wants_path_only(options: argparse.Namespace) -> bool:
    """Return whether nobody asked for more than the path to one target: levels take longer."""
    others = ("levels", "parents", "plot", "validate", "json", "cluster", "devices")
    return (
        options.target is not None
        and not any(getattr(options, name) for name in others)
        and (options.engine, options.method, options.direction) == ("auto", "auto", "auto")
        and options.vram is options.resident_tails is None
        and not searches.is_sharded(options)
        and not is_verifying()
    )


def _print_path(opened: AnyGraph, source: Any, target: Any, options: argparse.Namespace) -> None:
    """Search from both ends, and print the path."""
    watch = searches.Stopwatch()
    path = opened.shortest_path(
        source, target, max_depth=options.max_depth, options=Settings(threads=options.threads)
    )
    took = watch.values()
    seconds = f"{took['seconds']:.6f} searching from both ends; --json has all levels"
    compiling = searches.compiling(took["compile_seconds"])
    rows = _path_row(options.target, path), ("seconds", seconds), *compiling
    shared.print_report(options, {}, rows)


def _path_row(target: str, path: list[Any] | None) -> tuple[str, str]:
    steps = " → ".join(map(called, path or []))
    return f"path to {target}", f"{len(path) - 1} steps: {steps}" if path else "not reached"


def _path(result: BfsResult, target: Any) -> list[Any] | None:
    """Return the path to the target, if there is one to be found."""
    if target is None or result.level_of(target) < 0:
        return None
    return result.path_to(target)


def _levels(result: BfsResult) -> Iterator[str]:
    """Write one line a level, and a heading."""
    stats = result.stats
    tiers = sorted({tier for level in stats.levels for tier in level.slow_bytes})
    columns = [*tiers, *(["links"] if stats.link_bytes else [])]
    yield "level  direction     frontier  edges examined  heads answered       seconds" + "".join(
        f"  {column + ' bytes':>15}" for column in columns
    )
    firsts = accumulate((level.num_levels for level in stats.levels), initial=0)
    numbered = list(zip(firsts, stats.levels, strict=False))
    yield from shared.shortened(numbered, lambda pair: _level(*pair, tiers))
    yield ""
    if stats.counts is not None:
        headings = (heading for heading in COLUMNS.values() if heading is not None)
        yield "level" + "".join(f"  {title:>{width}}" for title, width in headings)
        yield from shared.shortened(numbered, lambda pair: _counts(_numbers(*pair), pair[1].counts))
        yield _counts("all", stats.counts)
        yield ""


def _counts(name: str, counts: Counts | None) -> str:
    """Write what a device counted."""
    line = f"{name:>5}"
    for column, heading in COLUMNS.items():
        if heading is not None:
            value = getattr(counts, column, None)
            form = ".1f" if isinstance(value, float) else ","
            line += f"  {'–' if value is None else format(value, form):>{heading[1]}}"
    return line


def _rows(
    result: BfsResult, options: argparse.Namespace, path: list[Any] | None
) -> Iterator[tuple[str, str]]:
    stats = result.stats
    examined = sum(level.edges_examined or 0 for level in stats.levels)
    looks = f", {examined:,} examined" if examined else ""
    reached = f"{result.reached:,} of {result.graph.num_vertices:,} vertices"
    yield "reached", f"{reached}, depth {result.depth:,}"
    yield "edges", f"{stats.edges_traversed:,} in the reached part{looks}"
    yield from searches.durations(stats)
    yield "edges/second", f"{stats.edges_per_second:,.0f}"
    if each := stats.nanoseconds_per_edge:
        yield "ns per edge", ", ".join(f"{name} {value:.2f}" for name, value in each.items())
    for tier, moved in stats.slow_bytes_by_tier.items():
        share = moved / max(1, stats.graph_bytes)
        yield shared.TIERS[tier], f"{moved:,} bytes, {share:.1%} of the graph"
    if links := stats.link_bytes:
        busiest, most = max(links.items(), key=itemgetter(1))
        yield "between GPUs", f"{sum(links.values()):,} bytes, most from {busiest}: {most:,}"
    if options.validate:
        yield "validated", "levels and parents" if options.parents else "levels"
    if options.target is not None:
        yield _path_row(options.target, path)


def _numbers(first: int, level: Level) -> str:
    return str(first) if level.num_levels == 1 else f"{first}…{first + level.num_levels - 1}"


def _level(first: int, level: Level, tiers: list[str]) -> str:
    edges = "–" if level.edges_examined is None else f"{level.edges_examined:,}"
    return (
        f"{_numbers(first, level):>5}  {level.direction:<9}  {level.frontier:>11,}  {edges:>14}  "
        f"{level.heads_answered:>14,}  {level.seconds:>12.6f}"
        + "".join(f"  {level.slow_bytes.get(tier, 0):>15,}" for tier in tiers)
        + (f"  {sum(level.link_bytes.values()):>15,}" if level.link_bytes else "")
    )
