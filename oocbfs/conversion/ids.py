"""From the ids an input uses to the numbers 0 … n-1 that are stored."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import InputError
from oocbfs.formats.container.layout import MAX_VERTICES
from oocbfs.formats.edges import Declared, Edges, Ids
from oocbfs.kernels.convert import ids as kernels

_IDS_PER_PIECE = 1 << 18


class IdBitmap:
    """The set of ids seen so far, while a bitmap up to the largest one fits its budget."""

    def __init__(self, budget_bytes: int) -> None:
        self._max_words = max(1 << 10, budget_bytes // 8)
        self._words: NDArray[np.uint64] | None = np.zeros(1 << 10, np.uint64)
        self.largest = -1

    def add(self, edges: Edges) -> None:
        """Note the ids of a batch of edges."""
        if edges.sources.size == 0:
            return
        self.largest = max(self.largest, int(edges.sources.max()), int(edges.targets.max()))
        needed = (self.largest >> 6) + 1
        if self._words is None or needed > self._max_words:
            self._words = None
            return
        if needed > self._words.size:
            grown = np.zeros(min(self._max_words, 2 * needed), np.uint64)
            grown[: self._words.size] = self._words
            self._words = grown
        kernels.mark(self._words, edges.sources)
        kernels.mark(self._words, edges.targets)

    def words(self) -> NDArray[np.uint64] | None:
        """Return the bitmap up to the largest id; None if it grew too large."""
        return None if self._words is None else self._words[: (self.largest >> 6) + 1]


@dataclass(frozen=True)
class IdRange:
    """Vertices with consecutive names, from first_id on."""

    num_vertices: int
    first_id: int = 0
    num_bytes: ClassVar[int] = 0

    def to_vertices(self, ids: Ids) -> Ids:
        """Return the vertex that each id names."""
        return ids - np.uint64(self.first_id) if self.first_id else ids

    def pieces(self) -> Iterator[Ids]:
        """Yield nothing: the range needs no list of ids."""
        return iter(())


class _SomeIds:
    """Vertices whose ids have gaps; ``num_bytes`` is the memory that their names take."""

    first_id = 0

    def __init__(self, num_vertices: int, num_bytes: int) -> None:
        self.num_vertices = num_vertices
        self.num_bytes = num_bytes


class BitmapIds(_SomeIds):
    """Vertices named by the set bits of a bitmap."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words = words
        self._counts = np.empty(words.size, np.uint32)
        num_vertices = kernels.count_before(self._counts, words)
        super().__init__(num_vertices, words.nbytes + self._counts.nbytes)

    def to_vertices(self, ids: Ids) -> Ids:
        """Return the vertex that each id names."""
        out = np.empty_like(ids)
        kernels.position_in_bitmap(out, ids, self._words, self._counts)
        return out

    def pieces(self) -> Iterator[Ids]:
        """Yield all ids in ascending order."""
        step = _IDS_PER_PIECE // 64
        for first in range(0, self._words.size, step):
            bits = np.unpackbits(
                self._words[first : first + step].view(np.uint8), bitorder="little"
            )
            yield (np.flatnonzero(bits) + 64 * first).astype(np.uint64)


class ListedIds(_SomeIds):
    """Vertices named by a sorted list of ids."""

    def __init__(self, listed: Ids) -> None:
        self._listed = listed
        largest = int(listed[-1]) if listed.size else 0
        # One table entry for about four ids.
        self._shift = max(0, largest.bit_length() - max(8, listed.size.bit_length() - 2))
        leading = np.arange((largest >> self._shift) + 1, dtype=np.uint64)
        self._first = np.empty(leading.size + 1, np.uint32)
        self._first[:-1] = np.searchsorted(listed, leading << np.uint64(self._shift))
        self._first[-1] = listed.size
        super().__init__(listed.size, listed.nbytes + self._first.nbytes)

    def to_vertices(self, ids: Ids) -> Ids:
        """Return the vertex that each id names; every id must be in the list."""
        out = np.empty_like(ids)
        kernels.position_in_list(out, ids, self._listed, self._first, np.uint64(self._shift))
        return out

    def pieces(self) -> Iterator[Ids]:
        """Yield all ids in ascending order."""
        for first in range(0, self._listed.size, _IDS_PER_PIECE):
            yield self._listed[first : first + _IDS_PER_PIECE]


IdMap = IdRange | BitmapIds | ListedIds


def check_count(num_vertices: int) -> None:
    """Refuse more vertices than the format can hold."""
    if num_vertices > MAX_VERTICES:
        raise InputError(
            f"{num_vertices:,} vertices are more than the {MAX_VERTICES:,} that fit: "
            "if the ids have gaps, use --ids compact"
        )


def contiguous(ids: IdMap) -> IdMap:
    """Replace a list of consecutive ids by their range."""
    if isinstance(ids, IdRange) or ids.num_vertices == 0:
        return ids if isinstance(ids, IdRange) else IdRange(0)
    first = int(next(piece for piece in ids.pieces() if piece.size)[0])
    last = first
    for piece in ids.pieces():
        last = int(piece[-1]) if piece.size else last
    return IdRange(ids.num_vertices, first) if last - first + 1 == ids.num_vertices else ids


def declared_ids(declared: Declared) -> IdMap | None:
    """Return the vertices that the input declares, if it does."""
    if declared.vertex_ids is not None:
        return contiguous(ListedIds(declared.vertex_ids))
    if declared.num_vertices is not None:
        return IdRange(declared.num_vertices, declared.first_id)
    return None
