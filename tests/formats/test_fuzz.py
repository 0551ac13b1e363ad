"""Thousands of changed and signed files through all verbs and engines: tests/support/fuzzing."""

import random
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.arrays import ResultArrays, fresh
from tests.support.exhaustive import ALL
from tests.support.fuzzing.changes import ORIGINALS, Parts, originals
from tests.support.fuzzing.fuzz import fuzz
from tests.support.fuzzing.plain import PlainGraph
from tests.support.fuzzing.probes import PROBES, Case, ask

# 800 mutants, or 2,200, in parts that can run side by side.
NUM_PARTS = 4 if ALL else 2
MUTANTS_EACH = 550 if ALL else 150


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("fuzz")
    originals(made)
    return made


@pytest.mark.long
@pytest.mark.parametrize("part", range(NUM_PARTS))
def test_no_mutant_crashes_hangs_or_invents(folder: Path, part: int) -> None:
    first = part * MUTANTS_EACH
    failures, outcomes = fuzz(1, first, first + MUTANTS_EACH, folder)
    assert not failures, "\n".join(failures)
    # Otherwise the mutants would be too tame, or too wild to get past the door.
    assert outcomes["asked"] >= MUTANTS_EACH
    assert outcomes["refused"] > MUTANTS_EACH // 5
    assert outcomes["sound"] - outcomes["sound but refused"] > MUTANTS_EACH // 20


@pytest.mark.parametrize("name", ORIGINALS)
def test_the_plain_reader_reads_what_was_converted(folder: Path, name: str) -> None:
    """Nothing is refused of a file that nobody changed, and taking it apart changes nothing."""
    data = originals(folder)[name]
    assert Parts(data).assemble() == data
    plain = PlainGraph(data)
    assert plain.is_well_formed
    with oocbfs.open(folder / f"{name}.ocg") as graph:
        matrix = graph.to_scipy()
    assert plain.neighbours is not None
    for row, expected in enumerate(plain.neighbours):
        assert set(matrix.indices[matrix.indptr[row] : matrix.indptr[row + 1]]) == expected


@pytest.mark.parametrize("probe", PROBES)
def test_every_probe_is_answered_by_a_sound_file(folder: Path, probe: str) -> None:
    path = folder / "degree.ocg"
    plain = PlainGraph(path.read_bytes())
    for seed in range(3):
        refused = ask(Case(path, plain, random.Random(seed)), probe)
        assert refused is None or "was not reached" in refused


def test_unset_results_show_in_tests() -> None:
    """The suite poisons fresh results, in memory and in files, as no level or vertex looks."""
    for arrays in (ResultArrays(), ResultArrays(1 << 20), ResultArrays(0)):
        assert (arrays.allocate(3, np.int32) == -1431655766).all()
    assert (fresh((2, 3), np.int8) == -86).all()
