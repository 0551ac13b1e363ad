"""The tables of options on the page of the tools, as the parsers declare them.

``python -m tests.support.written.reference`` writes them anew.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from oocbfs.cli import VERBS, build_parser

PAGE = Path(__file__).parents[3] / "tools" / "README.md"
_HEADING = "| option | value | meaning |\n|---|---|---|\n"
# Both forms that a heading had or has, and the rows below.
_TABLE = re.compile(r"\| option \|(?: value \|)? meaning \|\n(?:\|.*\n)+")
# What all verbs have is explained once.
_COMMON = ("--help", "--quiet", "--verbose")


def parser_of(verb: str) -> argparse.ArgumentParser:
    """Return the parser of a verb."""
    (below,) = (one for one in build_parser()._actions if hasattr(one, "choices") and one.choices)
    parser: argparse.ArgumentParser = dict(below.choices or {})[verb]
    return parser


def table_of(verb: str) -> str:
    """Write the table of a verb's options."""
    return _HEADING + "".join(f"| {' | '.join(row)} |\n" for row in _rows(parser_of(verb)))


def _rows(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str, str]]:
    for action in parser._actions:
        if action.help is argparse.SUPPRESS or set(_COMMON).intersection(action.option_strings):
            continue
        if action.option_strings:
            names = ", ".join(f"`{name}`" for name in action.option_strings)
            yield names, _values(action), _text(action)
        else:
            yield f"`{action.metavar}`".replace("|", "`, `"), "", _text(action)


def _values(action: argparse.Action) -> str:
    """Write what an option takes."""
    if action.choices is not None and not isinstance(action.choices, range):
        return ", ".join(f"`{one}`" for one in action.choices)
    if action.nargs == 0:
        return ""
    words = action.metavar if isinstance(action.metavar, tuple) else (action.metavar or "N",)
    return " ".join(f"`{word}`" for word in words).replace("|", "`, `")


def _text(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%").replace("|", "\\|")


def section_of(page: str, verb: str) -> str:
    """Return the part of the page that is about a verb."""
    return page.split(f"\n## {verb}\n")[1].split("\n## ")[0]


def with_tables(page: str) -> str:
    """Return the page with the tables that its verbs should have, where they have one."""
    for verb in VERBS:
        section = section_of(page, verb)
        if (table := _TABLE.search(section)) is not None:
            page = page.replace(section, section.replace(table[0], table_of(verb)))
    return page


if __name__ == "__main__":
    PAGE.write_text(with_tables(PAGE.read_text()))
