"""compare the methods of the papers on one graph, by what the emulator counts"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from oocbfs import console
from oocbfs.tools.shared import announcements, searches
from oocbfs.tools.shared import options as shared

if TYPE_CHECKING:
    from oocbfs.ablation.plan import Plan
    from oocbfs.ablation.runs import Row


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "graph")
    parser.add_argument(
        "--methods",
        default="all",
        metavar="GROUP|NAME,…",
        help="evolution, queues, merrill, xbfs, balance or all (default: all), or methods by name, "
        "with their options; 'oocbfs bfs --method list' prints them",
    )
    for name, default, text in (
        ("--sources", 4, "sources, drawn from the largest component (default: 4)"),
        ("--seeds", 3, "schedules for each source (default: 3)"),
    ):
        shared.add_value(parser, name, shared.whole(1, 1 << 20), "N", text, default)
    shared.add_file(parser, "--csv", "write every count as .csv")
    shared.add_file(parser, "--plot", "draw the comparison as .svg")
    shared.add_file(parser, "--report", "write table and pictures as one .html")
    shared.add(parser, "--threads", help="methods run at a time (default: all cores)")
    shared.add(parser, "--force", "--json")


def run(options: argparse.Namespace) -> None:
    """Run every method, print a row for each, and write what was asked for."""
    files = {f"--{name}": getattr(options, name) for name in _ENDINGS}
    _check_files(files, options)
    announcements.announce()
    from oocbfs.ablation import table
    from oocbfs.ablation.groups import choose_methods
    from oocbfs.ablation.plan import prepare
    from oocbfs.ablation.runs import run_all
    from oocbfs.formats.io.ordered import available_threads
    from oocbfs.progress import Phases

    methods = choose_methods(options.methods)
    processes = available_threads(options.threads)
    plan = prepare(
        options.graph,
        methods,
        num_sources=options.sources,
        num_seeds=options.seeds,
        threads=options.threads,
    )
    rows: list[Row] = []
    with Phases()("methods", len(methods) * plan.num_runs, "run") as bar:
        for row in run_all(plan, processes=processes, advance=bar.update):
            rows.append(row)
            if not (options.json or console.is_quiet()):
                bar.clear()
                if len(rows) == 1:
                    print(table.heading())
                print(table.line(row, plan), flush=True)
    _write(rows, plan, options)
    report = {
        "graph": plan.path,
        "vertices": plan.num_vertices,
        "edges": plan.num_edges,
        "arcs": plan.num_arcs,
        "sources": list(plan.expected),
        "schedules": [vars(schedule) for schedule in plan.schedules],
        "methods": [table.values(row, plan) for row in rows],
    }
    shared.print_report(options, report, table.meanings(plan), above=("",))
    if not options.json:
        searches.tell_written(*files.values())


_ENDINGS = {"csv": ".csv", "plot": ".svg", "report": ".html"}


def _check_files(files: dict[str, str | None], options: argparse.Namespace) -> None:
    """Refuse outputs that cannot be written, before any work is done."""
    from oocbfs.errors import OutputError
    from oocbfs.formats.output.atomic import check_outputs

    for name, ending in _ENDINGS.items():
        path = files[f"--{name}"]
        if path is not None and not path.lower().endswith(ending):
            raise OutputError(f"{path}: name the file for --{name} {ending}")
    check_outputs(files, inputs=[options.graph], force=options.force)


def _write(rows: list[Row], plan: Plan, options: argparse.Namespace) -> None:
    """Write the files that were asked for, each whole or not at all."""
    from oocbfs.ablation import page, table
    from oocbfs.ablation.figures import draw
    from oocbfs.ablation.plan import logical_frontiers
    from oocbfs.formats.output.atomic import atomic_output
    from oocbfs.pictures import svg

    texts: dict[str, str] = {}
    if options.csv:
        texts[options.csv] = table.as_csv(rows, plan)
    if options.plot or options.report:
        first = next(iter(plan.expected))
        pictures = draw(rows, plan, logical_frontiers(plan, first))
    if options.plot:
        texts[options.plot] = svg.together(f"Methods on {plan.path}", pictures)
    if options.report:
        texts[options.report] = page.as_html(rows, plan, pictures)
    for path, text in texts.items():
        with atomic_output(path, force=options.force) as file:
            file.write(text.encode())
