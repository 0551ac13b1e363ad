"""Every mutant of the kernels that changes an answer is caught by the checks of a first contact."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.exhaustive import ALL, some
from tests.support.mutants.all_mutants import MUTANTS
from tests.support.mutants.check_mutants import CHECK_MUTANTS
from tests.support.mutants.mutant import Mutant, copy_kernels
from tests.support.mutants.mutant_runner import Runner

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)
TEST = f"{Path(__file__).parent / 'test_families.py'}::test_all_checks_of_a_family_pass[{{}}]"
# Which family meets a kernel, by the test that catches its mutants; others are of one source.
_FAMILIES = {
    "devices/": "two devices",
    "methods/": "methods",
    "gpu/test_staging": "from disk",
    "gpu/test_gpu_components": "components",
    "gpu/test_gpu_many": "many sources",
}
_DAMAGE = "shows only where a file is damaged"
_BYTES = "moves more bytes to the same answer"
_COUNTS = "changes what is counted, not what is found"
_COSTS = "changes what a step is expected to cost, not what it finds"
# Mutants that give the right answer on every graph of the checks, and why. So do those of the check
# of first searches: what is right passes any check.
_DEEP = "takes more levels than the graphs of the emulator have; on a GPU the path has them"
OUT_OF_REACH = {
    "levels of long ago are read again": _BYTES,
    "a byte for each of 256 levels": _DEEP,
    "a place in the queue belongs to the level that it ends": _DEEP,
    "every launch begins with level 0": _DEEP,
    "deep levels of vertices that were not reached": _DEEP,
    "forgotten vertices stay visited": _COUNTS,
    "lanes run ahead while staging": _BYTES,
    "vertices after the cut search too": _BYTES,
    "the number of the turn is forgotten after a launch": _BYTES,
    "what the next lane loaded is loaded again": _BYTES,
    "tags of the search before are kept": "the sectors of the search before are right as well",
    "a full list takes more rows": "takes more long rows that hold nothing than a block lists",
    "found in two segments, visited twice": "takes a hub that hits late, and in several segments",
    "who has no place loads twice": "takes more sectors than the cache of small levels holds",
    "segments after the first forgotten": "the edges of a hub are read from their other ends too",
    "segments go on with the sum of the one before": "hubs are found by their first segments",
    "a part's sum begins with the part before": _COSTS,
    "sectors of the pending row before are not shared in the estimate": _COSTS,
    "the frontier of small levels is measured with the one before": _COSTS,
    "neighbours are not counted": _COUNTS,
    "tested heads are not counted": _COUNTS,
    "lost claims are not counted": _COUNTS,
    "last byte of a five-byte varint lost": "takes a graph of 2^28 vertices",
    "words before the chunk forgotten": "takes varints of five bytes, and a graph as large",
    "neighbours not compared with n": _DAMAGE,
    "gaps of short rows not compared with n": _DAMAGE,
    "gaps of long rows not compared with n": _DAMAGE,
    "sums of short rows that wrap around": _DAMAGE,
    "sums of long rows that wrap around": _DAMAGE,
    "bits beyond 32 dropped silently": _DAMAGE,
}


def _check(mutant: Mutant, runner: Runner, folder: Path) -> tuple[bool, str]:
    """Run the checks of the mutant's family; return whether they catch it, and what they say."""
    mutant.write(folder / "kernels")
    family = next(
        (name for begin, name in _FAMILIES.items() if mutant.caught_by.startswith(begin)),
        "one source",
    )
    done = runner.run(TEST.format(family), folder, {})
    assert done.code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED), done.report
    assert "could not be compiled" not in done.report, done.report
    kinds = ("DifferenceError", "EmulatorError", "oocbfs.errors")
    failed = done.code == pytest.ExitCode.TESTS_FAILED
    return failed and any(kind in done.report for kind in kinds), done.report


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    made.close()


def test_mutants_out_of_reach_exist() -> None:
    assert set(OUT_OF_REACH) <= {mutant.name for mutant in MUTANTS}


@pytest.mark.long
@pytest.mark.parametrize(
    "mutant",
    some([one for one in MUTANTS if one not in CHECK_MUTANTS and one.name not in OUT_OF_REACH], 8),
    ids=lambda mutant: mutant.name.replace(" ", "-"),
)
def test_mutants_are_caught(mutant: Mutant, runner: Runner, tmp_path: Path) -> None:
    caught, report = _check(mutant, runner, tmp_path)
    assert caught, report


@pytest.mark.skipif(not ALL, reason="takes half a minute for each: scripts/test --all")
@pytest.mark.parametrize("name", OUT_OF_REACH)
def test_mutants_out_of_reach_are_not_caught(name: str, runner: Runner, tmp_path: Path) -> None:
    """Or the list would say of the checks that they miss what they find."""
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    caught, report = _check(mutant, runner, tmp_path)
    assert not caught, report


def test_kernels_that_are_not_broken_pass(runner: Runner, tmp_path: Path) -> None:
    """Or a runner that fails every test would seem to catch all mutants."""
    copy_kernels(tmp_path / "kernels")
    done = runner.run(TEST.format("components"), tmp_path, {})
    assert done.code == pytest.ExitCode.OK, done.report
