"""One command in a process of its own: started, signalled, waited for, and judged by its end."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support import children

# Far longer than any command takes on a busy machine.
LIMIT_SECONDS = 180
_STACKS_SECONDS = 10
_CHILD = """\
import os, sys
from oocbfs.cli import program
if sys.argv[1] == "closed":
    os.close(0)
program(sys.argv[2:])
"""
# What a killed program may leave; the next one with the same output removes it.
LEFT_BY_KILL = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")
# SIGTERM finds the system's handler once the command line is done, and Python ends.
ENDS = {
    signal.SIGINT: {130},
    signal.SIGTERM: {143, -signal.SIGTERM},
    signal.SIGKILL: {-signal.SIGKILL},
}


NOBODY_READS = 141


class WrongError(AssertionError):
    """Something that must not be: what, and the command."""


@dataclass(frozen=True)
class Disturbance:
    """A signal so many seconds after the start, or none; and what is wrong with the streams."""

    signal: signal.Signals | None = None
    seconds: float = 0.0
    stdin: str = "empty"
    nobody_reads: bool = False

    def __str__(self) -> str:
        said = "" if self.signal is None else f" [{self.signal.name} after {self.seconds:.3f} s]"
        said += " [nobody reads]" if self.nobody_reads else ""
        return said + (" [stdin closed]" if self.stdin == "closed" else "")


@dataclass(frozen=True)
class End:
    """How a command ended."""

    code: int
    shown: str
    said: list[str]


def run(
    words: list[str], folder: Path, disturbance: Disturbance, limit: float = LIMIT_SECONDS
) -> End:
    """Run a command in a folder; check all that holds for every end.

    Raises
    ------
    WrongError
        If it hangs, has a traceback, says more than a line, or ends with a code that means
        something else.
    """
    environment = {**os.environ, "TMPDIR": str(folder / "tmp"), "OOCBFS_POISON": "1"}
    child = [sys.executable, "-X", "faulthandler", "-c", _CHILD, disturbance.stdin]
    process = subprocess.Popen(
        [*child, *words],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    if disturbance.nobody_reads:
        assert process.stdout is not None
        process.stdout.close()
        process.stdout = None
    children.wait_for_handlers(process.pid, lambda: process.poll() is not None)
    shown, said = _finish(process, words, disturbance, limit)
    end = End(process.returncode, shown or "", [line for line in said.splitlines() if line])
    _judge(end, words, disturbance)
    return end


def _finish(
    process: subprocess.Popen[str], words: list[str], disturbance: Disturbance, limit: float
) -> tuple[str, str]:
    """Send the signal, and wait; one that hangs shows its stacks."""
    if disturbance.signal is not None:
        try:
            return process.communicate(timeout=disturbance.seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(disturbance.signal)
    try:
        return process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        try:
            _, stacks = process.communicate(timeout=_STACKS_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            _, stacks = process.communicate(timeout=_STACKS_SECONDS)
        raise wrong(f"still runs after {limit} s:\n{stacks}", words, disturbance) from None


def _judge(end: End, words: list[str], disturbance: Disturbance) -> None:
    """Check the exit code and what was said."""
    expected = {0, 1}
    if disturbance.nobody_reads:
        expected.add(NOBODY_READS)
    if disturbance.signal is not None:
        expected |= ENDS[disturbance.signal]
    said = [line for line in end.said if not line.startswith("compiling")]
    if end.code not in expected:
        raise wrong(f"ended with {end.code}:\n" + "\n".join(said), words, disturbance)
    if any("Traceback" in line or "Exception ignored" in line for line in said):
        raise wrong("has a traceback:\n" + "\n".join(said), words, disturbance)
    if end.code == 1 and len(said) != 1:
        raise wrong(f"was refused in {len(said)} lines:\n" + "\n".join(said), words, disturbance)


def wrong(what: str, words: list[str], disturbance: Disturbance = Disturbance()) -> WrongError:
    """Return an error: what is wrong, of which command."""
    return WrongError(f"oocbfs {shlex.join(words)}{disturbance}\n{what}")
