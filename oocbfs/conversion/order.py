"""Where vertices are stored, in the orders that follow from their degrees or from an old file."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.container.layout import Order
from oocbfs.kernels.convert import arrange

Degrees = NDArray[np.uint32]
NO_ORDER = np.empty(0, np.uint32)
# Degree-based grouping: class limits in multiples of the mean degree.
_GROUPS = (0.5, 1, 2, 4, 8, 16, 32)
# Vertices that are renamed at a time.
_PIECE_VERTICES = 1 << 18


def stored_at_for(order: Order, degrees: Degrees) -> NDArray[np.uint32]:
    """Position of each vertex in an order by degrees; empty for the natural order."""
    if order is Order.NATURAL:
        return NO_ORDER
    stored_at = np.empty_like(degrees)
    if order is Order.DEGREE:
        largest = int(degrees.max(initial=0))
        arrange.order_by_class(stored_at, np.uint32(largest) - degrees, largest + 1)
    elif order is Order.DBG:
        # An isolated vertex is in the last class even where half the mean degree is below 1.
        limits = np.maximum(1, np.array(_GROUPS) * degrees.mean()) if degrees.size else _GROUPS
        values = np.arange(int(degrees.max(initial=0)) + 1)
        class_of = len(_GROUPS) - np.searchsorted(limits, values, side="right")
        arrange.order_by_class(stored_at, class_of.astype(np.uint32)[degrees], len(_GROUPS) + 1)
    else:
        raise ValueError(f"{order!r} does not follow from degrees")
    return stored_at


def order_by_heads(degrees: Degrees, heads: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Position of each vertex by degree, equals by the size of their heads.

    A bottom-up step leaves the vertices whose head is not in the frontier, mostly those with
    large ones: then these lie together, and the rows of several are in one sector or one page.
    """
    stored_at = np.empty_like(degrees)
    arrange.order_by_degree_and_head(stored_at, np.empty_like(degrees), degrees, heads)
    return stored_at


def inverse(stored_at: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the vertex at each position."""
    vertices = np.empty_like(stored_at)
    for first in range(0, stored_at.size, _PIECE_VERTICES):
        chunk = stored_at[first : first + _PIECE_VERTICES]
        vertices[chunk] = np.arange(first, first + chunk.size, dtype=np.uint32)
    return vertices


def head_weights(order: Order, degrees: Degrees, stored_at: NDArray[np.uint32]) -> Degrees:
    """Degrees by stored vertex, to choose heads; empty if the smallest neighbour is the head."""
    if order is Order.NATURAL:
        return degrees
    if order is Order.DEGREE:
        return np.empty(0, np.uint32)
    weights = np.empty_like(degrees)
    weights[stored_at] = degrees
    return weights


def keep_order(
    kept: NDArray[np.uint32], old: Order, num_vertices: int
) -> tuple[Order, NDArray[np.uint32]]:
    """Place vertices that have an order as they are, and all others behind them.

    Returns what the order is, which may no longer be by degree to the last, and all places.
    """
    stored_at = np.full(num_vertices, num_vertices, np.uint32)
    stored_at[kept] = np.arange(kept.size, dtype=np.uint32)
    others = stored_at == num_vertices
    stored_at[others] = np.arange(kept.size, num_vertices, dtype=np.uint32)
    if (stored_at == np.arange(num_vertices)).all():
        return Order.NATURAL, NO_ORDER
    if old is Order.COMMUNITIES:
        return old, stored_at
    return (Order.DBG if old in (Order.DEGREE, Order.DBG) else Order.LOCAL), stored_at


def max_tail_bytes(num_neighbours: int) -> int:
    """Return the most bytes that ``num_neighbours`` neighbours can take, segments included."""
    return 5 * num_neighbours + num_neighbours // 16 + 64
