"""The order in which vertices are stored, chosen by what it costs on a sample of rows.

The local order is only for graphs without hubs and with few edges per vertex, such as meshes and
roads. Their frontiers are thin lines, which a natural order spreads over as many cache lines and
pages as they have vertices. On a grid of 2,000 x 2,000 it saves a third of the time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.container.layout import Order
from oocbfs.kernels import varint
from oocbfs.kernels.convert import arrange, radix

Degrees = NDArray[np.uint32]
NO_ORDER = np.empty(0, np.uint32)
# Another order than the natural one costs 4 bytes per vertex and a pass over every result, so it
# must save more than this share of the graph's bits.
_WORTHWHILE = 0.03
# What makes a graph a candidate for the local order.
_MESH_MEAN_DEGREE = 8
MESH_MAX_DEGREE = 64
# Degree-based grouping: class limits in multiples of the mean degree.
_GROUPS = (0.5, 1, 2, 4, 8, 16, 32)
# How many arcs a sample of rows should have, and how many at most, since a row may be long.
SAMPLE_ARCS, _MAX_ARCS = 1 << 20, 1 << 21
# That of the kernel that samples.
_HASH = np.uint64(arrange.HASH)
# Arcs of whole rows that are encoded at a time, and vertices that are renamed.
_PIECE_ARCS = 1 << 16
_PIECE_VERTICES = 1 << 18


@dataclass(frozen=True)
class OrderChoice:
    """The chosen order and why; ``bits`` holds the estimated bits per edge of each candidate."""

    order: Order
    why: str
    bits: dict[str, float]


class RowSample:
    """All arcs of some rows, chosen by a hash of the row: the order of input does not matter."""

    def __init__(self, num_edges: int, column_bits: int, *, both: bool) -> None:
        share = min(1.0, SAMPLE_ARCS / max(1, 2 * num_edges))
        self._threshold = np.uint64(min(2**64 - 1, int(share * 2**64)))
        self._column_bits, self._both = column_bits, both
        self._chunks = [np.empty(0, np.uint64)]
        self._size = 0
        self._halved = False

    def take(self, keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Pick the arcs of keys, row << column_bits | neighbour, that are in the sample."""
        return self._pick(keys, self._both)

    def add(self, arcs: NDArray[np.uint64]) -> None:
        """Keep arcs that were taken; where they become too many, keep those of half the rows."""
        if self._halved:  # perhaps after they were taken
            arcs = self._pick(arcs, False)
        self._chunks.append(arcs)
        self._size += arcs.size
        while self._size > _MAX_ARCS:
            self._threshold >>= np.uint64(1)
            self._halved = True
            self._chunks = [self._pick(chunk, False) for chunk in self._chunks]
            self._size = sum(chunk.size for chunk in self._chunks)

    def rows(self, degrees: Degrees) -> NDArray[np.int64]:
        """Return the rows of the sample, if they have so many arcs; keeps arcs of no others."""
        rows = np.arange(degrees.size)
        while True:
            hashes = (rows.astype(np.uint64) + np.uint64(1)) * _HASH
            rows = rows[hashes <= self._threshold]
            if degrees[rows].sum(dtype=np.int64) <= _MAX_ARCS:
                break
            self._threshold >>= np.uint64(1)
        self._chunks = [self._pick(chunk, False) for chunk in self._chunks]
        return rows

    def arcs(self) -> NDArray[np.uint64]:
        """Return all of them, and keep none."""
        arcs, self._chunks = np.concatenate(self._chunks), []
        return arcs

    def _pick(self, keys: NDArray[np.uint64], both: bool) -> NDArray[np.uint64]:
        arcs = np.empty(2 * keys.size if both else keys.size, np.uint64)
        count = arrange.sample_arcs(arcs, keys, self._column_bits, self._threshold, both)
        return arcs[:count].copy()


def looks_like_mesh(degrees: Degrees) -> bool:
    """Return whether the local order is worth trying."""
    return (
        degrees.size > 0
        and float(degrees.mean()) <= _MESH_MEAN_DEGREE
        and int(degrees.max()) <= MESH_MAX_DEGREE
    )


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


