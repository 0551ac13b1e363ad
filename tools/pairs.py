"""find the distances of many pairs of vertices, or a shortest path of each"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from oocbfs.errors import QueryError
from oocbfs.formats.tables.columns import make_options
from oocbfs.settings import Settings
from oocbfs.tools.shared import announcements, searches, tables
from oocbfs.tools.shared import options as shared

if TYPE_CHECKING:
    from oocbfs.point.pairs import Answers

_log = logging.getLogger(__name__)
_ENGINES = ("auto", "cpu", "disk")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "graph")
    parser.add_argument(
        "pairs",
        type=shared.path,
        metavar="PAIRS.csv",
        help="the pairs, in any form that convert takes edges in; - is standard input",
    )
    forms = ".csv, .tsv or .jsonl, maybe with .gz or .zst, or .parquet; - prints .csv"
    shared.add(parser, "--output", help=f"write a row for each pair as {forms}")
    shared.add_flag(parser, "--paths", "write a shortest path of each pair, too")
    going = "write rows of unknown vertices, too, and how each row went (default: refuse them)"
    shared.add_flag(parser, "--keep-going", going)
    shared.add_flag(parser, "--resume", "continue where an interrupted run ended")
    tables.add_columns(parser)
    shared.add(parser, "--max-depth")
    engines = "as for bfs; pairs are searched on the CPU, or with rows read from disk"
    shared.add(parser, "--engine", choices=_ENGINES, help=f"{engines} (default: auto)")
    shared.add(parser, "--memory", "--threads", "--force", "--json")


def run(options: argparse.Namespace) -> None:
    """Answer all pairs, in the order given."""
    shared.refuse_json_among_edges(options)
    announcements.announce()
    from oocbfs.batch.pair_files import PairJob, answer_file, form_of
    from oocbfs.formats.io.ordered import available_threads
    from oocbfs.formats.output.atomic import check_outputs
    from oocbfs.memory import parse_size
    from oocbfs.point.pairs import Answers
    from oocbfs.progress import Phases

    form_of(options.output)
    if options.output != "-":
        inputs = [path for path in (options.graph, options.pairs) if path != "-"]
        outputs = {"-o": options.output}
        check_outputs(outputs, inputs=inputs, force=options.force, streams=True)
    if options.resume and "-" in (options.output, options.pairs):
        raise QueryError("--resume continues from a file to a file: name both, instead of -")
    watch = searches.Stopwatch()
    job = PairJob(
        **shared.chosen(options, "pairs", "output", "paths", "keep_going", "resume", "force"),
        **shared.chosen(options, "format", "max_depth"),
        table=replace(
            make_options(*(getattr(options, name) for name in tables.COLUMNS)), rows=True
        ),
        threads=available_threads(options.threads),
    )
    settings = Settings(
        **shared.chosen(options, "engine", "max_depth", "threads"),
        memory=None if options.memory is None else parse_size(options.memory),
    )
    with searches.open_graph(options) as opened:
        answers = Answers(
            opened._stored,
            settings,
            **shared.chosen(options, "paths", "keep_going"),
            advice="leave the row out, or use --keep-going",
            first_advice=", or say --header if it names columns",
        )
        try:
            with Phases()("pairs", None, "B") as bar:
                answer_file(opened._stored, job, answers, bar.update)
        except KeyboardInterrupt:
            is_kept = job.parts is not None and job.parts.exists()
            further = "--resume continues" if is_kept else "nothing was written"
            _log.error("oocbfs: interrupted; %s", further)
            sys.exit(130)
    report = _report(options, answers) | watch.values()
    shared.print_report(options, report, _rows(answers, report))
    searches.tell_written(options.output)


def _report(options: argparse.Namespace, answers: Answers) -> dict[str, Any]:
    """Return the figures, for JSON."""
    search = answers.search
    return {
        "graph": options.graph,
        "output": options.output,
        "pairs": answers.num_pairs,
        "connected": answers.num_connected,
        "unknown": answers.num_unknown,
        "done_before": answers.num_resumed,
        "shared": search.num_shared,
        "whole": search.num_gone_over,
        "edges_examined": search.edges,
        "disk_bytes": search.disk_bytes,
    }


def _rows(answers: Answers, report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    search = answers.search
    unknown = f", {answers.num_unknown:,} of unknown vertices" if answers.num_unknown else ""
    yield "pairs", f"{answers.num_pairs:,}, {answers.num_connected:,} connected{unknown}"
    if answers.num_resumed:
        yield "done before", f"{answers.num_resumed:,}"
    if search.num_shared:
        yield "shared", f"{search.num_shared:,} by searches from 64 sources at a time"
    if search.num_gone_over:
        yield "whole", f"{search.num_gone_over:,} by searches of the whole graph"
    yield "edges", f"{search.edges:,} examined"
    if search.from_disk:
        yield "read", f"{search.disk_bytes:,} bytes, in single rows"
    yield "seconds", f"{report['seconds']:.2f}"
    yield from searches.compiling(report["compile_seconds"])
