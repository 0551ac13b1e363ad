"""Which methods are compared: groups by the questions of the papers, or methods by name."""

from __future__ import annotations

from typing import Final

from oocbfs.errors import QueryError
from oocbfs.methods import METHODS, parse_method

# The only one that counts.
ENGINE: Final = "emulator"
ALL = "all"
GROUPS = {
    # What each version of the v3.3 report adds to the one before, and ours.
    "evolution": ("v1", "v2", "v3.1", "v3.2", "v3.3", "auto"),
    # How the next frontier is kept: flags of all vertices, a queue, a scan, what fits the level.
    "queues": ("simple", "harish", "queue", "scan", "gunrock", "gswitch", "auto"),
    # One kernel or two, and what each way to drop duplicates is worth.
    "merrill": (
        "expand-contract",
        "contract-expand",
        "two-phase:filter=none",
        "two-phase:filter=mask",
        "two-phase:filter=mask+warp",
        "two-phase",
        "hybrid",
    ),
    # The four ways to make a queue, the choice among them, and bottom-up ahead of its level.
    "xbfs": ("scan-free", "single-scan", "double-scan", "no-queue", "xbfs", "async"),
    # Who reads a row: the ways to share bottom-up's list, and those to gather neighbours.
    "balance": (
        "xbfs:balance=stride",
        "xbfs:balance=fetch1",
        "xbfs:balance=fetch32",
        "xbfs:balance=donate",
        "two-phase:gather=serial",
        "two-phase:gather=warp",
        "two-phase:gather=scan",
        "two-phase:gather=scan+warp+block",
    ),
}


def choose_methods(text: str) -> list[str]:
    """Return the methods that are meant, each once, in their order.

    Groups and methods are separated by commas. So are options of one method, but no name of a
    method has an equals sign before a colon.
    """
    chosen: dict[str, None] = {}
    for word in _split(text):
        if word == ALL:
            chosen |= dict.fromkeys(n for n, method in METHODS.items() if ENGINE in method.engines)
        elif word in GROUPS:
            chosen |= dict.fromkeys(str(parse_method(name)) for name in GROUPS[word])
        else:
            chosen |= {_named(word): None}
    return list(chosen)


def _split(text: str) -> list[str]:
    words: list[str] = []
    for part in text.split(","):
        if words and "=" in part.partition(":")[0]:
            words[-1] += f",{part}"
        else:
            words.append(part)
    return words


def _named(word: str) -> str:
    name = word.partition(":")[0]
    if name not in METHODS:
        raise QueryError(
            f"there is no group or method {name[:40]!r}: the groups are "
            f"{', '.join(GROUPS)} and {ALL}; 'oocbfs bfs --method list' prints the methods"
        )
    choice = parse_method(word)
    choice.check_engine(ENGINE)
    return str(choice)
