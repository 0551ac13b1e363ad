"""Run single tests with broken kernels, each in a process forked from one that has imported all.

To start Python and import NumPy, SciPy, Numba and the engine takes longer than most of these
tests. The runner has no threads of its own, so that it may fork. It reads one JSON object a line,
and answers with the exit code of pytest.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from tests.support import children

_SECONDS = 300


class Outcome(NamedTuple):
    """What pytest said about one test."""

    code: int
    report: str


class Runner:
    """The process that forks, as its client sees it."""

    def __init__(self) -> None:
        environment = {
            **os.environ,
            "CXXFLAGS": "-O0",
            # Zarr's would import all of Zarr and CuPy.
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        }
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.mutants.mutant_runner"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=Path(__file__).parents[3],
            text=True,
        )

    def run(self, test: str, folder: Path, environment: dict[str, str]) -> Outcome:
        """Run one test with the kernels in ``folder/kernels``; what it prints goes to a file there.

        They are named from that folder on: what is compiled from the same text is then found in the
        cache, whatever the folder is called in this run.
        """
        paths = {"OOCBFS_TEST_KERNELS": "kernels", "CPATH": str(folder)}
        request = {"test": test, "folder": str(folder), "environment": {**environment, **paths}}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        assert answer, "the runner ended"
        return Outcome(int(answer), (folder / "report").read_text())

    def close(self) -> None:
        """Let the process end."""
        children.finish(self._process)


def _serve() -> None:
    _import_all()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(request)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _import_all() -> None:
    """Import what reads no variable that a request sets, and compile what all tests use."""
    import hypothesis  # noqa: F401
    import pytest  # noqa: F401

    import tests.support.gpu.slow_bytes
    import tests.support.shared  # noqa: F401
    from tests.support.gpu.gpu_graphs import levels_by_scipy, mixed_graph, rows_of

    matrix = mixed_graph(1)
    rows_of(matrix)
    levels_by_scipy(matrix, [0])


def _run(request: dict[str, Any]) -> None:
    """Be the test; never returns."""
    import pytest

    signal.alarm(_SECONDS)
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    report = os.open("report", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(report, stream)
    code = int(pytest.main(["-q", "-x", "-p", "no:cacheprovider", request["test"]]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _serve()
