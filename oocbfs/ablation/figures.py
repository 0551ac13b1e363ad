"""The pictures: what moves, frontiers as they are and as they should be, and who does the work."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from oocbfs.ablation.groups import GROUPS
from oocbfs.ablation.paper import EVOLUTION_MS, XBFS_SHARES
from oocbfs.ablation.plan import Frontiers, Plan
from oocbfs.ablation.runs import Row, Run
from oocbfs.ablation.table import COLUMNS
from oocbfs.methods import parse_method
from oocbfs.pictures.charts import LOGICAL, bars, lines, stacks
from oocbfs.pictures.svg import Panel, Picture

_COLUMN = {column.name: column for column in COLUMNS}
_MERRILL = {parse_method(name).name for name in GROUPS["merrill"]}
TOP_DOWN, BOTTOM_UP, RELAX, HEADS, SPLIT = "top-down", "bottom-up", "relax", "heads", "split"
_ORDER = (TOP_DOWN, BOTTOM_UP, HEADS, SPLIT, RELAX)
# Whose levels xbfs's are compared with: every level scans the status of all vertices.
_PLAIN = "single-scan"
# Which part of xbfs a kind of step is.
_XBFS_SHARES = {
    "top-down": "scan-free",
    "top-down, scan": "single-scan",
    "top-down, list": "no-queue",
    "bottom-up": "double-scan",
}


def draw(rows: Sequence[Row], plan: Plan, frontiers: Frontiers) -> list[Picture]:
    """Draw every picture for which there are methods."""
    pictures = []
    evolution = [row for row in rows if row.method in GROUPS["evolution"]]
    if len(evolution) > 1:
        pictures.append(_evolution(evolution, plan))
    pictures.append(_overview(rows, plan))
    pictures.append(_frontiers([row for row in rows if _is_merrill(row)], frontiers))
    pictures += _directions(rows)
    return pictures


def _is_merrill(row: Row) -> bool:
    """Return whether a row is one of Merrill's methods; how it gathers changes no frontier."""
    choice = parse_method(row.method)
    return bool(row.runs) and choice.name in _MERRILL and "gather" not in dict(choice.given)


def _bars(title: str, name: str, rows: Sequence[Row], plan: Plan, kind: str) -> Panel:
    column = _COLUMN[name]
    return bars(
        title,
        {row.method: column.of(row, plan) for row in rows},
        write=column.write,
        absent={row.method: "overflows" for row in rows if row.failure},
        kind=kind,
    )


def _evolution(rows: Sequence[Row], plan: Plan) -> Picture:
    reported = {row.method: EVOLUTION_MS.get(row.method) for row in rows}
    return Picture(
        "The evolution of the v3.3 report",
        "Each version adds to the one before. Bytes and launches are counted here; the times are "
        "the report's, on Friendster.",
        [
            _bars("bytes over PCIe, of the graph", "pcie_share", rows, plan, "c0"),
            _bars("launches", "launches", rows, plan, "c2"),
            bars(
                "reported: milliseconds",
                reported,
                write=lambda ms: f"{ms:,.0f}",
                kind="c7",
            ),
        ],
    )


def _overview(rows: Sequence[Row], plan: Plan) -> Picture:
    return Picture(
        "All methods",
        "Medians of all runs. Above 1x, edges are looked at more than once; below, some never are.",
        [
            _bars("bytes over PCIe, of the graph", "pcie_share", rows, plan, "c0"),
            _bars("edges examined, of those reached", "edge_ratio", rows, plan, "c1"),
            _bars("atomic operations", "atomics", rows, plan, "c3"),
        ],
    )


