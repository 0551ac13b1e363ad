"""Put together what several inputs declare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges

_SHOWN_NOTES = 3


def _listed(notes: Iterable[str]) -> str:
    """Put notes together, each once, and not too many."""
    distinct = [note for note in dict.fromkeys(notes) if note]
    more = len(distinct) - _SHOWN_NOTES
    return " | ".join(distinct[:_SHOWN_NOTES]) + (f" | and {more} more" if more > 0 else "")


@dataclass(eq=False)
class _Piece:
    name: str
    declared: Declared = field(default_factory=Declared)
    low: int | None = None
    high: int = 0


class Merged:
    """Collects what every input declares and which ids it uses, and combines them at the end."""

    def __init__(self, declared: Declared) -> None:
        self._declared = declared
        declared.is_open = True
        self._pieces: list[_Piece] = []

    def begin(self, name: str) -> Declared:
        """Start an input and give the object that takes its declarations."""
        self._pieces.append(_Piece(name))
        return self._pieces[-1].declared

    def see(self, edges: Edges) -> None:
        """Note the ids of the current input."""
        piece = self._pieces[-1]
        for ids in (edges.sources, edges.targets):
            if ids.size:
                low = int(ids.min())
                piece.low = low if piece.low is None else min(piece.low, low)
                piece.high = max(piece.high, int(ids.max()))

    def finish(self) -> None:
        """Combine the declarations of all inputs."""
        self._declared.is_open = False
        self._merge_directed()
        self._declared.columns = _listed(p.declared.columns for p in self._pieces)
        listed = [p for p in self._pieces if p.declared.vertex_ids is not None]
        ranged = [p for p in self._pieces if p.declared.num_vertices is not None]
        used = [p for p in self._pieces if p not in listed and p not in ranged]
        used = [p for p in used if p.low is not None]
        if listed and not ranged and not used:
            parts = [p.declared.vertex_ids for p in listed if p.declared.vertex_ids is not None]
            self._declared.vertex_ids = np.unique(np.concatenate(parts))
        elif ranged and not listed:
            first = min(p.declared.first_id for p in ranged)
            end = max(p.declared.first_id + (p.declared.num_vertices or 0) for p in ranged)
            if any(p.low is not None and (p.low < first or p.high >= end) for p in used):
                self._refuse(ranged[0], used[0])
            self._declared.first_id, self._declared.num_vertices = first, end - first
        elif listed:
            self._refuse(listed[0], (ranged or used)[0])

    def _merge_directed(self) -> None:
        says: dict[bool, _Piece] = {}
        for piece in self._pieces:
            if piece.declared.directed is not None:
                says.setdefault(piece.declared.directed, piece)
        if len(says) == 2:
            self._declared.dispute = (
                f"{says[False].name}: is undirected, but {says[True].name} is directed: "
                "give --directed or --undirected"
            )
            return
        for directed, piece in says.items():
            self._declared.directed = directed
            self._declared.directed_why = f"{piece.name}: {piece.declared.directed_why}"

    def _refuse(self, one: _Piece, other: _Piece) -> None:
        raise InputError(
            f"declares its vertices, and {other.name} uses others: they are not one graph",
            path=one.name,
        )
