"""Lines about what makes a command slow."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path
from typing import Any

_COMPILING = "compiling kernels for this command, once …"
_COMPILING_FIRST = (
    "compiling kernels, once for each command; 'oocbfs doctor --compile' does it for all …"
)
_log = logging.getLogger(__name__)


def announce() -> None:
    """Log what makes a command slow: compiling kernels, unpacking a graph."""
    announce_compilation()
    announce_unpacking()


def announce_unpacking() -> None:
    """Log, once per file, how much memory a compressed graph takes."""
    from oocbfs import memory

    @cache
    def say(path: str, num_bytes: int) -> None:
        _log.info("unpacking %s: %s of memory", path, memory.format_size(num_bytes))

    memory.on_unpacking = say


def announce_compilation() -> None:
    """Log once in a command that kernels are being compiled, if they are, and show progress."""
    _announcer().is_first = None


@cache
def _announcer() -> Any:
    """Make the listener, one for all commands that a process runs."""
    from oocbfs.kernels.cache import nothing_is_cached
    from oocbfs.kernels.internals import event

    class Announcer(event.Listener):  # type: ignore[misc]
        """Counts functions; those that a kernel calls are compiled while it is."""

        is_first: bool | None = None
        depth = 0
        bar: Any = None

        def on_start(self, event: event.Event) -> None:
            if self.is_first is None:
                self.is_first = nothing_is_cached()
                _log.info(_COMPILING_FIRST if self.is_first else _COMPILING)
            if self.depth == 0:
                self.bar = _compilation_bar(event.data["dispatcher"].py_func)
            self.depth += 1

        def on_end(self, event: event.Event) -> None:
            self.depth -= 1
            self.bar.update(self.bar.n < self.bar.total)
            if self.depth == 0:
                self.bar.close()

    announcer = Announcer()
    event.register("numba:compile", announcer)
    return announcer


def _compilation_bar(kernel: Any) -> Any:
    """Make a bar of the functions that are compiled with a kernel."""
    from oocbfs.kernels.cache import count_kernels
    from oocbfs.progress import make_bar

    return make_bar("compiling", count_kernels(Path(kernel.__code__.co_filename)), "function")