def _frontiers(rows: Sequence[Row], frontiers: Frontiers) -> Picture:
    most = [float(_each_level(row.runs[0], "edges_examined").max(initial=0)) for row in rows]
    top = max([float(frontiers.edges.max()), *most])
    logical = lines(
        "what has to be done",
        {
            "edges": (LOGICAL, frontiers.edges.tolist()),
            "each target once": ("4", frontiers.distinct.tolist()),
            "vertices": ("0", frontiers.vertices.tolist()),
        },
        top,
    )
    return Picture(
        "Frontiers, level by level",
        "From the first source: the edges that leave each level and the vertices they lead to, and "
        "what Merrill's methods expand and find twice (their Fig. 3 and 7). Titles say how many "
        "times the logical edges were expanded.",
        [logical, *(_real_frontier(row, frontiers, top) for row in rows)],
    )


def _real_frontier(row: Row, frontiers: Frontiers, top: float) -> Panel:
    run = row.runs[0]
    ratio = run.by_level["edges_examined"].sum() / max(1, frontiers.edges.sum())
    return lines(
        f"{row.method}: {ratio:.2f}x",
        {
            "logical edges": (LOGICAL, frontiers.edges.tolist()),
            "expanded": ("1", _each_level(run, "edges_examined").tolist()),
            "found twice": ("2", _each_level(run, "duplicates").tolist()),
        },
        top,
    )


def _each_level(run: Run, count: str) -> NDArray[np.float64]:
    """Return a count by level; levels that ran in one launch share what it counted."""
    return np.repeat(run.by_level[count] / run.num_levels, run.num_levels)


def _directions(rows: Sequence[Row]) -> Iterator[Picture]:
    done = [row for row in rows if not row.failure]
    levels = {row.method: _by_direction(row, None) for row in done}
    several = [row for row in done if len(levels[row.method]) > 1]
    if not several:
        return
    names = sorted({name for row in several for name in levels[row.method]}, key=_ORDER.index)
    kinds = {name: f"c{_ORDER.index(name)}" for name in names}
    panels = [
        stacks("levels", {row.method: levels[row.method] for row in several}, kinds),
        stacks(
            "edges examined",
            {row.method: _by_direction(row, "edges_examined") for row in several},
            kinds,
        ),
    ]
    by_name = {row.method: row for row in done}
    if {"xbfs", _PLAIN} <= by_name.keys():
        panels.append(_parts(by_name["xbfs"], by_name[_PLAIN]))
    yield Picture(
        "Who does the work",
        "Levels, and edges examined, by direction, of the methods that change it; and which part "
        f"of xbfs saves how much of what {_PLAIN} moves in the same levels (its Fig. 13). "
        "Sums of all runs.",
        panels,
    )


def direction_of(kind: str) -> str:
    """Return the direction of a kind of step; the default engine has two more."""
    if kind in (RELAX, HEADS, SPLIT):
        return kind
    return BOTTOM_UP if kind.startswith(BOTTOM_UP) else TOP_DOWN


def _by_direction(row: Row, count: str | None) -> Counter[str]:
    """Sum a count, or levels, by direction."""
    found = Counter[str]()
    for run in row.runs:
        values = run.num_levels if count is None else run.by_level[count]
        for kind, value in zip(run.directions, values.tolist(), strict=True):
            found[direction_of(kind)] += value
    return found


def _parts(xbfs: Row, plain: Row) -> Panel:
    saved = contributions(xbfs, plain)
    return stacks(
        f"sectors saved against {_PLAIN}",
        {"here": {part: max(0, value) for part, value in saved.items()}, "paper": XBFS_SHARES},
        {part: f"c{number}" for number, part in enumerate(XBFS_SHARES)},
    )


def contributions(xbfs: Row, plain: Row) -> Counter[str]:
    """Sum up by the part that xbfs used how many sectors it saved in the levels it ran there."""
    saved = Counter[str]()
    for one, other in zip(xbfs.runs, plain.runs, strict=True):
        cost, before = _sectors(one), _sectors(other)
        for level, kind in enumerate(one.directions):
            saved[_XBFS_SHARES[kind]] += before[level] - cost[level]
    return saved


def _sectors(run: Run) -> NDArray[np.float64]:
    return _each_level(run, "pcie_sectors") + _each_level(run, "device_sectors")
