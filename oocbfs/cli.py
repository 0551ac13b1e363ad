"""The command line: one parser, one module in ``tools`` per verb."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import time
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from itertools import pairwise
from types import FrameType

from oocbfs import console
from oocbfs.errors import OocbfsError, in_shell
from oocbfs.formats.output import appearance
from oocbfs.memory import expect_addresses
from oocbfs.version import __version__

VERBS = (
    "convert",
    "update",
    "generate",
    "shard",
    "info",
    "verify",
    "export",
    "bfs",
    "batch",
    "path",
    "pairs",
    "near",
    "components",
    "distances",
    "report",
    "ablate",
    "graph500",
    "plan",
    "doctor",
    "completion",
)
# Signals with less time than this between them are one.
_SAME_WISH_SECONDS = 2.0
# When a signal is raised that came where it could not be.
_LATER_SECONDS = 0.01
_IMPORTER = "<frozen importlib._bootstrap>"


def build_parser(names: Sequence[str] = VERBS) -> argparse.ArgumentParser:
    """Assemble the parser from the verbs' modules, which import nothing heavy until they run."""
    parser = argparse.ArgumentParser(
        prog="oocbfs",
        description="Breadth-first search on compressed graphs that need not fit in memory.",
        epilog="'oocbfs VERB --help' explains a verb.",
    )
    parser.add_argument("--version", action="version", version=f"oocbfs {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)
    for name in names:
        module = import_module(f"oocbfs.tools.{name}")
        summary = (module.__doc__ or "").splitlines()[0]
        verb = verbs.add_parser(name, help=summary, description=module.__doc__)
        module.add_arguments(verb)
        _add_levels_of_messages(verb)
        verb.set_defaults(run=module.run)
    return parser


def _add_levels_of_messages(verb: argparse.ArgumentParser) -> None:
    """Add the options that all verbs have; a verb of several models has them in each."""
    for parser in _below(verb).values() or (verb,):
        level = parser.add_mutually_exclusive_group()
        for name, short, value, text in (
            ("--quiet", "-q", logging.ERROR, "print errors only, and what --json or - asks for"),
            ("--verbose", "-v", logging.DEBUG, "more messages: decisions, and what took how long"),
        ):
            level.add_argument(
                short, name, dest="message_level", action="store_const", const=value, help=text
            )
        parser.set_defaults(message_level=logging.INFO, error=parser.error)


def _below(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """Return the verbs of a parser, or the models of a verb, by name."""
    kind = argparse._SubParsersAction
    return next((dict(one.choices) for one in parser._actions if isinstance(one, kind)), {})


def program(arguments: Sequence[str] | None = None) -> None:
    """Run the command line as a program of its own, and end."""
    stop, numbers = _Stop(), (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
    try:
        sys.unraisablehook = stop.raise_again
        for number in numbers:
            signal.signal(number, stop)
        code = main(arguments)
    except KeyboardInterrupt:
        code = _say_interrupted()
    finally:
        # It has said its last word: nothing is left to interrupt.
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
    sys.exit(code)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    console.prepare()
    appearance.begin()
    try:
        with in_shell():
            return _run(arguments)
    except BrokenPipeError:
        # The reader of our output is gone. Not an error; the code is that of other programs.
        console.silence()
        return 141


class _Stop:
    """Unwinds the stack at Ctrl-C and SIGTERM, so that temporary files are removed.

    More signals soon after the first are the same wish, and would interrupt the unwinding.
    """

    def __init__(self) -> None:
        self._last = -_SAME_WISH_SECONDS
        self._wish: BaseException = KeyboardInterrupt()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        is_new, self._last = now - self._last >= _SAME_WISH_SECONDS, now
        if number != signal.SIGALRM:
            if not is_new:
                return
            self._wish = KeyboardInterrupt() if number == signal.SIGINT else SystemExit(143)
        if _is_import(frame):
            # Libraries written in C make another error of it there, or lose it.
            signal.setitimer(signal.ITIMER_REAL, _LATER_SECONDS)
        else:
            raise self._wish

    def raise_again(self, lost: sys.UnraisableHookArgs) -> None:
        """Raise it a little later, where it came in a place that Python lets nothing leave."""
        if lost.exc_value is self._wish:
            signal.setitimer(signal.ITIMER_REAL, _LATER_SECONDS)
        else:
            sys.__unraisablehook__(lost)


def _is_import(frame: FrameType | None) -> bool:
    """Return whether a module is being imported by a frame or by one that called it."""
    while frame is not None and frame.f_code.co_filename != _IMPORTER:
        frame = frame.f_back
    return frame is not None


def _run(arguments: Sequence[str] | None) -> int:
    """Run a verb and write out what it printed; an error becomes one line."""
    try:
        try:
            if _serves_another(sys.argv[1:] if arguments is None else arguments):
                return 0
            options = _parse(arguments)
            expect_addresses()
            with console.messages(options.message_level):
                options.run(options)
        finally:
            console.flush()
    except BrokenPipeError:
        raise
    except OocbfsError as error:
        return _say(str(error), 1)
    except KeyboardInterrupt:
        return _say_interrupted()
    except MemoryError as error:
        return _say(f"there is not enough memory ({str(error) or 'no size known'})", 1)
    except OSError as error:
        return _say(
            f"{error.filename or 'reading or writing failed'}: {error.strerror or error}", 1
        )
    return 0


def _serves_another(words: Sequence[str]) -> bool:
    """Return whether this was a rank of an MPI job that does what the first one tells it."""
    if "--cluster=mpi" not in words and ("--cluster", "mpi") not in pairwise(words):
        return False
    from oocbfs.workers.mpi_ranks import serve_unless_first

    return serve_unless_first()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    words = sys.argv[1:] if arguments is None else arguments
    # Who names a verb needs no other; who completes a line has not named it yet.
    is_completing = "_ARGCOMPLETE" in os.environ
    is_named = bool(words) and words[0] in VERBS and not is_completing
    parser = build_parser(words[:1] if is_named else VERBS)
    if is_completing:
        _complete(parser)
    _refuse_unknown(parser, words)
    options, unknown = parser.parse_known_args(words)
    verb = _below(parser).get(words[0]) if is_named else None
    if unknown and verb is not None and "--" not in words and not _below(verb):
        # argparse fills an optional operand, or several, before the options behind the first one.
        options, unknown = verb.parse_known_intermixed_args(words[1:])
    if unknown:
        options.error(f"unrecognized arguments: {' '.join(unknown)}")
    for name, value in vars(options).items():
        if value == []:  # which argparse makes of "--name=--"
            parser.error(f"argument --{name.replace('_', '-')}: expected one argument")
    return options


def _refuse_unknown(parser: argparse.ArgumentParser, words: Sequence[str]) -> None:
    """Refuse an option that a verb has not, with the usage of the verb and what may be meant."""
    for word in words:
        if word == "--":
            return
        if not word.startswith("--"):
            parser = _below(parser).get(word, parser)
            continue
        name, known = word.partition("=")[0], list(parser._option_string_actions)
        if not any(option.startswith(name) for option in known):
            near = get_close_matches(name, known, 1)
            hint = f" (did you mean {near[0]}?)" if near else ""
            parser.error(f"unrecognized arguments: {name}{hint}")


def _complete(parser: argparse.ArgumentParser) -> None:
    """Print how a line may go on, for a shell, and end; see ``oocbfs completion``."""
    try:
        import argcomplete
    except ImportError as error:
        raise OocbfsError("argcomplete is missing: pip install 'oocbfs[completion]'") from error
    argcomplete.autocomplete(parser)


def _say_interrupted() -> int:
    written = ", ".join(appearance.appeared())
    return _say(f"interrupted; {f'{written}: written' if written else 'nothing was written'}", 130)


def _say(message: str, code: int) -> int:
    print(f"oocbfs: {console.one_line(message)}", file=sys.stderr)
    return code
