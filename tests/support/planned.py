"""Compare what ``plan`` says with what ``bfs`` does, in one small process for many budgets.

``python -m tests.support.planned GRAPH.ocg …``
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from itertools import product
from typing import Any

from oocbfs.cli import main
from oocbfs.disk import bfs as disk
from oocbfs.disk import components as disk_components
from oocbfs.kernels.bfs import search as cpu
from oocbfs.kernels.compiling import prepare_module
from oocbfs.kernels.components import connect as cpu_components
from oocbfs.memory import format_size
from tests.support.exhaustive import ALL, crossing

# What a budget may depend on.
OPTIONS = [
    [*engine, *parents, *source]
    for engine, parents, source in crossing(
        (["--engine", "auto"], ["--engine", "cpu"], ["--engine", "disk"]),
        ([], ["--parents"]),
        ([], ["--source", "@largest"]),
    )
]


def ask(verb: str, *arguments: object) -> tuple[dict[str, Any], str]:
    """Run a verb in a process that has the code and nothing else; return its output and error."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as errors:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(errors.fileno(), 2)
            code = main([verb, *map(str, arguments), "--json"])
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        errors.seek(0)
        lines = [line for line in errors.read().splitlines() if line.startswith("oocbfs: ")]
        assert (code == 0) == (not lines), (verb, arguments, code, lines)
        return (json.loads(out.read()) if code == 0 else {}), "".join(lines)


def check_plan(path: str, options: list[str], budget: int) -> dict[str, Any]:
    """Compare what is planned with what is done, and give the plan."""
    limit = ["--memory", budget]
    planned: dict[str, Any] = ask("plan", path, "--samples", 0, *options, *limit)[0]["cpu"]
    searched = ["--source", 7, *options, *limit]
    if "--parents" in options:
        searched.insert(searched.index("--parents") + 1, f"{path}-parents.npy")
    found, error = ask("bfs", path, *searched, "--force")
    if "error" in planned:
        assert error == f"oocbfs: {planned['error']}", (error, planned)
        assert f"needs {format_size(planned['needed_bytes'])} of memory" in error
        assert planned["needed_bytes"] > budget
    else:
        assert found, error
        assert found["engine"] == planned["engine"]
        assert planned["needed_bytes"] <= budget
    return planned


def check_plans(*paths: str) -> None:
    """Plan and search with budgets on both sides of every edge."""
    for load in (cpu.load, disk.load, cpu_components.load, disk_components.load):
        load()
    for name in ("checking", "components", "levels"):
        prepare_module(f"oocbfs.kernels.results.{name}")
    engines = set()
    for path, options in product(paths, OPTIONS):
        least = check_plan(path, options, 1)["needed_bytes"]
        edge = check_plan(path, options, 8 << 30)["needed_bytes"]
        # In between, results have room, or a part of them.
        between = [(least + edge) // 2, (3 * least + edge) // 4] if ALL else []
        for budget in {least - 1, least, edge - 1, edge, *between}:
            planned = check_plan(path, options, budget)
            assert ("error" in planned) == (budget < least)
            if "@largest" not in options and "error" not in planned:
                assert planned["needed_bytes"] == (least if budget < edge else edge)
            engines.add(planned.get("engine"))
    assert engines == {None, "disk", "cpu"}


if __name__ == "__main__":
    check_plans(*sys.argv[1:])
