"""The command line: one parser, one module in ``tools`` per verb."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from importlib import import_module

from oocbfs import __version__
from oocbfs.errors import OocbfsError

VERBS = (
    "convert",
    "generate",
    "info",
    "verify",
    "export",
    "bfs",
    "batch",
    "components",
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
    options = build_parser().parse_args(arguments)
    # A polite kill unwinds like Ctrl-C does, so that temporary files go away.
    previous = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        options.run(options)
    except OocbfsError as error:
        print(f"oocbfs: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("oocbfs: interrupted; nothing was written", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output went away: not an error, but the interpreter must not flush again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    finally:
        signal.signal(signal.SIGTERM, previous)
    return 0
