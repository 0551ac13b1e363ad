"""Arguments and output that several verbs share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from typing import Any

# What the bytes from each tier are called in tables.
TIERS = {"disk": "from disk", "host": "over PCIe"}


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
        choices=("auto", "natural", "degree", "dbg", "local"),
        default="auto",
        help="how vertices are stored (default: chosen from the data)",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="bound for the process, as 4G (default: half of what is free)",
    )
    parser.add_argument(
        "--tmp", metavar="FOLDER", help="for temporary data (default: the output's)"
    )
    parser.add_argument(
        "--zstd",
        nargs="?",
        type=int,
        const=3,
        choices=range(1, 23),
        metavar="LEVEL",
        help="compress the file for archives and slow disks (level 1 to 22, 3 if not given)",
    )
    add_output_options(parser)


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Add what every verb that writes a file takes."""
    parser.add_argument("--threads", type=positive, metavar="N", help="default: all cores")
    parser.add_argument("--force", action="store_true", help="replace an existing file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Add what every verb takes that works on any engine, and from disk within a budget."""
    parser.add_argument(
        "--engine",
        choices=("auto", "cpu", "disk", "cuda", "emulator"),
        default="auto",
        help="disk: tails read as needed; cuda: a GPU; emulator: its kernels on the CPU, counting bytes; "
        "auto: a GPU if one is usable, or with --memory cpu or disk",
    )
    parser.add_argument(
        "--vram", metavar="SIZE", help="device memory to use, as 5G (default: what is free)"
    )
    parser.add_argument(
        "--resident-tails",
        metavar="SIZE|PERCENT",
        help="how much of the tails to keep there, as 512M or 25%% (default: what fits)",
    )
    parser.add_argument(
        "--memory",
        metavar="SIZE",
        help="bound for the process, as 4G; a larger graph is read from disk (default: none)",
    )
    parser.add_argument(
        "--tmp",
        metavar="FOLDER",
        help="for results that have no room in memory (default: the graph's)",
    )


def positive(text: str) -> int:
    """Read a whole number of at least 1."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not at least 1")
    return value


def print_json(values: dict[str, Any]) -> None:
    """Print one object on standard output."""
    print(json.dumps(values, ensure_ascii=False))


def print_table(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and values in two columns."""
    listed = list(rows)
    width = max(len(name) for name, _ in listed)
    for name, value in listed:
        print(f"{name:<{width}}  {value}")


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
