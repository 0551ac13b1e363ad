"""Kernels broken on purpose: each mutant must be caught by the test named beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from oocbfs.kernels.cuda.source import FOLDER
from tests.support.bfs_mutants import BFS_MUTANTS
from tests.support.mutant import Mutant
from tests.support.other_mutants import OTHER_MUTANTS

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    "mutant", [*BFS_MUTANTS, *OTHER_MUTANTS], ids=lambda mutant: mutant.name.replace(" ", "-")
)
def test_mutants_are_caught(mutant: Mutant, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    for path in (*FOLDER.glob("*/*.cu"), *FOLDER.glob("*/*.cuh")):
        copy = folder / path.relative_to(FOLDER)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    path = folder / mutant.source
    text = path.read_text()
    assert text.count(mutant.old) == 1, "the mutant does not fit its source any more"
    path.write_text(text.replace(mutant.old, mutant.new))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"),
            str(TESTS / mutant.caught_by),
        ],
        env={
            **os.environ,
            "OOCBFS_TEST_KERNELS": str(folder),
            "OOCBFS_TEST_CHECKS": mutant.checks.value,
            "CXXFLAGS": "-O0",
            # Zarr's would import all of Zarr and CuPy.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "could not be compiled" not in done.stdout, done.stdout
    assert done.returncode != 0
    assert any(words in done.stdout for words in mutant.report.split("|")), done.stdout
