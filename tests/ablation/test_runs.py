"""Runs: levels are compared, and rows come in the order that was asked for."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from oocbfs.ablation.figures import contributions
from oocbfs.ablation.plan import Plan, Trial, prepare
from oocbfs.ablation.runs import Row, Run, run_all, try_method
from oocbfs.errors import QueryError
from oocbfs.generate import generators
from oocbfs.search.graph import open_file
from tests.support.shared import SharedGraphs

needs_compiler = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)


@pytest.fixture(scope="module")
def plan(shared_graphs: SharedGraphs) -> Plan:
    path = shared_graphs.make("ablate-rmat-7", lambda: generators.rmat(7, seed=5))
    return prepare(str(path), ["v3.3", "auto", "v1"], num_sources=2, num_seeds=1, threads=1)


@needs_compiler
def test_rows_come_in_order(plan: Plan) -> None:
    advanced: list[int] = []
    rows = list(run_all(plan, processes=2, advance=advanced.append))
    assert [row.method for row in rows] == plan.methods
    assert [len(row.runs) for row in rows] == [2, 2, 2]
    assert sum(advanced) == len(plan.trials) == 6


@needs_compiler
def test_wrong_levels_are_no_row(plan: Plan) -> None:
    source, levels = next(iter(plan.expected.items()))
    other = levels.copy()
    other[np.flatnonzero(levels == 1)[0]] = 2
    wrong = replace(plan, expected={source: other})
    with open_file(plan.path) as graph, pytest.raises(QueryError) as error:
        try_method(graph, Trial("v1", source), wrong)
    assert "method v1" in str(error.value)
    assert "does not give the levels of the CPU engine" in str(error.value)
    with pytest.raises(QueryError, match="does not give"):
        list(run_all(wrong, processes=2))


def run_of(directions: list[str], pcie: list[float], device: list[float]) -> Run:
    levels = {"pcie_sectors": np.array(pcie), "device_sectors": np.array(device)}
    return Run(0, 1, {}, directions, np.ones(len(directions), np.int64), levels)


def test_what_a_part_saves_is_counted_level_by_level() -> None:
    plain = Row("single-scan", [run_of(["top-down"] * 3, [5, 50, 5], [1, 1, 1])])
    xbfs = Row("xbfs", [run_of(["top-down", "bottom-up", "top-down"], [5, 9, 2], [0, 3, 0])])
    assert contributions(xbfs, plain) == {"scan-free": 5, "double-scan": 39}


def test_a_row_with_a_failure_has_no_medians(tmp_path: Path) -> None:
    run = Run(0, 1, {"launches": 3}, [], np.empty(0, np.int64), {})
    assert Row("v1", [run]).median("launches") == 3
    assert Row("v1", [run]).median("atomics") is None
    assert Row("v1", [run], "overflows").median("launches") is None
