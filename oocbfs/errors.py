"""Everything oocbfs raises on purpose: what went wrong, where, and what to do next.

OocbfsError
├── InputError       an edge list that cannot be read as one
├── FormatError      a container that is damaged, truncated or from another version
├── BudgetError      more memory is needed than was allowed
├── OutputError      a result that cannot be written where it was asked for
├── ClusterError     a cluster that is not there, goes away, or is not what is needed
└── QueryError       a question the graph cannot answer, such as an unknown vertex
    └── QueueError   a method's queue that has no room for what a level found
"""

from __future__ import annotations


class OocbfsError(Exception):
    """Base of all errors that oocbfs explains in one line."""


class InputError(OocbfsError):
    """An input that cannot be read as a graph; names the file, the line and the text."""

    def __init__(
        self, message: str, *, path: str = "", line: int | None = None, text: str | None = None
    ) -> None:
        where = f"{path}:{line}: " if path and line is not None else f"{path}: " if path else ""
        shown = "" if text is None else f": {text[:80]!r}{'…' if len(text) > 80 else ''}"
        super().__init__(f"{where}{message}{shown}")


class FormatError(OocbfsError):
    """A container that is damaged, truncated or written by another version."""


class BudgetError(OocbfsError):
    """A memory budget that is too small for the work; says how much is needed."""

    def __init__(self, message: str, needed_bytes: int | None = None) -> None:
        super().__init__(message)
        self.needed_bytes = needed_bytes


class OutputError(OocbfsError):
    """A result that cannot be written where it was asked for."""


class ClusterError(OocbfsError):
    """A cluster that is not there, goes away, or whose workers cannot do the work."""


class QueryError(OocbfsError):
    """A question the graph cannot answer, such as a vertex it does not have."""


class QueueError(QueryError):
    """A queue of a method that has no room for what a level found; says how much it needs."""
