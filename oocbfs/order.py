"""The order in which vertices are stored, chosen by what it costs on a sample of rows.

The local order is only for graphs without hubs and with few edges a vertex, such as meshes and roads:
the frontiers of their traversals are thin lines, which a natural order spreads over as many cache
lines and pages as they have vertices. On a grid of 2,000 x 2,000 it saves a third of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.layout import Order
from oocbfs.kernels import arrange, radix, varint

Degrees = NDArray[np.uint32]
_NO_RANKS = np.empty(0, np.uint32)
# Another order than the natural one costs 4 bytes per vertex and a pass over every result, so it
# must save more than this share of the graph's bits.
_WORTHWHILE = 0.03
# What makes a graph a candidate for the local order.
_MESH_MEAN_DEGREE = 8
_MESH_MAX_DEGREE = 64
# Degree-based grouping: class limits in multiples of the mean degree.
_GROUPS = (0.5, 1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class OrderChoice:
    """The chosen order and why; ``bits`` holds the estimated bits per edge of each candidate."""

    order: Order
    why: str
    bits: dict[str, float]


def looks_like_mesh(degrees: Degrees) -> bool:
    """Tell whether the local order is worth trying."""
    return (
        degrees.size > 0
        and float(degrees.mean()) <= _MESH_MEAN_DEGREE
        and int(degrees.max()) <= _MESH_MAX_DEGREE
    )


def ranks_for(order: Order, degrees: Degrees) -> NDArray[np.uint32]:
    """Position of each vertex in an order that follows from the degrees; empty for the natural one."""
    if order is Order.NATURAL:
        return _NO_RANKS
    ranks = np.empty_like(degrees)
    if order is Order.DEGREE:
        largest = int(degrees.max(initial=0))
        arrange.rank_by_class(ranks, np.uint32(largest) - degrees, largest + 1)
    else:
        # An isolated vertex is in the last class even where half the mean degree is below 1.
        limits = np.maximum(1, np.array(_GROUPS) * degrees.mean()) if degrees.size else _GROUPS
        values = np.arange(int(degrees.max(initial=0)) + 1)
        class_of = len(_GROUPS) - np.searchsorted(limits, values, side="right")
        arrange.rank_by_class(ranks, class_of.astype(np.uint32)[degrees], len(_GROUPS) + 1)
    return ranks


def head_weights(order: Order, degrees: Degrees, ranks: NDArray[np.uint32]) -> Degrees:
    """Degrees by stored vertex, to choose heads by; empty where the smallest neighbour is the head."""
    if order is Order.NATURAL:
        return degrees
    if order is Order.DEGREE:
        return np.empty(0, np.uint32)
    weights = np.empty_like(degrees)
    weights[ranks] = degrees
    return weights


def choose_order(
    arcs: NDArray[np.uint64], column_bits: int, degrees: Degrees, local: NDArray[np.uint32] | None
) -> OrderChoice:
    """Choose the order in which a sample of rows (row << column_bits | neighbour) takes least space.

    The local order, if its ranks are given, takes the place of the natural one unless it takes more:
    it saves time.
    """
    if arcs.size == 0:
        return OrderChoice(Order.NATURAL, "the graph has no edges", {})
    arcs = _sorted(arcs)
    bits = {}
    for order in Order:
        if order is not Order.LOCAL:
            ranks = ranks_for(order, degrees)
        elif local is not None:
            ranks = local
        else:
            continue
        bits[order] = _bits_per_edge(arcs, column_bits, ranks, head_weights(order, degrees, ranks))
    best = min(bits, key=lambda order: bits[order])
    named = {order.name.lower(): value for order, value in bits.items()}
    costs = ", ".join(f"{name} {value:.1f}" for name, value in named.items())
    default = Order.NATURAL
    if local is not None and bits[Order.LOCAL] < bits[Order.NATURAL]:
        default = Order.LOCAL
    if bits[best] > (1 - _WORTHWHILE) * bits[default]:
        return OrderChoice(default, f"no other order saves 3 % ({costs} bits per edge)", named)
    return OrderChoice(best, f"smallest on a sample ({costs} bits per edge)", named)


def _bits_per_edge(
    arcs: NDArray[np.uint64], column_bits: int, ranks: NDArray[np.uint32], weights: Degrees
) -> float:
    """Encode the sorted sample under an order, head included, and count."""
    bits = np.uint64(column_bits)
    rows = arcs >> bits
    numbers = np.concatenate(([0], np.cumsum(rows[1:] != rows[:-1]))).astype(np.uint64)
    columns = arcs & np.uint64((1 << column_bits) - 1)
    if ranks.size:
        columns = ranks[columns].astype(np.uint64)
    keys = _sorted(numbers << bits | columns)
    num_rows = int(numbers[-1]) + 1
    heads, lengths, counts = (np.empty(num_rows, np.uint32) for _ in range(3))
    tails = np.empty(max_tail_bytes(keys.size), np.uint8)
    size = varint.encode_rows(tails, heads, lengths, counts, keys, weights, 0, column_bits)
    return float(8 * (size + 4 * num_rows) / arcs.size)


def _sorted(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sorted copy of distinct keys."""
    out = keys.copy()
    return out[: radix.sort_unique(out, np.empty_like(out))]


def max_tail_bytes(num_neighbours: int) -> int:
    """Most bytes that so many neighbours can take, segments included."""
    return 5 * num_neighbours + num_neighbours // 16 + 64
