"""Kernels broken on purpose: each mutant must be caught by the test named beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from oocbfs.kernels.cuda.source import FOLDER
from tests.support.exhaustive import some
from tests.support.mutants.all_mutants import MUTANTS
from tests.support.mutants.mutant import Mutant, copy_kernels
from tests.support.mutants.mutant_runner import Runner

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    made.close()


@pytest.mark.parametrize(
    "mutant",
    some(MUTANTS, 16),
    ids=lambda mutant: mutant.name.replace(" ", "-"),
)
def test_mutants_are_caught(mutant: Mutant, runner: Runner, tmp_path: Path) -> None:
    mutant.write(tmp_path / "kernels")
    test = str(TESTS / mutant.caught_by)
    done = runner.run(test, tmp_path, {"OOCBFS_TEST_CHECKS": mutant.checks.value})
    assert "could not be compiled" not in done.report, done.report
    assert done.code == pytest.ExitCode.TESTS_FAILED, done.report
    assert any(words in done.report for words in mutant.report.split("|")), done.report


def test_every_mutant_fits_its_source() -> None:
    """Also those of which only a run of all would tell."""
    unfit = [one.name for one in MUTANTS if (FOLDER / one.source).read_text().count(one.old) != 1]
    assert not unfit


def test_the_runner_passes_what_is_not_broken(runner: Runner, tmp_path: Path) -> None:
    """Or a runner that fails every test would seem to catch all mutants."""
    copy_kernels(tmp_path / "kernels")
    done = runner.run(str(TESTS / MUTANTS[0].caught_by), tmp_path, {})
    assert done.code == pytest.ExitCode.OK, done.report
    assert "1 passed" in done.report
