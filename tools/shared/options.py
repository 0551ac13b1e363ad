"""Arguments and output that several verbs share."""

from __future__ import annotations

import argparse
import json
import logging
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, Field
from functools import partial
from itertools import chain
from typing import Any, TypeVar, get_args

from oocbfs import console
from oocbfs.errors import BudgetError, QueryError, shown
from oocbfs.formats.io.limits import MAX_SHARDS
from oocbfs.memory import read_size
from oocbfs.options import (
    Option,
    explained,
    options_of,
    read_path,
    read_whole,
)
from oocbfs.settings import CodecName, KeptOrderName, OrderName, Settings, as_text, several

Row = TypeVar("Row")
_log = logging.getLogger(__name__)

# What the bytes from each tier are called in tables.
TIERS = {"disk": "from disk", "host": "over PCIe", "messages": "in messages"}
# A table of levels that is longer than this shows the first and the last ones.
_SHOWN_LEVELS = 40


def typed(read: Callable[[str], Any]) -> Callable[[str], Any]:
    """Make what argparse calls of a function that reads text, and refuses it in one line."""

    def convert(text: str) -> Any:
        try:
            return read(text)
        except (QueryError, BudgetError) as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return convert


def whole(least: int, most: int) -> Callable[[str], int]:
    """Make a function that reads a whole number of a range."""
    return typed(partial(read_whole, allowed=range(least, most + 1)))


positive = whole(1, 2**63 - 1)
size = typed(read_size)
path = typed(read_path)


def checked(text: str, read: Callable[[str], object]) -> str:
    """Check that a text can be read, before that is needed; return it as it is."""
    typed(read)(text)
    return text


def share(text: str) -> str:
    """Check a size or a percentage."""
    from oocbfs.plan.device import parse_resident

    return checked(text, lambda text: parse_resident(text, 1))


def number(text: str) -> float:
    """Read a number above 0 that is not infinite."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not a number above 0")
    return value


def declared(one: Field[Any]) -> dict[str, Any]:
    """Declare a field of ``Settings`` or of a job to argparse."""
    option: Option = one.metadata["option"]
    found: dict[str, Any] = {"dest": one.name, "help": explained(one).replace("%", "%%")}
    if one.default is False:
        return {**found, "action": "store_true"}
    found["default"] = None if one.default is MISSING else one.default
    if isinstance(option.values, tuple):
        return {**found, "choices": option.values}
    if isinstance(option.values, range):
        return {**found, "type": whole(option.values[0], option.values[-1]), "metavar": option.unit}
    return {**found, "type": typed(option.read), "metavar": option.unit}


# Every option that several verbs take, declared once; ``add`` may change a part of it.
_DECLARED: dict[str, dict[str, Any]] = {
    "graph": {"type": path, "metavar": "GRAPH.ocg", "help": "a graph, made by oocbfs convert"},
    "--parts": {
        "type": whole(1, MAX_SHARDS),
        "metavar": "N",
        "help": "cut the graph into so many shards",
    },
    "--cluster": {
        "type": path,
        "metavar": "WHERE",
        "help": "search a sharded graph there: local:4 (processes of this machine), "
        "tcp://HOST:PORT or the file of a scheduler (Dask), or mpi (default: in this process)",
    },
    "--output": {"type": path, "required": True, "metavar": "FILE", "help": "the file to write"},
    "--force": {"action": "store_true", "help": "replace an existing file"},
    "--json": {"action": "store_true", "help": "print one JSON object"},
    "--directed": {
        "action": "store_true",
        "default": None,
        "help": "keep directions, store the transpose",
    },
    "--undirected": {
        "action": "store_false",
        "dest": "directed",
        "help": "make every edge go both ways",
    },
    "--order": {
        "choices": get_args(OrderName),
        "default": "auto",
        "help": "how vertices are stored (default: auto, chosen from the data)",
    },
    "--codec": {
        "choices": get_args(CodecName),
        "default": "auto",
        "help": "compress the file in frames that unpack by themselves (zstd), or let it map as it "
        "is (raw) (default: auto, by a sample)",
    },
    "--scale": {"type": whole(0, 62), "required": True, "metavar": "N", "help": "2^N vertices"},
    "--edge-factor": {
        "type": whole(1, 1 << 40),
        "default": 16,
        "metavar": "N",
        "help": "edges per vertex (default: 16)",
    },
    "--seed": {
        "type": whole(0, 2**64 - 1),
        "default": 1,
        "help": "the same seed makes the same choices (default: 1)",
    },
}
# What searches are told is declared with the settings; --force is about files on the command line.
_DECLARED |= {
    f"--{name}": declared(one) for name, one in options_of(Settings).items() if name != "force"
}
# How much of the tails is read where plans are made.
_DECLARED["--resident-tails"]["type"] = share
_SHORT = {"--output": ("-o",)}
# The options of ``add_work_options`` and ``add_engine_options``, by their names in Python.
WORK = ("directed", "order", "memory", "tmp", "codec", "threads", "force")
ENGINE = ("engine", "tmp", "threads")
DEVICE = ("vram", "resident_tails")


def add(parser: argparse._ActionsContainer, *names: str, **changes: object) -> None:
    """Add options that several verbs take; ``changes`` replace parts of their declarations."""
    for name in names:
        parser.add_argument(*_SHORT.get(name, ()), name, **{**_DECLARED[name], **changes})


def add_file(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    """Add a file that is written if it is named."""
    add_value(parser, name, path, "FILE", f"{text} (default: nothing)")


def add_value(
    parser: argparse._ActionsContainer,
    name: str,
    read: Callable[[str], object],
    unit: str,
    text: str,
    default: object = None,
    **more: Any,
) -> None:
    """Add an option of one verb that takes a value."""
    parser.add_argument(name, type=read, metavar=unit, help=text, default=default, **more)


def add_flag(parser: argparse._ActionsContainer, name: str, text: str) -> None:
    """Add an option of one verb that is said or not."""
    parser.add_argument(name, action="store_true", help=text)


def add_work_options(
    parser: argparse.ArgumentParser, *, from_graph: bool = False, in_place: bool = False
) -> None:
    """Add what every verb that writes a graph takes.

    Some make it ``from_graph`` files, whose order can be kept, or replace one ``in_place``.
    """
    add(parser.add_mutually_exclusive_group(), "--directed", "--undirected")
    if from_graph:
        keep = "; keep: as the first graph has them, new ones behind them"
        text = f"how vertices are stored{keep} (default: auto, chosen from the data)"
        add(parser, "--order", choices=get_args(KeptOrderName), help=text)
    else:
        add(parser, "--order")
    limit = "limit for the process, such as 4G (default: half of what is free)"
    add(parser, "--memory", help=limit)
    add(parser, "--tmp", help="folder for temporary data (default: the output's)")
    if in_place:
        text = "as for convert (default: zstd if the graph's tails are compressed, otherwise auto)"
        add(parser, "--codec", default=None, help=text)
    else:
        add(parser, "--codec")
    add(parser, "--threads", *([] if in_place else ["--force"]), "--json")


def add_engine_options(parser: argparse.ArgumentParser) -> None:
    """Add what every verb takes that works on any engine, and from disk within a limit."""
    add(parser, "--engine", "--vram", "--resident-tails", "--memory", "--tmp", "--threads")


def chosen(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return options by name, to pass on as keywords."""
    return {name: getattr(options, name) for name in names}


