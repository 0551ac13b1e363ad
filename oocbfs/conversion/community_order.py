"""The order by communities, made in bounded memory: each round reads all neighbours once.

Vertices get numbers that say nothing about their ids, so that those that choose at a time have few
neighbours among each other. Members of a community of the finest layer are in the order of ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.neighbours import Neighbours
from oocbfs.formats.io.ordered import ordered_map
from oocbfs.kernels.convert import communities

# Layers by the logarithm of what one neighbour weighs, from fine to coarse: in the last one
# strangers count only where two communities have as many neighbours. Seven layers of six rounds
# took three times as long and made files 2 % smaller.
LAYERS = (0, 3, 6, 9, 40)
ROUNDS = 4
# A layer that shows what all of them would save, in a fifth of the time.
TRIAL = LAYERS[1:2]
# Vertices choose in so many batches a round, whatever the number of threads. Where all choose at a
# time, neighbours swap their labels for ever.
_BATCHES = 64
_MIN_BATCH = 16
# Neighbours that a thread reads at a time: few enough for all threads to have some in a batch.
_PIECES = 4
_MIN_PIECE, _MAX_PIECE = 1 << 13, 1 << 18


def scattered(num_vertices: int) -> NDArray[np.uint32]:
    """Return the number that each vertex has while labels spread."""
    numbers = np.empty(num_vertices, np.uint32)
    communities.scatter(numbers)
    return numbers


def community_order(
    neighbours: Neighbours,
    layers: Sequence[int],
    threads: int,
    advance: Callable[[int], object],
) -> NDArray[np.uint32]:
    """Return the position of each vertex; rows and neighbours are those of the numbers.

    ``advance`` is called with the number of neighbours that were read.
    """
    placed = scattered(neighbours.lengths.size)
    for layer in layers:
        labels, sizes = _spread(neighbours, layer, threads, advance)
        communities.gather(placed, labels, sizes, np.zeros(placed.size // 8 + 1, np.uint8))
    del placed, sizes
    places: NDArray[np.uint32] = labels[scattered(labels.size)]
    return places


def _spread(
    neighbours: Neighbours, layer: int, threads: int, advance: Callable[[int], object]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Return the labels of all vertices in a layer, and how many have each."""
    degrees = neighbours.lengths
    labels = np.arange(degrees.size, dtype=np.uint32)
    sizes = np.ones_like(labels)
    batch = max(_MIN_BATCH, -(-degrees.size // _BATCHES))
    tables: list[NDArray[np.uint32]] = []

    def choose(piece: tuple[NDArray[np.uint32], int, int, int]) -> int:
        chosen, first, begin, end = piece
        try:
            table = tables.pop()
        except IndexError:
            table = np.zeros(communities.TABLE_WORDS, np.uint32)
        rows = neighbours.read(begin, end)
        changed = communities.choose_labels(
            chosen, labels, sizes, degrees, rows, first, table, layer
        )
        tables.append(table)
        return int(changed)

    for _ in range(ROUNDS):
        begin = changed = 0
        for first in range(0, degrees.size, batch):
            chosen = np.empty(min(batch, degrees.size - first), np.uint32)
            ends = begin + np.cumsum(degrees[first : first + chosen.size], dtype=np.int64)
            pieces = _pieces(chosen, first, begin, ends, threads)
            changed += sum(ordered_map(choose, pieces, threads))
            communities.apply_labels(labels, sizes, chosen, first)
            advance(int(ends[-1]) - begin)
            begin = int(ends[-1])
        if not changed:
            break
    return labels, sizes


def _pieces(
    chosen: NDArray[np.uint32], first: int, begin: int, ends: NDArray[np.int64], threads: int
) -> list[tuple[NDArray[np.uint32], int, int, int]]:
    """Cut a batch, whose rows begin at ``begin``, into what threads do at a time."""
    wanted = (int(ends[-1]) - begin) // (_PIECES * threads)
    wanted = min(max(wanted, _MIN_PIECE), _MAX_PIECE)
    pieces, row = [], 0
    while row < ends.size:
        stop = max(row + 1, int(np.searchsorted(ends, begin + wanted, "right")))
        end = int(ends[stop - 1])
        pieces.append((chosen[row:stop], first + row, begin, end))
        row, begin = stop, end
    return pieces