def choose_order(
    arcs: NDArray[np.uint64], column_bits: int, degrees: Degrees, local: NDArray[np.uint32] | None
) -> OrderChoice:
    """Choose the order in which a sample of arcs (row << column_bits | neighbour) is smallest.

    The local order, if it is given, replaces the natural one unless it takes more space,
    because it saves time.
    """
    if arcs.size == 0:
        return OrderChoice(Order.NATURAL, "the graph has no edges", {})
    arcs = arcs[: radix.sort_unique(arcs, np.empty_like(arcs))]
    bits = {}
    for order in Order:
        if order is not Order.LOCAL:
            stored_at = stored_at_for(order, degrees)
        elif local is not None:
            stored_at = local
        else:
            continue
        bits[order] = _bits_per_edge(
            arcs, column_bits, stored_at, head_weights(order, degrees, stored_at)
        )
    best = min(bits, key=lambda order: bits[order])
    named = {order.name.lower(): value for order, value in bits.items()}
    costs = ", ".join(f"{name} {value:.1f}" for name, value in named.items())
    default = Order.NATURAL
    if local is not None and bits[Order.LOCAL] < bits[Order.NATURAL]:
        default = Order.LOCAL
    if bits[best] > (1 - _WORTHWHILE) * bits[default]:
        return OrderChoice(default, f"no other order saves 3 % ({costs} bits per edge)", named)
    return OrderChoice(best, f"smallest on a sample ({costs} bits per edge)", named)


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
    return (Order.DBG if old in (Order.DEGREE, Order.DBG) else Order.LOCAL), stored_at


def judge_kept_order(
    arcs: NDArray[np.uint64],
    column_bits: int,
    degrees: Degrees,
    order: Order,
    stored_at: NDArray[np.uint32],
) -> OrderChoice:
    """Say what a kept order costs on a sample of arcs, and whether another one would pay."""
    if arcs.size == 0:
        return OrderChoice(order, "kept", {})
    weights = head_weights(order, degrees, stored_at)
    best = choose_order(arcs, column_bits, degrees, None)
    arcs = _sorted(arcs)
    kept = _bits_per_edge(arcs, column_bits, stored_at, weights)
    saved = 1 - min(best.bits.values()) / kept
    costs = ", ".join(f"{name} {value:.1f}" for name, value in best.bits.items())
    pays = f"--order auto would save {saved:.0%}" if saved > _WORTHWHILE else "no other saves 3 %"
    why = f"kept; {pays} (kept {kept:.1f}, {costs} bits per edge)"
    return OrderChoice(order, why, {**best.bits, "kept": kept})


def _bits_per_edge(
    arcs: NDArray[np.uint64], column_bits: int, stored_at: NDArray[np.uint32], weights: Degrees
) -> float:
    """Encode the sorted sample under an order, head included, and count."""
    num_bits = first = 0
    while first < arcs.size:
        stop = min(first + _PIECE_ARCS, arcs.size)
        # To the end of the last row.
        row_end = np.uint64(((int(arcs[stop - 1]) >> column_bits) + 1) << column_bits)
        stop = first + int(np.searchsorted(arcs[first:], row_end))
        num_bits += _encoded_bits(arcs[first:stop], column_bits, stored_at, weights)
        first = stop
    return num_bits / arcs.size


def _encoded_bits(
    arcs: NDArray[np.uint64], column_bits: int, stored_at: NDArray[np.uint32], weights: Degrees
) -> int:
    bits = np.uint64(column_bits)
    rows = arcs >> bits
    numbers = np.concatenate(([0], np.cumsum(rows[1:] != rows[:-1]))).astype(np.uint64)
    columns = arcs & np.uint64((1 << column_bits) - 1)
    if stored_at.size:
        columns = stored_at[columns].astype(np.uint64)
    keys = _sorted(numbers << bits | columns)
    num_rows = int(numbers[-1]) + 1
    heads, lengths, counts = (np.empty(num_rows, np.uint32) for _ in range(3))
    tails = np.empty(max_tail_bytes(keys.size), np.uint8)
    size = varint.encode_rows(tails, heads, lengths, counts, keys, weights, 0, column_bits)
    return 8 * (int(size) + 4 * num_rows)


def _sorted(keys: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Sorted copy of distinct keys."""
    out = keys.copy()
    return out[: radix.sort_unique(out, np.empty_like(out))]


def max_tail_bytes(num_neighbours: int) -> int:
    """Return the most bytes that ``num_neighbours`` neighbours can take, segments included."""
    return 5 * num_neighbours + num_neighbours // 16 + 64
