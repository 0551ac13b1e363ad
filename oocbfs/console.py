"""Standard output and standard error as they should be on any terminal, and at the end of any pipe."""

from __future__ import annotations

import codecs
import io
import os
import sys
from contextlib import suppress

from oocbfs.errors import OutputError

# What stands for our own signs where an encoding lacks them; of others it gets the numbers.
_PLAIN = {"→": "->", "…": "...", "–": "-", "×": "x", "µ": "u"}
_HANDLER = "oocbfs.plain"


def _write_plain(error: UnicodeError) -> tuple[str, int]:
    """Replace what an encoding lacks, half characters of odd file names among it."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    plain = (_PLAIN.get(s) or s.encode("ascii", "backslashreplace").decode() for s in signs)
    return "".join(plain), error.end


def prepare() -> None:
    """Have both streams write what they can, and exist even if the caller closed them."""
    codecs.register_error(_HANDLER, _write_plain)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", errors=_HANDLER))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_HANDLER)


def flush() -> None:
    """Write out what waits, while there is still somebody to say that it failed."""
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
    """Write a message so that it stays one line, whatever names it holds."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
