"""A kernel broken on purpose."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

from oocbfs.kernels.cuda.source import FOLDER, KERNELS, headers, sources
from oocbfs.kernels.emulator.build import Checks


def copy_kernels(folder: Path) -> None:
    """Copy all CUDA sources and what they include."""
    for path in (*sources(KERNELS), *FOLDER.glob("methods/*.cu"), *headers()):
        copy = folder / path.relative_to(FOLDER)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)


class Mutant(NamedTuple):
    """A small change to one source, the test that must fail with it, and words of its report."""

    name: str
    source: str
    old: str
    new: str
    caught_by: str
    report: str
    checks: Checks = Checks.NONE

    def write(self, folder: Path) -> None:
        """Copy all kernels, this one broken."""
        copy_kernels(folder)
        path = folder / self.source
        text = path.read_text()
        assert text.count(self.old) == 1, "the mutant does not fit its source any more"
        path.write_text(text.replace(self.old, self.new))
