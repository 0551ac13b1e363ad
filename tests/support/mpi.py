"""Start programs on ranks of MPI, with the library of the ``mpich`` wheel if it is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from tests.support import children


def _from_wheel(name: str) -> Path | None:
    """Find a file of the wheel, which may be installed beside this environment."""
    try:
        files = metadata.files("mpich") or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(file.locate()).resolve() for file in files if file.name == name), None)


_LIBRARY = _from_wheel("libmpi.so.12")
_PROGRAM = _from_wheel("mpiexec") or shutil.which("mpiexec")
MISSING = None if find_spec("mpi4py") and _PROGRAM else "MPI needs mpi4py and mpiexec"


def run_on_ranks(count: int, *words: object) -> subprocess.CompletedProcess[str]:
    """Run ``python WORDS`` on so many ranks."""
    environment = dict(os.environ)
    if _LIBRARY is not None:
        environment["LD_LIBRARY_PATH"] = str(_LIBRARY.parent)
    return children.run(
        [str(_PROGRAM), "-n", str(count), sys.executable, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
