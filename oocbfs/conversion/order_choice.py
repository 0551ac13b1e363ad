"""Which order a graph is stored in, chosen by what a sample of its rows takes in each.

The local order is only for graphs without hubs and with few edges per vertex, such as meshes and
roads. Their frontiers are thin lines, which a natural order spreads over as many cache lines and
pages as they have vertices. On a grid of 2,000 x 2,000 it saves a third of the time.

The order by communities is for graphs that have some, and whose ids say nothing about them. It
takes longer than all other steps of a conversion, so that it must save much.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from oocbfs.conversion.order import Degrees
from oocbfs.conversion.order_sample import Size
from oocbfs.formats.container.layout import Order

# Another order than the natural one takes a pass over every result, so it must save more than this
# share of what is written.
_WORTHWHILE = 0.03
# The share that communities must save.
_MUCH = 0.15
# What makes a graph a candidate for the local order.
_MESH_MEAN_DEGREE = 8
MESH_MAX_DEGREE = 64
# Ids tell about communities where what is written is less than that share of heads and tails in
# memory: of web graphs a third at most, of others two thirds or more.
_RESEMBLING = 0.5
# See ``clustering``.
_MOST_BY_CHANCE = 0.12
# Smaller files are a few pages, however they are arranged.
_LEAST_ARCS = 1 << 16
# What they are called that are made of all neighbours.
BY_NEIGHBOURS = ("local", "communities")


@dataclass(frozen=True)
class OrderChoice:
    """The chosen order and why; ``bits`` holds the estimated bits per edge of each candidate."""

    order: Order
    why: str
    bits: dict[str, float]


def looks_like_mesh(degrees: Degrees) -> bool:
    """Return whether the local order is worth trying."""
    return (
        degrees.size > 0
        and float(degrees.mean()) <= _MESH_MEAN_DEGREE
        and int(degrees.max()) <= MESH_MAX_DEGREE
    )


def may_need_neighbours(asked: str, degrees: Degrees) -> bool:
    """Return whether an order that is asked for may be made of all neighbours."""
    if asked != "auto":
        return asked in BY_NEIGHBOURS
    return looks_like_mesh(degrees) or int(degrees.sum(dtype=np.int64)) >= _LEAST_ARCS


def may_have_communities(sizes: dict[str, Size], num_arcs: int) -> bool:
    """Return whether it is worth looking for communities: not where ids tell them already."""
    return num_arcs >= _LEAST_ARCS and "local" not in sizes and not _ids_tell(sizes)


def is_clustered(excess: float) -> bool:
    """Return whether neighbours are neighbours often enough for communities to be there."""
    return excess > _MOST_BY_CHANCE


def saves_much(sizes: dict[str, Size]) -> bool:
    """Return whether communities are worth their time."""
    others = min(one.written for name, one in sizes.items() if name != "communities")
    return sizes["communities"].written <= (1 - _MUCH) * others


def choose_order(sizes: dict[str, Size]) -> OrderChoice:
    """Choose the order in which a sample is smallest.

    The local order is there to save time: it replaces the natural one unless it takes more space in
    memory, and is compared with others there.
    """
    bits = _compared(sizes)
    default, worthwhile = "natural", _WORTHWHILE
    if "local" in sizes and sizes["local"].in_memory < sizes["natural"].in_memory:
        default, bits = "local", {name: one.in_memory for name, one in sizes.items()}
    elif _ids_tell(sizes):
        worthwhile = _MUCH
    costs = _costs(bits)
    allowed = set(bits)
    if "communities" in sizes and not saves_much(sizes):
        allowed.remove("communities")
    best = min(allowed, key=lambda name: (bits[name], name))
    if bits[best] > (1 - worthwhile) * bits[default]:
        why = f"no other order saves {100 * worthwhile:.0f} % ({costs})"
        return OrderChoice(Order[default.upper()], why, bits)
    return OrderChoice(Order[best.upper()], f"smallest on a sample ({costs})", bits)


def judge_kept_order(sizes: dict[str, Size], order: Order) -> OrderChoice:
    """Say what a kept order costs on a sample, and whether another one would pay."""
    bits = _compared(sizes)
    kept = bits["kept"]
    saved = 1 - min(bits.values()) / kept if kept else 0.0
    pays = f"--order auto would save {saved:.0%}" if saved > _WORTHWHILE else "no other saves 3 %"
    return OrderChoice(order, f"kept; {pays} ({_costs(bits)})", bits)


def _compared(sizes: dict[str, Size]) -> dict[str, float]:
    """Return what orders are compared by: all that is written if it is in frames in one of them.

    Of files that map as they are, searches read heads and tails; an order's own section is looked
    at once.
    """
    by_file = any(one.is_framed for one in sizes.values())
    return {name: one.written if by_file else one.in_memory for name, one in sizes.items()}


def _ids_tell(sizes: dict[str, Size]) -> bool:
    """Return whether rows resemble those of the ids beside them, as on web graphs."""
    natural = sizes["natural"]
    return natural.written < _RESEMBLING * natural.in_memory


def _costs(bits: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in bits.items()) + " bits per edge"
