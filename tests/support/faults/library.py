"""The preloaded library that makes the n-th system call of a kind fail; see ``failing.c``."""

from __future__ import annotations

import ctypes
import errno
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support import children

# In the order of failing.c; each with what it may say.
CALLS = {
    "open": ("EMFILE", "EIO", "ENOSPC", "EINTR", "late-EIO", "lasting-EMFILE"),
    "read": ("EIO", "EINTR", "short"),
    "write": ("EIO", "ENOSPC", "EINTR", "short", "lasting-ENOSPC"),
    "sync": ("EIO", "ENOSPC"),
    "truncate": ("EIO", "ENOSPC", "EINTR"),
    "mmap": ("ENOMEM", "EIO"),
    "rename": ("EIO", "ENOSPC"),
    "link": ("EIO", "ENOSPC"),
    "unlink": ("EIO",),
    "mkdir": ("EIO", "ENOSPC"),
    "close": ("EIO", "EINTR"),
    "stat": ("EIO",),
    "seek": ("EIO",),
    "list": ("EIO", "EMFILE"),
    "lock": ("EIO", "EINTR"),
}

_DAY_SECONDS = 86_400


@dataclass(frozen=True)
class Fault:
    """One failing call: the n-th of a kind, and what it says.

    ``short`` reads or writes half. ``late-`` fails after a file was created, and ``lasting-`` also
    makes all later calls of that kind fail.
    """

    call: str
    nth: int
    error: str

    def __str__(self) -> str:
        return f"--call {self.call} --nth {self.nth} --error {self.error}"


def is_preloaded() -> bool:
    """Return whether calls of this process go through the library."""
    return hasattr(ctypes.CDLL(None), "faults_arm")


def run_preloaded(module: str, words: list[str], folder: Path) -> int:
    """Run a module again with the library before all others; it is compiled into the folder."""
    made = folder / "failing.so"
    source = Path(__file__).with_name("failing.c")
    compiler = shutil.which("gcc")
    if compiler is None:
        sys.exit("failing system calls need a C compiler, and gcc was not found")
    children.run([compiler, "-O1", "-shared", "-fPIC", source, "-o", made, "-ldl"], check=True)
    before = os.environ.get("LD_PRELOAD")
    environment = os.environ | {"LD_PRELOAD": f"{made}:{before}" if before else str(made)}
    command = [sys.executable, "-m", module, *words, "--folder", str(folder)]
    # All faults of all cases take hours; each run of a case has a limit of its own.
    return children.run(command, env=environment, check=False, timeout=_DAY_SECONDS).returncode


@contextmanager
def failing(folder: Path, fault: Fault | None) -> Iterator[dict[str, int]]:
    """Let calls below a folder fail; returns their counts at the end, and how often one failed."""
    library = ctypes.CDLL(None)
    happened: dict[str, int] = {}
    kind = number = code = lasting = late = 0
    if fault is not None:
        *how, name = fault.error.rsplit("-", 1)
        kind, number = list(CALLS).index(fault.call), fault.nth
        code = 0 if name == "short" else getattr(errno, name)
        lasting, late = how == ["lasting"], how == ["late"]
    library.faults_arm(
        os.fsencode(folder), kind, ctypes.c_long(number or 2**62), code, int(lasting), int(late)
    )
    try:
        yield happened
    finally:
        library.faults_disarm()
        happened["fired"] = library.faults_fired()
        happened.update((name, library.faults_count(i)) for i, name in enumerate(CALLS))