def refuse_json_among_edges(options: argparse.Namespace) -> None:
    """Refuse to print a JSON object after edges, or another table, on the same stream."""
    if options.json and options.output == "-":
        raise QueryError("--json and -o - both write to standard output: leave one out")


def print_report(
    options: argparse.Namespace,
    values: dict[str, Any],
    rows: Iterable[tuple[str, str]],
    *,
    above: Iterable[str] = (),
) -> None:
    """Print values as JSON if that was asked for, or else lines and a table for people.

    Who asked for silence gets errors only, and what was asked for by name: JSON, or a table for
    other programs.
    """
    if options.json:
        print_json(values)
        return
    if console.is_quiet():
        return
    stream = sys.stderr if prints_table(options) else sys.stdout
    for line in chain(above, in_columns(rows)):
        print(line, file=stream)


def prints_table(options: argparse.Namespace) -> bool:
    """Return whether standard output is for a table that other programs read."""
    outputs = ("output", "levels", "parents", "labels")
    return any(getattr(options, name, None) == "-" for name in outputs)


def print_count(options: argparse.Namespace, num_edges: int, origin: str = "") -> None:
    """Print how many edges were written, as a message or as JSON."""
    if options.json:
        print_json({"output": options.output, "edges": num_edges})
    else:
        _log.info("%s: %s%s", options.output, several(num_edges, "edge"), origin)


def kind_of_ids(kind: str, first_id: int) -> str:
    """Return which ids are vertices."""
    kinds = {"names": "by name", "listed": "as listed"}
    return kinds.get(kind, f"consecutive from {first_id}")


def count_edges(num_edges: int, *, directed: bool) -> str:
    """Write how many edges a graph has, and what is stored of each."""
    kind = "directed, each stored with its transpose" if directed else "undirected, two arcs each"
    return f"{num_edges:,} ({kind})"


def max_degree(directed: bool, degree: int) -> str:
    """Return how many neighbours a vertex has at most, and in which direction."""
    return f"{degree:,} (of in- and out-degrees)" if directed else f"{degree:,}"


def print_json(values: dict[str, Any]) -> None:
    """Print one object on standard output."""
    print(json.dumps(_as_text(values)))  # in ASCII: the same bytes on every terminal


def _as_text(value: Any) -> Any:
    """Replace half characters, as odd file names have them, for which JSON has no form."""
    if isinstance(value, dict):
        return {name: _as_text(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_as_text(one) for one in value]
    return as_text(value) if isinstance(value, str) else value


def shortened(levels: Sequence[Row], line: Callable[[Row], str]) -> Iterator[str]:
    """Write a line for each level, but for the middle of a long table."""
    hidden, half = len(levels) - _SHOWN_LEVELS, _SHOWN_LEVELS // 2
    if hidden <= 0:
        yield from map(line, levels)
        return
    yield from map(line, levels[:half])
    yield f"  …    {hidden:,} more levels"
    yield from map(line, levels[-half:])


def in_columns(rows: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Write names and values in two columns."""
    listed = list(rows)
    width = max((len(name) for name, _ in listed), default=0)
    for name, value in listed:
        yield f"{name:<{width}}  {value}"
