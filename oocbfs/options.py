"""How a setting is declared, once: for the command line, for job files and for the reference."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields
from operator import index
from typing import Any

from oocbfs.errors import OutputError, QueryError, shown


@dataclass(frozen=True)
class Option:
    """What a setting means, and which values it takes.

    ``help`` says what it does in one sentence and ``otherwise`` what happens without it. ``values``
    are all that it may be: a range of whole numbers, or some words. Any other text is checked, or
    turned into the value, by ``read``, which raises a QueryError or a BudgetError. ``unit`` stands
    for the value where it is explained.
    """

    help: str
    otherwise: str = ""
    values: range | tuple[str, ...] | None = None
    unit: str = "N"
    read: Callable[[str], Any] = str

    def takes(self, value: object) -> bool:
        """Return whether this can be the value, as a job file has it."""
        if isinstance(self.values, range):
            return type(value) is int and value in self.values
        return isinstance(value, str) and (self.values is None or value in self.values)


def option(help: str, **more: Any) -> dict[str, Option]:
    """Declare a setting, as the metadata of a field."""
    return {"option": Option(help, **more)}


def options_of(record: type) -> dict[str, Field[Any]]:
    """Return the fields of a record that are options, by the names of the command line."""
    return {spelled(one.name): one for one in fields(record) if "option" in one.metadata}


def metadata_of(record: type, name: str) -> Any:
    """Return what was declared of another record's field of this name."""
    return record.__dataclass_fields__[name].metadata  # type: ignore[attr-defined]


def spelled(name: str) -> str:
    """Write the name of a field as the command line has it; ``from`` is a keyword of Python."""
    return name.rstrip("_").replace("_", "-")


def explained(one: Field[Any]) -> str:
    """Return what a setting does, and what happens without it."""
    declared: Option = one.metadata["option"]
    if one.default is False:
        return declared.help
    if one.default is MISSING or (one.default is None and not declared.otherwise):
        return f"{declared.help} (no default)"
    return f"{declared.help} (default: {declared.otherwise or one.default})"


def is_whole(value: object) -> bool:
    """Return whether something is a whole number of Python's or NumPy's, and no truth value."""
    if isinstance(value, bool):
        return False
    try:
        index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def read_whole(text: str, allowed: range) -> int:
    """Read a whole number; int() alone takes 1_000 and digits of any script, but not thousands."""
    if not re.fullmatch(r"[+-]?[0-9]{1,40}", text.strip()):
        raise QueryError(f"{shown(text)} is not a whole number")
    if int(text) not in allowed:
        raise QueryError(f"{shown(text)} is not from {allowed[0]} to {allowed[-1]}")
    return int(text)


def read_share(value: str | float) -> float:
    """Read a share above 0 and up to 1, which is a percentage where it is text."""
    share = value
    if isinstance(value, str):
        match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*%\s*", value)
        share = float(match[1]) / 100 if match else 0.0
    if isinstance(share, bool) or not isinstance(share, (int, float)) or not 0 < share <= 1:
        raise QueryError(f"{shown(value)} is not a share of all: write it as 1%")
    return float(share)


def read_path(text: str) -> str:
    """Read the name of a file or a folder."""
    if not text or "\0" in text:
        raise QueryError(f"{shown(text)} is not the name of a file")
    return text


def read_place(text: str) -> str:
    """Read where workers are, which is no file beside a job's."""
    return read_path(text)


def read_folder(text: str) -> str:
    """Read the name of a folder that exists."""
    try:
        if stat.S_ISDIR(os.stat(read_path(text)).st_mode):
            return text
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        raise OutputError(f"{text}: cannot be looked at: {error.strerror}") from error
    raise QueryError(f"{shown(text)} is not a folder that exists")
