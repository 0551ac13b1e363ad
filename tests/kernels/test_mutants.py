"""Kernels broken on purpose: each mutant must be caught by the test named beside it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from oocbfs.kernels.cuda.source import FOLDER, KERNELS, headers, sources
from tests.support.exhaustive import some
from tests.support.mutants.bfs_mutants import BFS_MUTANTS
from tests.support.mutants.cache_mutants import CACHE_MUTANTS
from tests.support.mutants.devices_mutants import DEVICES_MUTANTS
from tests.support.mutants.method_mutants import METHOD_MUTANTS
from tests.support.mutants.mutant import Mutant
from tests.support.mutants.mutant_runner import Runner
from tests.support.mutants.other_mutants import OTHER_MUTANTS
from tests.support.mutants.result_mutants import RESULT_MUTANTS

TESTS = Path(__file__).parents[1]
MUTANTS = [
    *BFS_MUTANTS,
    *CACHE_MUTANTS,
    *DEVICES_MUTANTS,
    *OTHER_MUTANTS,
    *METHOD_MUTANTS,
    *RESULT_MUTANTS,
]


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    made = Runner()
    yield made
    made.close()


def copy_kernels(folder: Path) -> None:
    for path in (*sources(KERNELS), *FOLDER.glob("methods/*.cu"), *headers()):
        copy = folder / path.relative_to(FOLDER)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)


@pytest.mark.parametrize(
    "mutant",
    some(MUTANTS, 16),
    ids=lambda mutant: mutant.name.replace(" ", "-"),
)
def test_mutants_are_caught(mutant: Mutant, runner: Runner, tmp_path: Path) -> None:
    copy_kernels(tmp_path / "kernels")
    path = tmp_path / "kernels" / mutant.source
    text = path.read_text()
    assert text.count(mutant.old) == 1, "the mutant does not fit its source any more"
    path.write_text(text.replace(mutant.old, mutant.new))
    test = str(TESTS / mutant.caught_by)
    done = runner.run(test, tmp_path, {"OOCBFS_TEST_CHECKS": mutant.checks.value})
    assert "could not be compiled" not in done.report, done.report
    assert done.code == pytest.ExitCode.TESTS_FAILED, done.report
    assert any(words in done.report for words in mutant.report.split("|")), done.report


def test_the_runner_passes_what_is_not_broken(runner: Runner, tmp_path: Path) -> None:
    """Or a runner that fails every test would seem to catch all mutants."""
    copy_kernels(tmp_path / "kernels")
    done = runner.run(str(TESTS / BFS_MUTANTS[0].caught_by), tmp_path, {})
    assert done.code == pytest.ExitCode.OK, done.report
    assert "1 passed" in done.report
