"""Processes that tests start: each has a limit, after which it prints its stacks and is killed."""

from __future__ import annotations

import contextlib
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, overload

from tests.support.exhaustive import ALL

# Less than the limit of a test (faulthandler_timeout in pyproject.toml and scripts/test), so that
# the child ends first and says where it hangs.
LIMIT_SECONDS = 3000 if ALL else 600
DYING_SECONDS = 10


@overload
def run(command: Any, *, text: Literal[True], **how: Any) -> subprocess.CompletedProcess[str]: ...
@overload
def run(command: Any, **how: Any) -> subprocess.CompletedProcess[bytes]: ...
def run(
    command: Any,
    *,
    input: Any = None,
    check: bool = False,
    timeout: float = LIMIT_SECONDS,
    **how: Any,
) -> subprocess.CompletedProcess[Any]:
    """Run a command as ``subprocess.run`` does, but not for longer than a limit."""
    if how.pop("capture_output", False):
        how["stdout"] = how["stderr"] = subprocess.PIPE
    if input is not None:
        how["stdin"] = subprocess.PIPE
    with subprocess.Popen(command, **how) as process:
        out, err = finish(process, input=input, timeout=timeout)
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check and done.returncode:
        # Unlike subprocess, which keeps what was said to itself.
        raise AssertionError(f"{command} ended with {done.returncode}:\n{err}\n{out}")
    return done


def run_python(code: str, *arguments: object, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run a program in a Python of its own; one that fails is an error, unless ``check`` is off."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return run(command, capture_output=True, text=True, **{"check": True, **how})


def finish(
    process: subprocess.Popen[Any], *, input: Any = None, timeout: float = LIMIT_SECONDS
) -> tuple[Any, Any]:
    """Wait for the end of a process as ``communicate`` does, but not for longer than a limit."""
    try:
        return process.communicate(input, timeout=timeout)
    except subprocess.TimeoutExpired:
        said = _stop(process)
        raise AssertionError(f"{process.args!r} took longer than {timeout} s:\n{said}") from None
    except BaseException:
        process.kill()
        raise


def wait_for_handlers(pid: int, has_ended: Callable[[], bool]) -> None:
    """Wait until a process handles SIGTERM, as ``oocbfs`` does once it has begun, or has ended.

    A signal before that meets the start of Python, and how that ends is not ours.
    """
    deadline = time.monotonic() + LIMIT_SECONDS
    with contextlib.suppress(OSError):  # it is gone, or this is not Linux
        while not has_ended() and time.monotonic() < deadline:
            handled = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
            if handled and int(handled[1], 16) >> (signal.SIGTERM - 1) & 1:
                return
            time.sleep(0.001)


def _stop(process: subprocess.Popen[Any]) -> str:
    """Kill a process; returns what it said, at last the stacks of all threads if it is Python."""
    said = None
    # The first is answered by faulthandler: see PYTHONFAULTHANDLER.
    for number in (signal.SIGABRT, signal.SIGKILL):
        process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):  # children of its own hold the pipes
            _, said = process.communicate(timeout=DYING_SECONDS)
            break
    return said.decode(errors="replace") if isinstance(said, bytes) else said or ""
