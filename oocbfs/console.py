"""Make standard output and standard error work on any terminal, and at the end of any pipe."""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress

from oocbfs.errors import OutputError

# What replaces our own signs if an encoding lacks them; other characters become their numbers.
_PLAIN = {"→": "->", "…": "...", "–": "-", "×": "x", "µ": "u"}
_HANDLER = "oocbfs.plain"


def _write_plain(error: UnicodeError) -> tuple[str, int]:
    """Replace what an encoding lacks, such as half characters of odd file names."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    plain = (_PLAIN.get(s) or s.encode("ascii", "backslashreplace").decode() for s in signs)
    return "".join(plain), error.end


def prepare() -> None:
    """Let both streams write what they can, and exist even if the caller closed them."""
    codecs.register_error(_HANDLER, _write_plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", errors=_HANDLER))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def flush() -> None:
    """Write out what is buffered, while a failure can still be reported."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        silence()
        reason = error.strerror or str(error)
        raise OutputError(f"standard output cannot be written: {reason}") from error


def silence() -> None:
    """Give up streams that cannot be written, so that the interpreter does not try once more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def one_line(text: str) -> str:
    """Write a message so that it stays one line, with any names in it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
