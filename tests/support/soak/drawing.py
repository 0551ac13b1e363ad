"""What all verbs of the soak draw from: names, options, and the graph that is asked."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.soak.plain import PlainGraph
from tests.support.soak.process import End

ORDERS = "auto", "natural", "degree", "dbg", "local", "communities"
BUDGETS = "200M", "300M", "600M", "2G"


@dataclass(frozen=True)
class Command:
    """Words for the command line, what it makes, and what must hold if it ends well."""

    words: list[str]
    check: Callable[[Path, End], None]
    output: str | None = None
    # A word with which the same command goes on after it was killed, and what it keeps for that, if
    # it is not the output.
    again: list[str] = field(default_factory=list)
    keeps: str | None = None
    # Files that it reads, besides the graph.
    inputs: dict[str, str] = field(default_factory=dict)


class Drawing:
    """A graph that is asked, what its ids are, and where choices come from."""

    def __init__(self, rng: random.Random, graph: PlainGraph, ids: str) -> None:
        self._rng, self._graph, self._ids = rng, graph, ids
        self._count = 0
        self.parts: str | None = None

    def _name(self, *endings: str) -> str:
        self._count += 1
        return f"out{self._count}{self._rng.choice(endings)}"

    def _vertices(self, most: int) -> list[Any]:
        some = self._rng.randint(1, most)
        return list(dict.fromkeys(self._rng.choices(sorted(self._graph.after), k=some)))

    def _id(self, text: str) -> Any:
        return text if self._ids == "names" else int(text)

    def _some(self, option: str, *values: object, likely: float = 0.5) -> list[str]:
        return [option, str(self._rng.choice(values))] if self._rng.random() < likely else []

    def _shared(self) -> list[str]:
        return [
            *self._some("--threads", 1, 2, 3, 8),
            *self._some("--memory", *BUDGETS, likely=0.3),
        ]

    def _engine(self, where: str, *engines: str) -> list[str]:
        chosen = self._rng.choice(engines)
        if where != "g.ocg" and chosen == "emulator":
            chosen = "cpu"
        return [] if chosen == "auto" else ["--engine", chosen]


def edges_of(graph: Any) -> set[tuple[Any, Any]]:
    """Return the edges of a graph, undirected ones with the smaller end first."""
    found: set[tuple[Any, Any]] = set()
    for batch in graph.edges():
        found |= set(zip(batch.sources.tolist(), batch.targets.tolist(), strict=True))
    if not graph.directed:
        found = {(min(edge), max(edge)) for edge in found}
    return found
