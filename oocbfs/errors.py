"""Everything oocbfs raises on purpose: what went wrong, where, and what to do next.

OocbfsError
├── FileError        something about a file
│   ├── InputError   an edge list that cannot be read as one
│   ├── FormatError  a container that is damaged, truncated or from another version
│   └── OutputError  a result that cannot be written where it was asked for
├── BudgetError      more memory is needed than was allowed
├── ClusterError     a cluster that is not there, goes away, or is not what is needed
└── QueryError       a question the graph cannot answer, such as an unknown vertex; a ValueError
    └── QueueError   a method's queue that has no room for what a level found

Where Python itself would raise an OSError, an error is that one, too: opening a graph that is not
there is a FormatError and a FileNotFoundError. ``FileError.like`` makes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any, Self

# Messages are written for the command line; in Python, its options are arguments.
_OPTION = re.compile(
    r"(?<![\w/-])--(?P<no>no-)?(?P<name>[a-z][a-z-]*[a-z])"
    r"(?: (?P<value>(?<=ids )\w+|(?<=engine )\w+|(?<=columns )\w+,\w+|(?<=format )\w+))?"
)
# What is said of a shell is left alone: commands stand in such quotes.
_COMMAND = re.compile(r"('oocbfs [^']*')")
_FLAGS = frozenset(("force", "header", "allow-empty", "validate", "parents", "directed"))
_speaks_shell = False


@contextmanager
def in_shell() -> Iterator[None]:
    """Let messages name options of the command line inside this block."""
    global _speaks_shell
    before, _speaks_shell = _speaks_shell, True
    try:
        yield
    finally:
        _speaks_shell = before


def spoken(message: str) -> str:
    """Return a message as who reads it speaks: ``--force`` is ``force=True`` in Python."""
    if _speaks_shell or "--" not in message:
        return message
    parts = _COMMAND.split(message)
    return "".join(part if i % 2 else _OPTION.sub(_argument, part) for i, part in enumerate(parts))


def _argument(option: re.Match[str]) -> str:
    name, value = option["name"].replace("-", "_"), option["value"]
    if value is not None:
        return f'{name}="{value}"'
    return f"{name}={not option['no']}" if option["name"] in _FLAGS else name


def shown(value: object) -> str:
    """Write something wrong in one short line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}…"


class OocbfsError(Exception):
    """Base of all errors that oocbfs explains in one line."""

    def __init__(self, message: str = "", *more: object) -> None:
        super().__init__(spoken(str(message)), *more)


class FileError(OocbfsError):
    """Base of the errors that are about a file."""

    @classmethod
    def like(cls, error: OSError | type[OSError], message: str, **details: Any) -> Self:
        """Return an error of this class that is one of Python's, too: that of the system."""
        kind = error if isinstance(error, type) else type(error)
        both = _BOTH.get((cls, kind)) or _BOTH[cls, OSError]
        found: Any = both(message, **details)
        if isinstance(error, OSError):
            found.errno, found.strerror = error.errno, error.strerror
        return found  # type: ignore[no-any-return]


class InputError(FileError):
    """An input that cannot be read as a graph; names the file, the line and the text."""

    def __init__(
        self, message: str, *, path: str = "", line: int | None = None, text: str | None = None
    ) -> None:
        where = f"{path}:{line}: " if path and line is not None else f"{path}: " if path else ""
        shown = "" if text is None else f": {text[:80]!r}{'…' if len(text) > 80 else ''}"
        super().__init__(f"{where}{message}{shown}")


class FormatError(FileError):
    """A container that is damaged, truncated or written by another version."""


class BudgetError(OocbfsError):
    """A memory budget that is too small for the work; says how much is needed."""

    def __init__(self, message: str, needed_bytes: int | None = None) -> None:
        super().__init__(message)
        self.needed_bytes = needed_bytes


class OutputError(FileError):
    """A result that cannot be written where it was asked for."""


class ClusterError(OocbfsError):
    """A cluster that is not there, goes away, or whose workers cannot do the work."""


class QueryError(OocbfsError, ValueError):
    """A question the graph cannot answer, such as a vertex it does not have."""


class QueueError(QueryError):
    """A queue of a method that has no room for what a level found; says how much it needs."""


class _SystemError(OSError):
    """An error of the system that says what its one argument says."""

    def __str__(self) -> str:
        return str(self.args[0])


_SYSTEM_ERRORS = (
    OSError,
    FileNotFoundError,
    FileExistsError,
    PermissionError,
    IsADirectoryError,
    NotADirectoryError,
)
_BOTH: dict[tuple[type, type], type] = {}
for _ours, _theirs in product((InputError, FormatError, OutputError), _SYSTEM_ERRORS):
    _name = f"{_ours.__name__.removesuffix('Error')}{_theirs.__name__}"
    _bases = (_ours, _SystemError) if _theirs is OSError else (_ours, _SystemError, _theirs)
    # By their names, they can be pickled.
    _BOTH[_ours, _theirs] = globals()[_name] = type(
        _name, _bases, {"__module__": __name__, "__doc__": f"Is both: {_ours.__doc__}"}
    )
