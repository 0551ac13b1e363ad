"""Start programs on ranks of MPI, with the library of the ``mpich`` wheel if it is there."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
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


def _command(count: int, words: tuple[object, ...]) -> tuple[list[str], dict[str, str]]:
    """Return what starts ``python WORDS`` on so many ranks, and its environment."""
    environment = dict(os.environ)
    if _LIBRARY is not None:
        environment["LD_LIBRARY_PATH"] = str(_LIBRARY.parent)
    return [str(_PROGRAM), "-n", str(count), sys.executable, *map(str, words)], environment


def run_on_ranks(count: int, *words: object) -> subprocess.CompletedProcess[str]:
    """Run ``python WORDS`` on so many ranks."""
    command, environment = _command(count, words)
    return children.run(command, capture_output=True, text=True, check=False, env=environment)


class StartedRanks:
    """``python WORDS`` on so many ranks, of which a signal is to end one."""

    def __init__(self, count: int, *words: object) -> None:
        command, environment = _command(count, words)
        self._process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment | {"OOCBFS_TEST_JOB": f"{os.getpid()}-{id(self)}"},
        )
        self._job = f"OOCBFS_TEST_JOB={os.getpid()}-{id(self)}".encode()

    def _ranks(self) -> dict[int, Path]:
        """Find the processes of the ranks, by their environment."""
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                words = (folder / "environ").read_bytes().split(b"\0")
                ranks = [word[9:] for word in words if word.startswith(b"PMI_RANK=")]
                if ranks and self._job in words:
                    found[int(ranks[0])] = folder
        return found

    def maps(self, rank: int, file: str) -> bool:
        """Return whether a rank has mapped a file of that name."""
        try:
            return file in (self._ranks()[rank] / "maps").read_text()
        except (KeyError, OSError):
            return False

    def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that ranks do."""
        deadline = time.monotonic() + 120
        while not condition():
            assert self._process.poll() is None, self._process.communicate(timeout=60)
            assert time.monotonic() < deadline, "ranks take too long"
            time.sleep(0.01)

    def send_signal(self, rank: int, number: int) -> None:
        """Send a signal to a rank."""
        os.kill(int(self._ranks()[rank].name), number)

    def finish(self, seconds: float) -> tuple[int, list[str]] | None:
        """Wait for the end; returns the exit code and what was said, or None if it never came."""
        try:
            _, said = self._process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            for folder in self._ranks().values():
                with suppress(ProcessLookupError):
                    os.kill(int(folder.name), signal.SIGKILL)
            self._process.kill()
            self._process.communicate(timeout=60)
            return None
        lines = [line for line in said.splitlines() if "compiling" not in line]
        return self._process.returncode, lines
