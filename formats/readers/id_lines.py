"""Lists of vertices, or of pairs of them, one in each line of a small text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from oocbfs.errors import InputError
from oocbfs.formats.names import split_names

_LONGEST_LINE = 1 << 18
# A device has lines without end; so many ids take a gigabyte.
_MOST_LINES = 1 << 24


def read_pairs(path: Path, *, named: bool = False) -> list[tuple[Any, Any]]:
    """Read pairs of ids, one pair per line, separated by a comma; a header may come first.

    Among names, only ``source,target`` is a header.
    """
    pairs: list[tuple[Any, Any]] = []
    for number, line in _lines(path):
        if named:
            names = split_names(line)
            if len(names) != 2 or not all(names):
                raise InputError(
                    "expected two names, as alice,bob", path=str(path), line=number, text=line
                )
            if number > 1 or names != ["source", "target"]:
                pairs.append((names[0], names[1]))
            continue
        fields = [field.strip().strip('"') for field in line.split(",")]
        try:
            source, target = map(_id, fields)
        except ValueError:
            if number == 1 and len(fields) == 2:
                continue
            raise InputError(
                "expected two ids, as 1,2", path=str(path), line=number, text=line
            ) from None
        pairs.append((source, target))
    if not pairs:
        raise InputError("holds no pairs", path=str(path))
    return pairs


def read_sources(path: Path, *, named: bool = False, what: str = "sources") -> list[Any]:
    """Read ids, one per line; blank lines and lines that begin with # are skipped.

    A name may be in quotes; one that is not may hold commas.
    """
    sources: list[Any] = []
    for number, line in _lines(path):
        if named:
            sources.append(split_names(line)[0] if line.startswith('"') else line)
            continue
        try:
            sources.append(_id(line))
        except ValueError:
            raise InputError("expected one id", path=str(path), line=number, text=line) from None
    if not sources:
        raise InputError(f"holds no {what}", path=str(path))
    return sources


def _id(text: str) -> int:
    """Read an id; int() alone takes 1_000 and digits of any script."""
    if not re.fullmatch("-?[0-9]{1,20}", text):
        raise ValueError
    return int(text)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield numbered lines that are neither blank nor comments; of limited length, for devices."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
                if len(line) == _LONGEST_LINE:
                    raise InputError("a line is too long", path=str(path), line=number)
                if number > _MOST_LINES:
                    message = f"more than {_MOST_LINES:,} lines: make several files of it"
                    raise InputError(message, path=str(path))
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if text and not text.startswith("#"):
                    yield number, text
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError(f"cannot be read: {reason}", path=str(path)) from error
