"""What benchmarks share: timed commands, and tables."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Run:
    """One run of a command."""

    seconds: float
    peak_bytes: int


def timed(command: Sequence[object], **environment: str) -> Run:
    """Run a command to its end, with wall time and peak memory.

    A child's peak includes that of the process it was started from, so the caller must stay small:
    benchmarks import numba and the like only in children.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    )
    assert process.stderr is not None
    with process.stderr:
        said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{said.decode()}")
    return Run(seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))


def oocbfs(*arguments: object) -> list[str]:
    """Give the command line that runs oocbfs in a child."""
    return [sys.executable, "-m", "oocbfs", *map(str, arguments)]


def gapbs(program: str) -> Path | None:
    """Find a GAPBS program, if OOCBFS_GAPBS names the folder of a built one."""
    folder = os.environ.get("OOCBFS_GAPBS")
    return Path(folder) / program if folder else None


def huge_pages(threads: int) -> dict[str, str]:
    """Give the environment in which GAPBS has so many threads, and huge pages as numpy does."""
    return {"OMP_NUM_THREADS": str(threads), "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, ready to be pasted into a document."""
    print(f"\n{title}\n")
    for row in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(row) + " |")
