"""Rows written by a plain encoder from FORMAT.md alone, graphs to write, and a plain search."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from oocbfs.graph.rows import decode_rows
from oocbfs.kernels.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

Graph = list[list[int]]

SEGMENT = 1024
NONE = 0xFFFFFFFF


def varint(value: int) -> bytes:
    """Encode one number, lowest seven bits first."""
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def stretched(code: bytes, length: int) -> bytes:
    """Make a varint longer without changing its value."""
    if len(code) == length:
        return code
    padding = b"\x80" * (length - len(code) - 1) + b"\x00"
    return code[:-1] + bytes([code[-1] | 128]) + padding


def encode_tail(ids: Sequence[int]) -> bytes:
    """Encode a tail, in segments if it is long."""
    codes = [varint(v - u - 1) for u, v in zip([-1, *ids], ids, strict=False)]
    if sum(map(len, codes)) <= SEGMENT:
        return b"".join(codes)
    segments: list[list[bytes]] = [[]]
    room, previous = SEGMENT, -1
    for v in ids:
        code = varint(v - previous - 1)
        if len(code) > room:
            last = segments[-1][-1]
            segments[-1][-1] = stretched(last, len(last) + room)
            segments.append([])
            room, code = SEGMENT, varint(v)
        segments[-1].append(code)
        room, previous = room - len(code), v
        if room == 0:
            segments.append([])
            room, previous = SEGMENT, -1
    return b"".join(code for segment in segments for code in segment)


def make_rows(graph: Graph, weights: Sequence[int], shift: int = 3) -> Rows:
    """Write the rows of a graph; heads are the neighbours of the largest weights."""
    n = len(graph)
    heads, tails, offsets = [], bytearray(), [0]
    for row in graph:
        head = min(row, key=lambda v: (-weights[v], v), default=NONE)
        heads.append(head)
        tails += encode_tail([v for v in sorted(row) if v != head])
        offsets.append(len(tails))
    bases = [offsets[block << shift] for block in range((n >> shift) + 1)]
    starts = [offset - bases[u >> shift] for u, offset in enumerate(offsets)]
    degrees = [len(row) for row in graph]
    return Rows(
        heads=np.array(heads, np.uint32),
        bases=np.array(bases, np.uint64),
        starts=np.array(starts, np.uint32),
        tails=np.frombuffer(bytes(tails) + bytes(16), np.uint8),
        degrees=np.array(degrees, np.uint32),
        shift=shift,
        num_arcs=sum(degrees),
        max_degree=max(degrees, default=0),
        num_ids=len(heads),
    )


def transpose(graph: Graph) -> Graph:
    """Turn all edges around."""
    back: Graph = [[] for _ in graph]
    for u, row in enumerate(graph):
        for v in row:
            back[v].append(u)
    return back


def both_ways(graph: Graph, directed: bool) -> tuple[Rows, Rows]:
    """Return the rows of out- and in-neighbours, the same if the graph is undirected."""
    back = transpose(graph)
    weights = [len(a) + len(b) for a, b in zip(graph, back, strict=True)]
    out = make_rows(graph, weights)
    return out, make_rows(back, weights) if directed else out


def random_graph(seed: int, n: int, edges: int, hubs: int = 0, directed: bool = False) -> Graph:
    """Make a graph of random edges, with some vertices that know half of the others."""
    rng = np.random.default_rng(seed)
    pairs = rng.integers(0, n, (edges, 2))
    for hub in rng.integers(0, n, hubs):
        others = rng.permutation(n)[: n // 2]
        pairs = np.concatenate([pairs, np.stack([np.full_like(others, hub), others], 1)])
    neighbours: list[set[int]] = [set() for _ in range(n)]
    for u, v in pairs.tolist():
        if u != v:
            neighbours[u].add(v)
            if not directed:
                neighbours[v].add(u)
    return [sorted(row) for row in neighbours]


def plain_levels(graph: Graph, sources: Sequence[int], max_depth: int = -1) -> list[int]:
    """Search with a list of rows and a queue."""
    levels = [-1] * len(graph)
    for s in sources:
        levels[s] = 0
    queue = deque(dict.fromkeys(sources))
    while queue:
        u = queue.popleft()
        if levels[u] == max_depth:
            continue
        for v in graph[u]:
            if levels[v] < 0:
                levels[v] = levels[u] + 1
                queue.append(v)
    return levels


def check_parents(
    graph: Graph, sources: Sequence[int], levels: NDArray[np.int32], parents: NDArray[np.uint32]
) -> None:
    """Check that each parent is a neighbour one level nearer, and that none has one for nothing."""
    for v, (level, parent) in enumerate(zip(levels.tolist(), parents.tolist(), strict=True)):
        if level < 0:
            assert parent == NONE
        elif level == 0:
            assert v in sources
            assert parent == v
        else:
            assert levels[parent] == level - 1
            assert v in graph[parent]


def both_decoded(rows_out: Rows, rows_in: Rows) -> tuple[Rows, Rows]:
    """Decode both directions, which may be the same."""
    decoded = decode_rows(rows_out)
    assert decoded.neighbours.size > 0
    return decoded, decoded if rows_in is rows_out else decode_rows(rows_in)
