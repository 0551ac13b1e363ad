"""Predict what machines that share a graph tell each other: formulas, and what follows from them.

A graph of n vertices is cut into p shards, and a search goes level by level. A level is found in
one of two ways. *Bottom-up*: everybody gets to know the frontier, and searches for it. *Top-down*:
everybody expands its own share of the frontier, and tells the owners what it found. Both send a set
of vertices, as a bitmap of n bits or, where these are few, in a code of known length
(``set_bytes``). With a *coordinator*, the client merges: all of it passes through one machine.
Nothing here is a measurement: see MODEL.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from oocbfs.errors import QueryError, shown

MODEL = (
    "Bytes of one machine. Bottom-up: (p-1)/p · S(n, f) for a frontier of f vertices. Top-down: at "
    "most (p-1)/p · S(n, m/p) for a frontier with m edges. S(n, k) is n/8 or, if k is below n/40, "
    "(k·(l+1) + n/2^l)/8 with l = floor(log2(n/k)). In a sharded graph, n are the vertices up to "
    "the last that leads on (bottom-up), or has an edge (top-down), and f those that lead on. "
    "Coordinator: (p+2)·n/8 through the client, whatever the frontier. 2-D cut: n/8 for each of "
    "its two sides, divided by the square root of p. Seconds: bytes over the bandwidth, and the "
    "latency of each level. Levels go bottom-up from where a frontier has more than a fifteenth of "
    "the edges that are left, until it shrinks below an eighteenth of the vertices. Computing is "
    "not modelled."
)

# So many vertices there are for each one that a message names, if these are coded. With fewer, the
# code takes longer than it saves between machines (QUICK_BITS), or through a client (CODED_BITS).
QUICK_BITS, CODED_BITS = 40, 4
# Beside computing, a level took 0.1 to 0.2 ms between two processes under MPI, and 22 ms between
# two workers of Dask on a quiet machine. Networks add their own.
MPI_LATENCY = 0.2e-3
DASK_LATENCY = 22e-3
# A search whose levels wait longer than this for nothing but messages is called deep.
DEEP_SECONDS = 10.0
# A level that takes longer than this to pass through one link cannot be meant.
_SLOW_LEVEL_SECONDS = 1.0
# Of a graph that is only described: heads, starts and tails of the graph of Friendster's size.
BYTES_PER_ARC = 2.4
# What a worker takes besides: Python, numba and their code.
_PROGRAM_BYTES = 200e6
_MOST_RESULT_BYTES = 1 << 26
# When bottom-up levels begin and end, after Beamer and others, as GAPBS has it.
_ALPHA, _BETA = 15, 18
_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


class Frontier(NamedTuple):
    """A level as messages see it: vertices, edges that leave them, and the direction if known.

    ``sent`` are the vertices that are sent, if not all: those that may lead on.
    """

    vertices: float
    edges: float
    bottom_up: bool | None = None
    sent: float | None = None


class Planned(NamedTuple):
    """What is known of a graph: its size, that of its file, whether it is directed."""

    vertices: int
    arcs: int
    file_bytes: int | None = None
    directed: bool | None = None
    # Vertices of which messages up and down name some, if not of all.
    named: tuple[int, int] | None = None

    @property
    def edges(self) -> int | None:
        """Edges, an undirected one counted once; None if their kind is not known."""
        return {None: None, True: self.arcs, False: self.arcs // 2}[self.directed]


@dataclass(frozen=True)
class Machines:
    """How many share a graph, the rate of a link in bytes a second, and what a level waits."""

    workers: int
    bandwidth: float
    latency: float = MPI_LATENCY
    coordinator_latency: float = DASK_LATENCY


def is_coded(num_bits: int, count: int, coded_bits: int) -> bool:
    """Return whether a set is coded: there are ``coded_bits`` numbers for each that is named."""
    return min(count, num_bits - count) * coded_bits <= num_bits


def low_bits(num_bits: int, count: int) -> int:
    """Return the low bits of each number of a set that has any."""
    return (num_bits // count).bit_length() - 1


def set_bytes(num_bits: int, count: int, coded_bits: int = QUICK_BITS) -> int:
    """Bytes of a message that names so many of ``num_bits`` numbers: a bitmap, or a code.

    Numbers that are coded take a bit and their low bits each, and a bit for each high part; if more
    than half are named, the others are.
    """
    if not is_coded(num_bits, count, coded_bits):
        return -(-num_bits // 8)
    few = min(count, num_bits - count)
    if not few:
        return 0
    low = low_bits(num_bits, few)
    return -(-(few * (low + 1) + (num_bits >> low)) // 8)


def bottom_up_bytes(num_vertices: int, frontier: float, shards: int) -> float:
    """Bytes of a frontier that a machine receives from the others."""
    return (shards - 1) / shards * set_bytes(num_vertices, round(min(frontier, num_vertices)))


def top_down_bytes(num_vertices: int, edges: float, shards: int) -> float:
    """Bytes of found vertices that a machine sends to the others: one for each edge at most."""
    found = round(min(edges / shards, num_vertices / 2))
    return (shards - 1) / shards * set_bytes(num_vertices, found)


def coordinator_bytes(num_vertices: int, shards: int) -> float:
    """Bytes of a level through the client: the frontier to each shard, and what is found back."""
    return (shards + 2) * num_vertices / 8


def grid_bytes(num_vertices: int, shards: int) -> float:
    """Bytes that a machine would receive in a level if rows and columns were cut."""
    return 2 * num_vertices / 8 / math.sqrt(shards)


def depths(depth: int) -> tuple[int, int]:
    """Bound the last level from any source by that from one, if edges lead both ways.

    From another source, it is half as far to what is farthest, or twice as far at most: by way of
    the first one.
    """
    return -(-depth // 2), 2 * depth


def parse_bandwidth(text: str) -> float:
    """Read the rate of a link as it is sold, ``25G`` for 25 Gbit/s; returns bytes a second."""
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:bit)?(?:/s)?\s*", text, re.IGNORECASE)
    rate = float(match[1]) * _UNITS[match[2].upper()] / 8 if match else 0.0
    if not 0 < rate < 1e15:
        raise QueryError(
            f"cannot read {shown(text)} as the bits that a link carries in a second: "
            "write it as 25G or 100M"
        )
    return rate


def uniform_frontiers(num_vertices: int, num_arcs: int) -> list[Frontier]:
    """Guess the levels of a graph of which only this is known: as if its edges were random."""
    degree = num_arcs / num_vertices
    frontier, unvisited = 1.0, num_vertices - 1.0
    found = []
    while frontier >= 1:
        found.append(Frontier(frontier, frontier * degree))
        # An edge misses a vertex with the chance 1 - 1/n.
        frontier = -unvisited * math.expm1(-frontier * degree / num_vertices)
        unvisited -= frontier
    return found


def sampled_frontiers(sizes: Sequence[int], edges: Sequence[float]) -> list[Frontier]:
    """Take levels from a search."""
    return [Frontier(*pair) for pair in zip(sizes, edges, strict=True)]


def read_frontiers(path: str) -> tuple[int, int, list[Frontier]]:
    """Take vertices, arcs and levels from what ``oocbfs bfs --json`` printed."""
    try:
        with open(path, "rb") as file:  # which may be a device without an end
            found = json.loads(file.read(_MOST_RESULT_BYTES))
        num_vertices, num_arcs = int(found["vertices"]), int(found["arcs"])
        degree = num_arcs / max(1, num_vertices)
        known = [one for level in found["levels"] for one in _measured(level, degree)]
        frontiers = [
            one._replace(vertices=size)
            if one.edges
            else Frontier(size, size * degree, one.bottom_up)
            for size, one in zip(map(int, found["level_sizes"]), known, strict=True)
        ]
    except OSError as error:
        raise QueryError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise QueryError(f"{path}: is not what 'oocbfs bfs --json' prints") from error
    if num_vertices < 1:
        raise QueryError(f"{path}: has no vertices")
    return num_vertices, num_arcs, frontiers


def _measured(level: dict[str, Any], degree: float) -> list[Frontier]:
    """Take one record of a result, which may sum up several levels."""
    count = int(level["num_levels"])
    bottom_up = level["direction"] in ("bottom-up", "heads", "split")
    # Only a top-down level looks at all edges of its frontier.
    examined = 0 if bottom_up else (level["edges_examined"] or 0)
    return [Frontier(level["frontier"] / count, examined / count, bottom_up)] * count


def scaled(frontiers: Sequence[Frontier], by_vertices: float, by_edges: float) -> list[Frontier]:
    """Return the levels of a larger graph of the same kind: sources stay, all others grow."""
    first, *others = frontiers
    return [
        first._replace(edges=first.edges * by_edges / by_vertices),
        *(
            Frontier(max(1.0, one.vertices * by_vertices), one.edges * by_edges, one.bottom_up)
            for one in others
        ),
    ]


@dataclass(frozen=True)
class LevelMessages:
    """What one level sends: bytes of a machine, up or down, and through a coordinator."""

    direction: str
    frontier: float
    edges: float
    bottom_up_bytes: float
    top_down_bytes: float
    coordinator_bytes: float

    @property
    def num_bytes(self) -> float:
        """Bytes of a machine in the direction that is taken."""
        return self.bottom_up_bytes if self.direction == "bottom-up" else self.top_down_bytes


@dataclass(frozen=True)
class Exchange:
    """All levels in one way of exchanging: bytes of the busiest machine, and seconds."""

    name: str
    num_bytes: float
    seconds: float
    latency_seconds: float


@dataclass(frozen=True)
class MessagePlan:
    """What a search on several machines sends, what a worker holds, and what that means."""

    levels: list[LevelMessages]
    exchanges: list[Exchange]
    worker_bytes: dict[str, float]
    warnings: list[str]


def plan_messages(
    num_vertices: int,
    num_arcs: int,
    frontiers: Sequence[Frontier],
    machines: Machines,
    file_bytes: int | None = None,
    named: tuple[int, int] | None = None,
) -> MessagePlan:
    """Follow the levels; see MODEL.

    Steps name one of so many vertices (``named``), if not one of all.
    """
    shards = machines.workers
    bottom_up_of, top_down_of = named or (num_vertices, num_vertices)
    levels = []
    left, before, bottom_up = float(num_arcs), 0.0, False
    for frontier in frontiers:
        if frontier.bottom_up is not None:
            bottom_up = frontier.bottom_up
        elif bottom_up:
            bottom_up = frontier.vertices > min(before, num_vertices / _BETA)
        else:
            bottom_up = frontier.edges > left / _ALPHA
        before = frontier.vertices
        left = max(0.0, left - frontier.edges)
        levels.append(
            LevelMessages(
                direction="bottom-up" if bottom_up else "top-down",
                frontier=frontier.vertices,
                edges=frontier.edges,
                bottom_up_bytes=bottom_up_bytes(
                    bottom_up_of,
                    frontier.vertices if frontier.sent is None else frontier.sent,
                    shards,
                ),
                top_down_bytes=top_down_bytes(top_down_of, frontier.edges, shards),
                coordinator_bytes=coordinator_bytes(num_vertices, shards),
            )
        )
    exchanges = _exchanges(num_vertices, levels, machines)
    shard_bytes = (file_bytes or BYTES_PER_ARC * num_arcs) / shards
    return MessagePlan(
        levels=levels,
        exchanges=exchanges,
        worker_bytes={
            "program": _PROGRAM_BYTES,
            "shard of the file": shard_bytes,
            "bitmaps": 3 * num_vertices / 8,
            "levels": 4 * num_vertices / shards,
        },
        warnings=_warnings(num_vertices, len(levels), exchanges, machines),
    )


def _exchanges(
    num_vertices: int, levels: Sequence[LevelMessages], machines: Machines
) -> list[Exchange]:
    grid = grid_bytes(num_vertices, machines.workers)
    kinds = (
        ("MPI", [level.num_bytes for level in levels], machines.latency),
        (
            "Dask, a coordinator",
            [level.coordinator_bytes for level in levels],
            machines.coordinator_latency,
        ),
        ("2-D cut, not built", [grid] * len(levels), machines.latency),
    )
    exchanges = []
    for name, sent, latency in kinds:
        waits = latency * len(levels)
        seconds = waits + sum(sent) / machines.bandwidth
        exchanges.append(Exchange(name, sum(sent), seconds, waits))
    return exchanges


def _warnings(
    num_vertices: int, num_levels: int, exchanges: Sequence[Exchange], machines: Machines
) -> list[str]:
    found = []
    for exchange in exchanges[:2]:
        if exchange.latency_seconds > DEEP_SECONDS:
            each = exchange.latency_seconds / num_levels
            found.append(
                f"deep: {num_levels:,} levels of {1000 * each:g} ms each wait "
                f"{exchange.latency_seconds:,.0f} s for messages ({exchange.name}): "
                "one machine is faster"
            )
    if coordinator_bytes(num_vertices, machines.workers) > _SLOW_LEVEL_SECONDS * machines.bandwidth:
        each = coordinator_bytes(num_vertices, machines.workers) / machines.bandwidth
        found.append(
            f"a coordinator is out of reach: each level takes {each:,.1f} s through the client's "
            "link: use MPI"
        )
    bitmap = bottom_up_bytes(num_vertices, num_vertices / 2, machines.workers) / machines.bandwidth
    if bitmap > _SLOW_LEVEL_SECONDS / 10:
        found.append(
            f"a bitmap of all vertices takes {bitmap:,.2f} s to reach a worker: "
            "a 2-D cut would send less"
        )
    return found
