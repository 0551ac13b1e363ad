"""The command line: in a process of its own, in this one, or in one that others end."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from oocbfs.cli import main, program
from tests.support import children

Done = subprocess.CompletedProcess[str]


def run(*arguments: object, **settings: Any) -> Done:
    """Run ``oocbfs`` in a process of its own, as a person or a script does."""
    return children.run(
        [sys.executable, "-m", "oocbfs", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        **settings,
    )


def call(*arguments: object, cwd: Path | None = None) -> Done:
    """Run ``oocbfs`` in this process, which takes a tenth of the time, and catch what it prints."""
    words = [str(argument) for argument in arguments]
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    with (
        contextlib.redirect_stdout(streams[0]),
        contextlib.redirect_stderr(streams[1]),
        contextlib.chdir(cwd or "."),
    ):
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    shown, said = (stream.buffer.getvalue().decode() for stream in streams)
    return subprocess.CompletedProcess(words, code, shown, said)


def said(done: Done) -> list[str]:
    """Return what was said, but for a word about kernels that are compiled."""
    return [line for line in done.stderr.splitlines() if "compiling" not in line]


def batch(*arguments: object) -> None:
    """Run ``oocbfs batch`` in this process to a good end."""
    done = call("batch", *arguments)
    assert done.returncode == 0, done.stderr


def tree(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


class Started:
    """``oocbfs`` in a process that a signal is to end.

    It comes from a server that has imported all modules, so that the time until the signal is spent
    on what the program does, and not on its start.
    """

    _server = multiprocessing.get_context("forkserver")
    _server.set_forkserver_preload(
        ["__main__", __name__, "oocbfs.batch.jobs", "oocbfs.conversion.converter"]
    )

    def __init__(self, messages: Path, *arguments: object) -> None:
        self._messages = messages
        words = [str(argument) for argument in arguments]
        self._process = self._server.Process(target=_run_for_signals, args=(messages, words))
        self._process.start()

    def send_signal(self, number: int) -> None:
        """Send a signal."""
        assert self._process.pid is not None
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._process.pid, number)

    def wait_until_begun(self) -> None:
        """Wait until a signal meets the command line."""
        assert self._process.pid is not None
        children.wait_for_handlers(self._process.pid, lambda: self._process.exitcode is not None)

    def ends_within(self, seconds: float) -> bool:
        """Wait for so long at most; tell whether the process ended by itself."""
        self._process.join(seconds)
        return self._process.exitcode is not None

    def finish(self) -> tuple[int, str]:
        """Wait for the end; returns the exit code and what was said."""
        hangs = not self.ends_within(children.LIMIT_SECONDS)
        if hangs:
            self.send_signal(signal.SIGABRT)  # prints the stacks
            if not self.ends_within(children.DYING_SECONDS):
                self.send_signal(signal.SIGKILL)
                assert self.ends_within(children.DYING_SECONDS)
        assert self._process.exitcode is not None
        said = self._messages.read_text() if self._messages.exists() else ""
        self._messages.unlink(missing_ok=True)
        assert not hangs, said
        return self._process.exitcode, said


class Moments:
    """Random moments of a run that takes so many seconds and is repeated.

    Runs that end before their moment tell better how many: a machine that was busy while the first
    was timed would else let all of them end.
    """

    def __init__(self, seed: object, seconds: float) -> None:
        self._rng = random.Random(str(seed))
        self._seconds = seconds

    def signal(self, process: Started, number: int) -> None:
        """Send a signal at the next moment to a process that was just started."""
        began = time.perf_counter()
        if process.ends_within(self._rng.uniform(0.05, 1.05) * self._seconds):
            self._seconds = min(self._seconds, time.perf_counter() - began)
        else:
            process.send_signal(number)


def _run_for_signals(messages: Path, words: list[str]) -> None:
    """Run the command line."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(messages, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    program(words)
