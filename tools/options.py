"""Arguments and output that several verbs share."""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, get_args

from oocbfs.errors import QueryError
from oocbfs.formats.io.ordered import MOST_THREADS
from oocbfs.settings import ZSTD_LEVELS, Engine, OrderName, shown

# What the bytes from each tier are called in tables.
TIERS = {"disk": "from disk", "host": "over PCIe"}


def whole_number(text: str) -> int:
    """Read a whole number; int() alone takes 1_000 and digits of any script, but not thousands."""
    number = text.strip()
    if not re.fullmatch(r"[+-]?[0-9]{1,40}", number):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a whole number")
    return int(number)


def whole(least: int, most: int) -> Callable[[str], int]:
    """Make what reads a whole number of a range."""

    def read(text: str) -> int:
        value = whole_number(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{shown(text)} is not from {least} to {most}")
        return value

    return read


positive = whole(1, 2**63 - 1)
seed = whole(0, 2**64 - 1)
edge_factor = whole(1, 1 << 40)
threads = whole(1, MOST_THREADS)


def number(text: str) -> float:
    """Read a number above 0 that is not infinite."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number above 0")
    return value


def size(text: str) -> str:
    """Check that a size can be read, before it is needed."""
    from oocbfs.errors import BudgetError
    from oocbfs.memory import parse_size

    try:
        parse_size(text)
    except BudgetError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def share(text: str) -> str:
    """Check that a size or a percentage can be read, before it is needed."""
    from oocbfs.errors import BudgetError
    from oocbfs.plan.device import parse_resident

    try:
        parse_resident(text, 1)
    except BudgetError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return text


def path(text: str) -> str:
    """Read the name of a file or a folder."""
    if not text or "\0" in text:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not the name of a file")
    return text


def folder(text: str) -> str:
    """Read the name of a folder that is there."""
    if not os.path.isdir(path(text)):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a folder that exists")
    return text


def add_work_options(parser: argparse.ArgumentParser) -> None:
    """Add what every verb that writes a graph takes."""
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument(
        "--directed", action="store_true", default=None, help="keep directions, store the transpose"
    )
    direction.add_argument(
        "--undirected", action="store_false", dest="directed", help="make every edge go both ways"
    )
    parser.add_argument(
        "--order",
        choices=get_args(OrderName),
        default="auto",
        help="how vertices are stored (default: chosen from the data)",
    )
    parser.add_argument(
        "--memory",
        type=size,
        metavar="SIZE",
        help="bound for the process, as 4G (default: half of what is free)",
    )
    parser.add_argument(
        "--tmp", type=folder, metavar="FOLDER", help="for temporary data (default: the output's)"
    )
    parser.add_argument(
        "--zstd",
        nargs="?",
        type=int,
        const=3,
        choices=ZSTD_LEVELS,
        metavar="LEVEL",
        help="compress the file for archives and slow disks (level 1 to 22, 3 if not given)",
    )
    add_output_options(parser)


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add what every verb that writes a file takes."""
    add_threads(parser)
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_threads(parser: argparse.ArgumentParser) -> None:
    """Add the number of cores to use."""
    parser.add_argument("--threads", type=threads, metavar="N", help="default: all cores")


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Add what every verb takes that works on any engine, and from disk within a budget."""
    parser.add_argument(
        "--engine",
        choices=get_args(Engine),
        default="auto",
        help="disk: tails read as needed; cuda: a GPU; emulator: its kernels on the CPU, counting bytes; "
        "auto: a GPU if one is usable, or with --memory cpu or disk",
    )
    parser.add_argument(
        "--vram",
        type=size,
        metavar="SIZE",
        help="device memory to use, as 5G (default: what is free)",
    )
    parser.add_argument(
        "--resident-tails",
        type=share,
        metavar="SIZE|PERCENT",
        help="how much of the tails to keep there, as 512M or 25%% (default: what fits)",
    )
    parser.add_argument(
        "--memory",
        type=size,
        metavar="SIZE",
        help="bound for the process, as 4G; a larger graph is read from disk (default: none)",
    )
    parser.add_argument(
        "--tmp",
        type=folder,
        metavar="FOLDER",
        help="for results that have no room in memory (default: the graph's)",
    )


def refuse_json_among_edges(options: argparse.Namespace) -> None:
    """Refuse to print a JSON object behind the edges that go the same way."""
    if options.json and options.output == "-":
        raise QueryError("--json and -o - both write to standard output: leave one out")


def print_json(values: dict[str, Any]) -> None:
    """Print one object on standard output."""
    print(json.dumps(values))  # in ASCII: the same bytes on every terminal


def print_table(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    listed = list(rows)
    width = max(len(name) for name, _ in listed)
    for name, value in listed:
        print(f"{name:<{width}}  {value}")


def announce_unpacking() -> None:
    """Have it said on standard error, once a file, how much memory a compressed graph takes."""
    from oocbfs import memory

    @cache
    def say(path: str, num_bytes: int) -> None:
        print(f"unpacking {path}: {memory.format_size(num_bytes)} of memory", file=sys.stderr)

    memory.on_unpacking = say


def announce_compilation() -> None:
    """Say once, on standard error, that kernels are being compiled, if they are."""
    from numba.core import event

    class Announcer(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, event: event.Event) -> None:
            if not self.said:
                print("compiling kernels (first run only) …", file=sys.stderr, flush=True)
                self.said = True

        def on_end(self, event: event.Event) -> None:
            pass

    event.register("numba:compile", Announcer())
