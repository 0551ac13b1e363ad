"""The checks of a first contact pass, family by family; test_caught.py runs them on mutants."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from oocbfs.first_contact.families import FAMILIES
from oocbfs.first_contact.graphs import SMALL, Case, open_cases
from oocbfs.kernels.cuda import source as cuda_source
from oocbfs.progress import Phases
from tests.support.exhaustive import some
from tests.support.gpu.emulated import FOLDER
from tests.support.gpu.first_contact import OF_KERNELS, emulated_target

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Case]]:
    folder = tmp_path_factory.mktemp("cases")
    with open_cases(Path(folder), SMALL, Phases(show=False)) as made:
        yield made


@pytest.mark.long
@pytest.mark.parametrize("family", OF_KERNELS)
def test_all_checks_of_a_family_pass(family: str, cases: list[Case]) -> None:
    checks = list(FAMILIES[family](emulated_target(), cases))
    assert len(checks) >= 30
    is_mutant = FOLDER != cuda_source.FOLDER
    for check in checks if is_mutant else some(checks, 24):
        check.run()
