"""Processes of this machine that do what comes through a pipe, until it ends.

So they end with the process that started them, however that ends. No thread stands between the two,
as in Python's own pools: a thread that Ctrl-C finds at the pipe fails, or waits for ever.
"""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection

# How long a process has to end by itself.
_PATIENCE_SECONDS = 5.0
_PROGRAM = """
import signal, sys
from multiprocessing.connection import Connection
# Ctrl-C reaches all processes of a terminal; the first one ends the others.
signal.signal(signal.SIGINT, signal.SIG_IGN)
sys.path[:] = {path!r}
from {module} import {name}
with Connection({pipe}) as pipe:
    try:
        {name}(pipe, *{shared})
    except (EOFError, ConnectionError):
        pass
"""


class PipedProcess:
    """A process that runs ``work(pipe, *shared)``; shared are descriptors, which it inherits."""

    def __init__(self, work: Callable[..., object], *shared: int) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            program = _PROGRAM.format(
                path=sys.path,
                module=work.__module__,
                name=work.__name__,
                pipe=theirs.fileno(),
                shared=shared,
            )
            self.process = subprocess.Popen(
                [sys.executable, "-c", program],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), *shared),
            )
        self.pipe = Connection(ours.detach())

    def send(self, message: object) -> None:
        """Send it something to do; a dead one is noticed when it does not answer."""
        with suppress(OSError):
            self.pipe.send(message)

    def stop(self) -> None:
        """Ask it to end when it has done what it was given."""
        self.pipe.close()

    def kill(self) -> None:
        """End it at once."""
        self.process.kill()
        self.pipe.close()

    def join(self) -> None:
        """Wait for its end, and enforce it."""
        try:
            self.process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def describe_end(self) -> str:
        """Return how it ended."""
        code = self.process.returncode
        if code < 0:
            with suppress(ValueError):
                return f"killed by {signal.Signals(-code).name}"
        return f"it ended with code {code}"
