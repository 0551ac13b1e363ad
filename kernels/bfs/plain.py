"""The plain twin of ``search``: the same levels in plain Python, for readers and for tests.

One thread, a list for the frontier, the levels for what is visited. The direction is chosen as in
Beamer, Asanović and Patterson (SC 2012) and in GAPBS's bfs.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oocbfs.kernels.constants import NO_HEAD, SEGMENT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from oocbfs.kernels.rows import Rows


def plain_bfs(
    rows_out: Rows,
    rows_in: Rows,
    sources: Iterable[int],
    *,
    alpha: float = 15.0,
    beta: float = 18.0,
) -> list[int]:
    """Return the level of every vertex, -1 where nothing was reached."""
    n = rows_out.heads.size
    levels = [-1] * n
    frontier = sorted(set(sources))
    for v in frontier:
        levels[v] = 0
    level = 0
    unexplored = rows_out.num_arcs
    upward = False
    while frontier:
        level += 1
        edges = sum(int(rows_out.degrees[u]) for u in frontier)
        upward = len(frontier) > n / beta if upward else edges > unexplored / alpha
        unexplored -= edges
        if upward:
            frontier = _bottom_up(rows_in, levels, level)
        else:
            frontier = _top_down(rows_out, levels, frontier, level)
    return levels


def _top_down(rows: Rows, levels: list[int], frontier: list[int], level: int) -> list[int]:
    """Let the frontier reach for vertices that are not visited."""
    next_frontier = []
    for u in frontier:
        for v in neighbours(rows, u):
            if levels[v] < 0:
                levels[v] = level
                next_frontier.append(v)
    return next_frontier


def _bottom_up(rows: Rows, levels: list[int], level: int) -> list[int]:
    """Let vertices that are not visited look for the frontier."""
    next_frontier = []
    for v in range(len(levels)):
        if levels[v] < 0 and any(levels[u] == level - 1 for u in neighbours(rows, v)):
            levels[v] = level
            next_frontier.append(v)
    return next_frontier


def neighbours(rows: Rows, u: int) -> Iterator[int]:
    """Decode a row: its head, then its tail, whose segments each begin with a whole id."""
    if rows.heads[u] == NO_HEAD:
        return
    yield int(rows.heads[u])
    begin, end = _row_begin(rows, u), _row_begin(rows, u + 1)
    for first in range(begin, end, SEGMENT_BYTES):
        v = -1
        value = shift = 0
        for byte in rows.tails[first : min(first + SEGMENT_BYTES, end)].tolist():
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                v += value + 1
                yield v
                value = shift = 0


def _row_begin(rows: Rows, u: int) -> int:
    """Return the offset of a row's first tail byte, which is the end of the row before."""
    return int(rows.bases[u >> rows.shift]) + int(rows.starts[u])
