"""The command line: one parser, one module in ``tools`` per verb."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from oocbfs import __version__, console
from oocbfs.errors import OocbfsError

VERBS = (
    "convert",
    "generate",
    "shard",
    "info",
    "verify",
    "export",
    "bfs",
    "batch",
    "components",
    "ablate",
    "graph500",
    "plan",
    "doctor",
    "completion",
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
        _add_levels_of_messages(verb)
        verb.set_defaults(run=module.run)
    return parser


def _add_levels_of_messages(verb: argparse.ArgumentParser) -> None:
    """Add the options that all verbs have; a verb of several models has them in each."""
    below = [action for action in verb._actions if isinstance(action, argparse._SubParsersAction)]
    for parser in below[0].choices.values() if below else (verb,):
        level = parser.add_mutually_exclusive_group()
        for name, short, value, text in (
            ("--quiet", "-q", logging.ERROR, "no messages and no progress; errors only"),
            ("--verbose", "-v", logging.DEBUG, "more messages: decisions, and what took how long"),
        ):
            level.add_argument(
                short, name, dest="message_level", action="store_const", const=value, help=text
            )
        parser.set_defaults(message_level=logging.INFO)


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
            with console.messages(options.message_level):
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
    if "_ARGCOMPLETE" in os.environ:
        _complete(parser)
    options = parser.parse_args(arguments)
    for name, value in vars(options).items():
        if value == []:  # which argparse makes of "--name=--"
            parser.error(f"argument --{name.replace('_', '-')}: expected one argument")
    return options


def _complete(parser: argparse.ArgumentParser) -> None:
    """Tell a shell how a line may go on, and end; see ``oocbfs completion``."""
    try:
        import argcomplete
    except ImportError as error:
        raise OocbfsError("argcomplete is missing: pip install 'oocbfs[completion]'") from error
    argcomplete.autocomplete(parser)


def _say(message: str, code: int) -> int:
    print(f"oocbfs: {console.one_line(message)}", file=sys.stderr)
    return code
