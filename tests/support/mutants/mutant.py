"""A kernel broken on purpose."""

from __future__ import annotations

from typing import NamedTuple

from oocbfs.kernels.emulator.build import Checks


class Mutant(NamedTuple):
    """A small change to one source, the test that must fail with it, and words of its report."""

    name: str
    source: str
    old: str
    new: str
    caught_by: str
    report: str
    checks: Checks = Checks.NONE
