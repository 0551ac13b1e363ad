"""Searches of one graph within memory budgets, each in a control group, the file cold."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from oocbfs.memory import format_size, parse_size
from tests.benchmarks.common import oocbfs, show
from tests.benchmarks.outofcore import drop_cache
from tests.support.memory_limit import memory_limit


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench budgets", description=__doc__)
    parser.add_argument("graph", type=Path, metavar="GRAPH.ocg")
    parser.add_argument("--budgets", default="all,4G,2G", help="comma-separated; all is no limit")
    parser.add_argument("--sources", type=int, default=8)
    parser.add_argument("--seed", type=int, default=1, help="of the sources")
    options = parser.parse_args(arguments)
    budgets = options.budgets.split(",")
    runs: dict[str, list[dict[str, Any]]] = {budget: [] for budget in budgets}
    for source in choose_sources(options.graph, options.sources, options.seed):
        for budget in budgets:
            runs[budget].append(search(options.graph, source, budget))
    show(
        f"{options.sources} sources, a process each, the file's pages dropped; median (worst)",
        ("memory", "engine", "search, s", "whole process, s", "read from disk", "peak resident"),
        [row(budget, runs[budget]) for budget in budgets],
    )


def choose_sources(graph: Path, count: int, seed: int) -> list[int]:
    """Draw ids at random; the ids of generated graphs are 0 … n-1."""
    import random

    done = subprocess.run(oocbfs("info", graph, "--json"), capture_output=True, check=True)
    return random.Random(seed).sample(range(json.loads(done.stdout)["vertices"]), count)


# Runs the command line, then adds to its JSON what the kernel knows of the process.
_CHILD = """
import json, resource, sys, time
from contextlib import redirect_stdout
from io import StringIO
start = time.perf_counter()
from oocbfs.cli import main
from oocbfs.memory import read_bytes
with redirect_stdout(StringIO()) as out:
    code = main(sys.argv[1:])
if code:
    sys.exit(code)
found = json.loads(out.getvalue())
found["whole_seconds"] = time.perf_counter() - start
found["peak_bytes"] = 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found["read_bytes"] = read_bytes()
print(json.dumps(found))
"""


def search(graph: Path, source: int, budget: str, *, cold: bool = True) -> dict[str, Any]:
    """Search in a process of its own."""
    limited = budget != "all"
    options = ["--memory", budget] if limited else []
    python = oocbfs()[0]
    command = [python, "-c", _CHILD, "bfs", str(graph), "--source", str(source), "--json", *options]
    if cold:
        drop_cache(graph)
    group: AbstractContextManager[list[str]] = (
        memory_limit(parse_size(budget)) if limited else nullcontext([])
    )
    with group as prefix:
        done = subprocess.run([*prefix, *command], capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"source {source} within {budget}: exit {done.returncode}\n{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def row(budget: str, runs: list[dict[str, Any]]) -> list[str]:
    """Sum up the runs within one budget."""

    def seconds(name: str) -> str:
        values = [run[name] for run in runs]
        return f"{statistics.median(values):.2f} ({max(values):.2f})"

    def size(name: str) -> str:
        values = [run[name] for run in runs]
        return f"{format_size(int(statistics.median(values)))} ({format_size(max(values))})"

    engines = ", ".join(sorted({run["engine"] for run in runs}))
    return [
        budget,
        engines,
        seconds("seconds"),
        seconds("whole_seconds"),
        size("read_bytes"),
        size("peak_bytes"),
    ]
