"""Make standard output and standard error work on any terminal, and at the end of any pipe.

Messages of the program go through the logger ``oocbfs``. The command line writes them to standard
error; users of the library decide for themselves.
"""

from __future__ import annotations

import codecs
import io
import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from oocbfs.errors import OutputError

# What replaces our own signs if an encoding lacks them; other characters become their numbers.
_PLAIN = {"→": "->", "…": "...", "–": "-", "×": "x", "µ": "u"}
_HANDLER = "oocbfs.plain"
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
_LOGGER = logging.getLogger("oocbfs")


def _write_plain(error: UnicodeError) -> tuple[str, int]:
    """Replace what an encoding lacks, such as half characters of odd file names."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    signs = error.object[error.start : error.end]
    plain = (_PLAIN.get(s) or s.encode("ascii", "backslashreplace").decode() for s in signs)
    return "".join(plain), error.end


def prepare() -> None:
    """Let both streams write what they can, and exist even if the caller closed them."""
    _occupy()
    codecs.register_error(_HANDLER, _write_plain)
    # What a signal raises inside of reconfigure would leave a stream without its encoder.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is None:
                setattr(sys, name, open(os.devnull, "w", errors=_HANDLER))  # noqa: SIM115
            elif isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors=_HANDLER)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _occupy() -> None:
    """Let no file that is opened get the number of a stream that the caller closed.

    Reading this one fails, as it would if it were closed.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_WRONLY)


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
    """Abandon streams that cannot be written, so that the interpreter does not try once more."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def one_line(text: str) -> str:
    """Write a message so that it stays one line, with any names in it."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class _Messages(logging.Handler):
    """Writes messages to what is standard error at that moment, one line each.

    Unless they are details, which only ``--verbose`` shows, they stand as they are.
    """

    def emit(self, record: logging.LogRecord) -> None:
        text = one_line(record.getMessage())
        if record.levelno < logging.INFO:
            text = f"{record.relativeCreated / 1000:9.3f} s  {record.name}: {text}"
        # Somebody who closed the stream wants no messages.
        with suppress(OSError, ValueError):
            print(text, file=sys.stderr)


@contextmanager
def messages(level: int) -> Iterator[None]:
    """Show messages of a level and above, while a command runs."""
    handler, before = _Messages(), _LOGGER.level
    _LOGGER.addHandler(handler)
    _LOGGER.setLevel(level)
    try:
        yield
    finally:
        _LOGGER.removeHandler(handler)
        _LOGGER.setLevel(before)


def is_quiet() -> bool:
    """Return whether a command was asked for silence, by which progress is not shown either."""
    return any(
        isinstance(handler, _Messages) and not _LOGGER.isEnabledFor(logging.INFO)
        for handler in _LOGGER.handlers
    )
