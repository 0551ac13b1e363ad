"""Run commands under a memory limit of the kernel's, where a control group can be made."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from oocbfs.memory import parse_size
from tests.support import children

_ROOT = Path("/sys/fs/cgroup")
# The child joins the group before it becomes the command, so that every page is charged to it.
_JOIN = """
import os, sys
open(sys.argv[1], "w").write(str(os.getpid()))
os.execv(sys.argv[2], sys.argv[2:])
"""


def _own_folders() -> Iterator[tuple[Path, str]]:
    """Yield this process's group in the memory controller, v1 or v2, and the name of its limit."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            number, controllers, path = line.split(":", 2)
            if "memory" in controllers.split(","):
                yield _ROOT / "memory" / path[1:], "memory.limit_in_bytes"
            elif number == "0":
                yield _ROOT / path[1:], "memory.max"


@contextmanager
def memory_limit(limit_bytes: int) -> Iterator[list[str]]:
    """Make a group with this limit; yields what to put before a command. Skips if there is none."""
    for parent, name in _own_folders():
        group = parent / f"oocbfs-{os.getpid()}-{time.monotonic_ns()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / name).write_text(str(limit_bytes))
            with contextlib.suppress(OSError):  # v2 would swap instead
                (group / "memory.swap.max").write_text("0")
        except OSError:
            group.rmdir()
            continue
        try:
            yield [sys.executable, "-c", _JOIN, str(group / "cgroup.procs")]
        finally:
            group.rmdir()
        return
    pytest.skip("no memory controller in which this process may make a group")


# What a process has occupied before it became another one counts for that one, too: so a small
# process starts the command, and tells how much memory that took, in KB.
_TELL_PEAK = """
import os, sys
child = os.posix_spawn(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
open(sys.argv[1], "w").write(str(usage.ru_maxrss))
sys.exit(os.waitstatus_to_exitcode(status))
"""


def run_at_limit(
    command: Sequence[object], limit_bytes: int, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end under a limit, and check that no process of it occupied more."""
    with tempfile.NamedTemporaryFile("r") as told, memory_limit(limit_bytes) as prefix:
        done = children.run(
            [sys.executable, "-c", _TELL_PEAK, told.name, *prefix, *map(str, command)],
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
            env={**os.environ, **environment},
        )
        peak_bytes = 1024 * int(told.read())
    assert peak_bytes <= limit_bytes, (command, peak_bytes, limit_bytes)
    return done


def run_limited(command: Sequence[object], limit_bytes: int) -> subprocess.CompletedProcess[str]:
    """Run a command to its end under a limit."""
    with memory_limit(limit_bytes) as prefix:
        return children.run(
            [*prefix, *map(str, command)], capture_output=True, text=True, check=False
        )


def needed_bytes(message: str, what: str = "a search") -> int:
    """Return what a refusal says is needed, a little more because it is rounded."""
    needed = re.search(rf"{what} needs ([\d.]+ [MG]B) of memory", message)
    assert needed, message
    return parse_size(needed[1]) + (1 << 20)
