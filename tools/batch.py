"""find the distances from many sources, resumably; several batches from a job file"""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oocbfs.batch.request import Job
from oocbfs.options import options_of
from oocbfs.tools.shared import announcements, searches
from oocbfs.tools.shared import options as shared

if TYPE_CHECKING:
    from oocbfs.batch.job import JobOutcome, PreparedJob

_log = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(
        parser,
        "graph",
        metavar="GRAPH.ocg|DIR|JOBS.toml",
        help="a graph, a sharded graph, or a file of jobs",
    )
    job = {name: shared.declared(one) for name, one in options_of(Job).items()}
    chosen = parser.add_mutually_exclusive_group()
    for name in ("sources", "random", "all-hubs"):
        chosen.add_argument(f"--{name}", **job.pop(name))
    output = "the folder to write to; - prints the table instead; a file of jobs names its own"
    shared.add(parser, "--output", required=False, metavar="DIR", help=f"{output} (no default)")
    parser.add_argument(
        "--emit",
        nargs="+",
        type=shared.path,
        default=["summary"],
        metavar=("WHAT", "PAIRS.csv"),
        help=job["emit"]["help"],
    )
    parser.add_argument("--levels", type=_old_levels, help=argparse.SUPPRESS)
    for name, one in job.items():
        if name not in ("graph", "output", "emit", "pairs"):
            parser.add_argument(f"--{name}", **one)
    shared.add_flag(parser, "--resume", "continue where the last run ended")
    shared.add(parser, "--json", help="print one JSON object per job")
    parser.set_defaults(usage_error=parser.error)


def _old_levels(text: str) -> None:
    """Refuse the old name of an option, which bfs has for another thing."""
    raise argparse.ArgumentTypeError(
        f"is --level-files {shlex.quote(text)} now; distances are written with --emit levels"
    )


def run(options: argparse.Namespace) -> None:
    """Check all jobs, then run them; one that fails does not stop the others."""
    from_file = Path(options.graph).suffix == ".toml"
    if from_file and (options.output or _named_sources(options)):
        options.usage_error("a job file names sources and outputs itself")
    if from_file and options.cluster:
        options.usage_error("a job file names the cluster of each job itself")
    if not from_file and not options.output:
        options.usage_error("-o DIR is missing")
    emit, *rest = options.emit
    if emit not in ("summary", "levels", "pairs") or len(rest) != (emit == "pairs"):
        options.usage_error("--emit takes summary, levels, or pairs and a file of pairs")
    if not from_file and _named_sources(options) == (emit == "pairs"):
        options.usage_error(
            "name one of --sources, --random, --all-hubs and --emit pairs PAIRS.csv"
        )
    shared.refuse_json_among_edges(options)
    announcements.announce()
    from oocbfs.batch.job_file import read_jobs
    from oocbfs.batch.jobs import prepare

    if from_file:
        jobs = read_jobs(Path(options.graph))
    else:
        jobs = [
            Job(
                graph=Path(options.graph),
                output=None if options.output == "-" else Path(options.output),
                sources=options.sources and Path(options.sources),
                pairs=Path(rest[0]) if rest else None,
                emit=emit,
                **shared.chosen(options, "random", "all_hubs", "seed", "from_", "table"),
                **shared.chosen(options, "level_files", "threads", "memory", "strategy", "engine"),
                **shared.chosen(options, "vram", "resident_tails", "cluster", "force"),
            )
        ]
    prepared = [prepare(job, resume=options.resume) for job in jobs]
    try:
        failed = sum(not _run_one(job, options, alone=len(jobs) == 1) for job in prepared)
    except KeyboardInterrupt:
        further = "" if options.output == "-" else "; --resume continues"
        _log.error("oocbfs: interrupted%s", further)
        sys.exit(130)
    if failed:
        _log.error("oocbfs: %d of %d jobs failed", failed, len(jobs))
        sys.exit(1)


def _named_sources(options: argparse.Namespace) -> bool:
    return any(value is not None for value in (options.sources, options.random, options.all_hubs))


def _run_one(prepared: PreparedJob, options: argparse.Namespace, *, alone: bool) -> bool:
    """Run one job and report; returns whether it succeeded, unless it is the only one."""
    from oocbfs.batch.jobs import run as run_job
    from oocbfs.errors import OocbfsError
    from oocbfs.progress import Phases

    try:
        with Phases()("sources", len(prepared.sources), "source") as bar:
            outcome = run_job(prepared, advance=bar.update)
    except OocbfsError as error:
        if alone:
            raise
        _log.error("oocbfs: %s: failed: %s", prepared.job.output, error)
        return False
    searches.tell_fallback(outcome.fallback)
    shared.print_report(options, _report(prepared.job, outcome), _rows(prepared.job, outcome))
    return True


def _report(job: Job, outcome: JobOutcome) -> dict[str, Any]:
    """Return the figures of a job, for JSON."""
    return {
        "graph": str(job.graph),
        "output": "-" if job.output is None else str(job.output),
        "sources": outcome.num_sources,
        "done_before": outcome.resumed,
        "sources_by_strategy": outcome.strategies,
        "sources_at_a_time": outcome.width,
        "reason": outcome.reason,
        "disk_bytes": outcome.disk_bytes,
        "seconds": outcome.seconds,
        "fallback": outcome.fallback,
    }


def _rows(job: Job, outcome: JobOutcome) -> Iterator[tuple[str, str]]:
    names = {
        "together": f"{outcome.width} at a time",
        "one-per-core": "one per core",
        "one-by-one": "one by one",
    }
    done = ", ".join(f"{count:,} {names[name]}" for name, count in outcome.strategies.items())
    yield "graph", str(job.graph)
    yield "output", "-" if job.output is None else str(job.output)
    yield "sources", f"{outcome.num_sources:,}"
    yield "done before", f"{outcome.resumed:,}"
    yield "searched", f"{done}: {outcome.reason}" if done else "nothing was left to do"
    if outcome.disk_bytes:
        yield "read from disk", f"{outcome.disk_bytes:,} bytes of tails"
    yield "seconds", f"{outcome.seconds:.2f}"
