"""find diameter, radius, distribution of distances and the most central vertices of a graph"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, get_args

from oocbfs.errors import OutputError, QueryError, shown
from oocbfs.settings import Table
from oocbfs.tools.shared import announcements, searches
from oocbfs.tools.shared import options as shared
from oocbfs.tools.shared.vertices import called, read_vertices

if TYPE_CHECKING:
    from oocbfs.distances.job import Answer, Question
    from oocbfs.search.any_graph import AnyGraph

_log = logging.getLogger(__name__)
_ENDING = ".state"
# Seconds between two lines that say how far it is.
_TELL_SECONDS = 2.0
_SHOWN = 5
# What is not found without the radius.
_OF_RADIUS = {"radius", "center", "eccentricities"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "graph")
    shared.add_value(
        parser,
        "--exact",
        shared.path,
        "WHAT,WHAT",
        "what to find exactly: diameter, radius, center, eccentricities, closeness (of all "
        "vertices), or none (default: diameter,radius)",
        default="diameter,radius",
    )
    sampled = parser.add_mutually_exclusive_group()
    shared.add_value(
        sampled,
        "--samples",
        _samples,
        "N|all",
        "sources of the distribution, drawn at random; all makes it exact (default: 256)",
    )
    error = "as many sources as keep shares of pairs within this error, such as 0.01 (no default)"
    # Not ``error``, which is how a parser refuses.
    sampled.add_argument("--error", dest="within", type=_share, metavar="E", help=error)
    confidence = "how certain intervals are (default: 0.95)"
    shared.add_value(parser, "--confidence", _share, "C", confidence, default=0.95)
    shared.add_value(
        parser,
        "--component",
        shared.path,
        "largest|all|ID",
        "which vertices: the largest component, all, or the component of one; of a directed graph "
        "strongly connected ones (default: largest)",
        default="largest",
    )
    shared.add_value(
        parser,
        "--top",
        shared.positive,
        "K",
        "find the K most central vertices (default: 0, none)",
        0,
    )
    by = ("harmonic", "closeness")
    parser.add_argument(
        "--by", choices=by, default="harmonic", help="central by which measure (default: harmonic)"
    )
    closeness = (
        "estimate closeness and harmonic centrality of all vertices from the sources, with an "
        "interval, for the table"
    )
    shared.add_flag(parser, "--closeness", closeness)
    table = (
        "write eccentricities, or closeness and harmonic centrality, of each vertex if asked for, "
        f"else the distribution, as .{', .'.join(get_args(Table)[:4])} (default: nothing)"
    )
    shared.add(parser, "--output", required=False, help=table)
    shared.add_file(parser, "--plot", "draw the distribution with its interval as .svg or .png")
    shared.add(parser, "--seed", help="seed of random sources (default: 1)")
    shared.add_flag(parser, "--resume", "go on where a run ended that was interrupted")
    engines = ("auto", "cpu", "cuda", "emulator")
    shared.add(parser, "--engine", choices=engines, help="as for batch (default: auto)")
    shared.add(parser, "--memory", "--threads", "--cluster", "--force", "--json")


def _samples(text: str) -> int | str:
    """Read a number of sources, or the word for all."""
    return text if text == "all" else shared.positive(text)


def _share(text: str) -> float:
    """Read a number between 0 and 1."""
    value = shared.number(text)
    if value >= 1:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not between 0 and 1")
    return value


def run(options: argparse.Namespace) -> None:
    """Check what is asked, search, and report; what is certain is said even if interrupted."""
    form = _check_files(options)
    announcements.announce()
    from oocbfs.distances.job import Job

    with searches.open_graph(options) as opened:
        question = _question(opened, options)
        state = _state_path(options)
        how = shared.chosen(options, "engine", "threads")
        job = Job(opened, question, state=state, resume=options.resume, **how)
        try:
            answer = job.run(_teller())
        except (KeyboardInterrupt, SystemExit) as stop:
            _tell_certain(job.answer, state)
            sys.exit(130 if isinstance(stop, KeyboardInterrupt) else stop.code)
        if options.output:
            _write(opened, answer, options.output, form, options.force)
        assert answer.distribution is not None
        if options.plot:
            answer.distribution.plot(options.plot, force=options.force)
        shared.print_report(
            options, _summary(opened, question, answer), _rows(opened, question, answer)
        )
    if not options.json:
        searches.tell_written(options.output, options.plot)


def _check_files(options: argparse.Namespace) -> str:
    """Refuse what cannot be written; return the form of the table."""
    from oocbfs.formats.output.atomic import check_outputs

    form = ""
    if options.output is not None:
        if options.output == "-":
            raise OutputError("-o -: the report is printed: name a file")
        name = os.path.basename(options.output).lower()
        fitting = [one for one in get_args(Table) if name.endswith(f".{one}")]
        if not fitting:
            raise OutputError(f"{options.output}: name it .{', .'.join(get_args(Table))}")
        form = max(fitting, key=len)
        if form == "parquet":
            from oocbfs.formats.output.parquet import import_arrow

            import_arrow()
    if options.plot is not None:
        from oocbfs.plot import check_plot

        check_plot(options.plot)
    outputs = {"-o": options.output, "--plot": options.plot}
    check_outputs(outputs, inputs=[options.graph], force=options.force)
    return form


def _question(opened: AnyGraph, options: argparse.Namespace) -> Question:
    from oocbfs.distances.job import Question

    component: Any = options.component
    if component not in ("largest", "all"):
        found = read_vertices(opened, component)
        if len(found) > 1:
            raise QueryError(f"--component {component}: name one vertex")
        component = found[0]
    exact = () if options.exact == "none" else tuple(options.exact.split(","))
    samples = 256 if options.samples is None else options.samples
    return Question(
        exact=exact,
        samples=None if samples == "all" else samples,
        component=component,
        error=options.within,
        **shared.chosen(options, "confidence", "top", "by", "seed", "closeness"),
    )


def _state_path(options: argparse.Namespace) -> str | None:
    """Return where what is known is kept: beside the output, or else beside the graph."""
    path = f"{options.output or options.graph.rstrip('/')}{_ENDING}"
    folder = os.path.dirname(os.path.abspath(path))
    if os.access(folder, os.W_OK):
        return path
    if options.resume:
        raise OutputError(f"{folder}: cannot be written to: name an output elsewhere with -o")
    return None


def _teller() -> Callable[[Answer], None]:
    """Make what says now and then how far a job is."""
    said, when = "", time.perf_counter()

    def tell(answer: Answer) -> None:
        nonlocal said, when
        now = time.perf_counter()
        if answer.stage != said and now - when >= _TELL_SECONDS:
            said, when = answer.stage, now
            _log.info("%s", said)

    return tell


def _tell_certain(answer: Answer, state: str | None) -> None:
    """Say what an interrupted job knows, and how it goes on."""
    if answer.extremes is not None:
        _log.error("certain so far: %s", answer.extremes.text())
    kept = f"; --resume continues from {state}" if state and os.path.exists(state) else ""
    _log.error("oocbfs: interrupted%s", kept)


def _write(opened: AnyGraph, answer: Answer, path: str, form: str, force: bool) -> None:
    """Write a row for each vertex, or for each distance."""
    from oocbfs.batch.tables import write_table
    from oocbfs.distances.columns import columns_of
    from oocbfs.formats.output.atomic import check_outputs

    check_outputs({"-o": path}, inputs=[], force=force)
    columns, types, about = columns_of(opened, answer)
    write_table(path, form, types, _as_rows(columns), about)


def _as_rows(columns: dict[str, Iterable[Any]]) -> Iterator[dict[str, Any]]:
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))


def _summary(opened: AnyGraph, question: Question, answer: Answer) -> dict[str, Any]:
    scope, extremes = answer.scope, answer.extremes
    found: dict[str, Any] = {
        "graph": opened.path,
        "vertices": opened.num_vertices,
        "edges": opened.num_edges,
        "arcs": opened._stored.num_arcs,
        "directed": opened.directed,
        "scope": scope.text,
        "scope_vertices": scope.num_vertices,
    }
    if extremes is not None and {"diameter", "eccentricities"} & set(question.exact):
        found["diameter"] = extremes.diameter[0]
    if extremes is not None and _OF_RADIUS & set(question.exact):
        found["radius"] = extremes.radius[1]
    if "center" in question.exact:
        found |= {"center_vertices": len(answer.center), "center": answer.center[:100]}
    assert answer.distribution is not None
    found["distribution"] = answer.distribution.summary()
    for name, estimate in (("closeness", answer.closeness), ("harmonic", answer.harmonic)):
        if estimate is not None:
            found[f"{name}_error"] = estimate.error
    if answer.top:
        found["top"] = {"by": question.by, "vertices": [list(one) for one in answer.top]}
    return found | {
        "searches": answer.searched,
        "resumed": answer.resumed,
        "disk_bytes": answer.disk_bytes,
        "seconds": answer.seconds,
    }


def _rows(opened: AnyGraph, question: Question, answer: Answer) -> Iterator[tuple[str, str]]:
    scope, extremes, found = answer.scope, answer.extremes, answer.distribution
    assert found is not None
    share = scope.num_vertices / max(1, opened.num_vertices)
    yield "distances of", f"{scope.text}: {scope.num_vertices:,} vertices ({share:.1%})"
    if opened.directed and not scope.is_mutual:
        yield "", "pairs of which one reaches the other; eccentricities are over what is reached"
    if extremes is not None and {"diameter", "eccentricities"} & set(question.exact):
        yield "diameter", f"{extremes.diameter[0]:,}, exact"
    if extremes is not None and _OF_RADIUS & set(question.exact):
        yield "radius", f"{extremes.radius[1]:,}, exact"
    if answer.center:
        first = ", ".join(map(called, answer.center[:_SHOWN]))
        more = ", …" if len(answer.center) > _SHOWN else ""
        yield "center", f"{len(answer.center):,} vertices: {first}{more}"
    yield "sources", f"{found.num_sources:,} of {found.num_vertices:,}"
    yield "shares of pairs", found.certainty
    if not scope.is_mutual:
        yield "reachable pairs", f"{found.reachable.text('.2%')} of {found.num_pairs:,}"
    if found.depth > 0:
        yield "average distance", found.average.text()
        yield "median distance", found.median().text(",.0f")
        yield "effective diameter", f"{found.effective_diameter().text()} (90 % of the pairs)"
        yield "harmonic mean", found.harmonic_mean.text()
    for name, estimate in (("closeness", answer.closeness), ("harmonic", answer.harmonic)):
        if estimate is not None:
            error = f"± {estimate.error:.2g} at {100 * question.confidence:.4g} %"
            certainty = "exact" if found.is_exact else f"sampled, {error} for all at once"
            yield f"{name} of all", certainty
    for number, one in enumerate(answer.top, 1):
        yield f"top {number}", f"{called(one.vertex)}: {question.by} {one.value:,.6g}, exact"
    yield "searches", f"{answer.searched:,}"
    if answer.disk_bytes:
        yield "read from disk", f"{answer.disk_bytes:,} bytes"
    yield "seconds", f"{answer.seconds:.3f}"
