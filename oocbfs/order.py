"""The order in which vertices are stored, chosen by what it costs on a sample of rows."""

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
# Degree-based grouping: class limits in multiples of the mean degree.
_GROUPS = (0.5, 1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class OrderChoice:
    """The chosen order and why; ``bits`` holds the estimated bits per edge of each candidate."""

    order: Order
    why: str
    bits: dict[str, float]


def ranks_for(order: Order, degrees: Degrees) -> NDArray[np.uint32]:
    """Position of each vertex in an order; empty for the natural one."""
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


def choose_order(arcs: NDArray[np.uint64], column_bits: int, degrees: Degrees) -> OrderChoice:
    """Choose the order in which a sample of rows (row << column_bits | neighbour) takes least space."""
    if arcs.size == 0:
        return OrderChoice(Order.NATURAL, "the graph has no edges", {})
    arcs = _sorted(arcs)
    bits = {}
    for order in Order:
        ranks = ranks_for(order, degrees)
        bits[order] = _bits_per_edge(arcs, column_bits, ranks, head_weights(order, degrees, ranks))
    best = min(Order, key=lambda order: bits[order])
    named = {order.name.lower(): value for order, value in bits.items()}
    costs = ", ".join(f"{name} {value:.1f}" for name, value in named.items())
    if bits[best] > (1 - _WORTHWHILE) * bits[Order.NATURAL]:
        return OrderChoice(
            Order.NATURAL, f"no other order saves 3 % ({costs} bits per edge)", named
        )
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
