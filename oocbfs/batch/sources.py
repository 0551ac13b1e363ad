"""Choose stored vertices to start from, piece by piece: memory is only for the chosen ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

_PIECE = 1 << 20


def _everywhere(vertices: NDArray[np.int64]) -> NDArray[np.bool_]:
    return np.ones(vertices.size, np.bool_)


def choose_random(
    degrees: NDArray[np.uint32],
    count: int,
    seed: int,
    allowed: Callable[[NDArray[np.int64]], NDArray[np.bool_]] = _everywhere,
) -> NDArray[np.int64]:
    """Choose distinct vertices that have an edge and are allowed, or all if they are fewer."""

    def candidates() -> Iterator[NDArray[np.int64]]:
        for first in range(0, degrees.size, _PIECE):
            non_isolated = first + np.flatnonzero(degrees[first : first + _PIECE])
            yield non_isolated[allowed(non_isolated)]

    total = sum(piece.size for piece in candidates())
    positions = np.random.default_rng(seed).choice(total, min(count, total), replace=False)
    ascending = np.argsort(positions)
    chosen = np.empty(positions.size, np.int64)
    begin = before = 0
    for piece in candidates():
        end = int(np.searchsorted(positions, before + piece.size, sorter=ascending))
        mine = ascending[begin:end]
        chosen[mine] = piece[positions[mine] - before]
        begin, before = end, before + piece.size
    return chosen


def choose_hubs(degrees: NDArray[np.uint32], count: int) -> NDArray[np.int64]:
    """Choose the vertices with the most edges; among equals, those that are stored first."""
    chosen = np.empty(0, np.int64)
    for first in range(0, degrees.size, _PIECE):
        piece = np.arange(first, min(first + _PIECE, degrees.size))
        chosen = np.concatenate([chosen, piece])
        chosen = chosen[np.argsort(-degrees[chosen].astype(np.int64), kind="stable")[:count]]
    return chosen
