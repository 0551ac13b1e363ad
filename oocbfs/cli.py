"""The command line: one parser, one module in ``tools`` per verb."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from oocbfs import console
from oocbfs.errors import OocbfsError
from oocbfs.version import __version__

VERBS = (
    "convert",
    "generate",
    "info",
    "verify",
    "export",
    "bfs",
    "batch",
    "components",
    "report",
    "ablate",
    "graph500",
    "plan",
    "doctor",
)


def build_parser() -> argparse.ArgumentParser:
    """Assemble the parser from the verbs' modules, which import nothing heavy until they run."""
    parser = argparse.ArgumentParser(
        prog="oocbfs",
        description="Breadth-first search on compressed graphs that need not fit in memory.",
        epilog="'oocbfs VERB --help' explains a verb.",
    )
    parser.add_argument("--version", action="version", version=f"oocbfs {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for name in VERBS:
        module = import_module(f"oocbfs.tools.{name}")
        summary = (module.__doc__ or "").splitlines()[0]
        verb = verbs.add_parser(name, help=summary, description=module.__doc__)
        module.add_arguments(verb)
        verb.set_defaults(run=module.run)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    console.prepare()
    # SIGTERM unwinds the stack as Ctrl-C does, so that temporary files are removed.
    previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return _run(arguments)
    except BrokenPipeError:
        # The reader of our output is gone. Not an error; the code is that of other programs.
        console.silence()
        return 141
    finally:
        signal.signal(signal.SIGTERM, previous)


def _run(arguments: Sequence[str] | None) -> int:
    """Run a verb and write out what it printed; an error becomes one line."""
    try:
        try:
            options = _parse(arguments)
            options.run(options)
        finally:
            console.flush()
    except BrokenPipeError:
        raise
    except OocbfsError as error:
        return _say(str(error), 1)
    except KeyboardInterrupt:
        return _say("interrupted; nothing was written", 130)
    except MemoryError as error:
        return _say(f"there is not enough memory ({str(error) or 'no size known'})", 1)
    except OSError as error:
        return _say(
            f"{error.filename or 'reading or writing failed'}: {error.strerror or error}", 1
        )
    return 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = build_parser()
    options = parser.parse_args(arguments)
    for name, value in vars(options).items():
        if value == []:  # which argparse makes of "--name=--"
            parser.error(f"argument --{name.replace('_', '-')}: expected one argument")
    return options


def _say(message: str, code: int) -> int:
    print(f"oocbfs: {console.one_line(message)}", file=sys.stderr)
    return code
