"""What the papers claim, each as a figure that can be counted here, and when it holds.

A factor holds if at least half of it was counted, a share within ten points.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from oocbfs.ablation.figures import contributions
from oocbfs.ablation.paper import XBFS_SHARES
from oocbfs.ablation.plan import Plan
from oocbfs.ablation.runs import Row
from oocbfs.ablation.table import COLUMNS
from oocbfs.pictures.charts import short

_COLUMNS = {column.name: column for column in COLUMNS}
_PCIE, _DEVICE, _BUSIEST, _D = "pcie_share", "device_bytes", "warp_imbalance", "duplicates"
# The word that holds the end of a queue.
_QUEUE = "atomics.words"
_GATHERS = "two-phase:gather=serial / two-phase"
_ASYNC, _FETCH = "xbfs / async", "xbfs:balance=stride / xbfs"
_CHOICE, _QUEUED, _GUNROCK = "simple / gswitch", "queue / simple", "gunrock / queue"
_BLOCKS = "edge-blocks / harish"


class Measured:
    """What all methods counted on one graph."""

    def __init__(self, title: str, plan: Plan, rows: list[Row]) -> None:
        self.title = title
        self.plan = plan
        self.rows = {row.method: row for row in rows}

    def value(self, method: str, name: str) -> float | None:
        """Return a figure of a method; None if it did not run, overflowed, or did not count it."""
        row, column = self.rows.get(method), _COLUMNS.get(name)
        if row is None:
            return None
        return row.median(name) if column is None else column.of(row, self.plan)

    def saved(self, part: str) -> float | None:
        """Return the share that a part of xbfs has in the sectors it saves, if it saves any."""
        if "xbfs" not in self.rows:
            return None
        saved = contributions(self.rows["xbfs"], self.rows["single-scan"])
        whole = sum(saved.values())
        return saved[part] / whole if whole else None

    def shown(self, method: str, name: str) -> str:
        """Write a figure of a method, or the share that it has in what xbfs saves."""
        if name == "saved":
            share = self.saved(method)
            return "–" if share is None else _percent(share)
        value = self.value(method, name)
        if value is not None:
            return _COLUMNS[name].write(value) if name in _COLUMNS else short(value)
        row = self.rows.get(method)
        return "overflows" if row is not None and row.failure else "–"


class Verdict(NamedTuple):
    """What was counted, in words, and whether that is what was claimed."""

    figure: str
    holds: bool


Judge = Callable[[Measured], Verdict | None]


class Claim(NamedTuple):
    """What a paper says; ``judge`` gives None where a graph or its methods cannot tell."""

    words: str
    reported: str
    judge: Judge


def _ratio(quotient: str, name: str, least: float, most: float = math.inf) -> Judge:
    """Judge by how many times the figure of the second method is in that of the first."""
    one, other = quotient.split(" / ")

    def judge(measured: Measured) -> Verdict | None:
        above, below = measured.value(one, name), measured.value(other, name)
        if above is None or not below:
            return None
        return Verdict(f"{above / below:.3g}x", least < above / below <= most)

    return judge


def _order(methods: list[str]) -> Judge:
    """Judge by whether bytes over PCIe never grow from one method to the next."""

    def judge(measured: Measured) -> Verdict | None:
        counted = [measured.value(method, _PCIE) or 0 for method in methods]
        shown = " ".join(measured.shown(method, _PCIE) for method in methods)
        return Verdict(shown, all(a >= b for a, b in pairwise(counted)))

    return judge


def _expanded(method: str, least: float, most: float = math.inf) -> Judge:
    """Judge by the edges that were expanded; a queue that overflows had to expand more."""

    def judge(measured: Measured) -> Verdict:
        value = measured.value(method, "edge_ratio")
        ratio = math.inf if value is None else value
        return Verdict(measured.shown(method, "edge_ratio"), least < ratio < most)

    return judge


def _compressed(measured: Measured) -> Verdict:
    share = 1 - measured.plan.graph_bytes / (4 * measured.plan.num_edges)
    return Verdict(_percent(-share), share >= 0.37)


def _missed(measured: Measured) -> Verdict | None:
    """Judge by the vertices that the bitmask lets through again, of the edges it should drop."""
    duplicates = measured.value(_MASK, _D)
    if duplicates is None:
        return None
    ideal = measured.plan.num_edges - measured.plan.num_vertices
    return Verdict(f"{duplicates / ideal:.2%}", duplicates / ideal <= 0.064)


def _saved(part: str, share: float) -> Judge:
    """Judge by the share that a part of xbfs has in the sectors it saves, within ten points."""

    def judge(measured: Measured) -> Verdict | None:
        saved = measured.saved(part)
        return None if saved is None else Verdict(_percent(saved), abs(saved - share) <= 0.1)

    return judge


def _percent(share: float) -> str:
    return f"{round(100 * share) or 0}%"  # never -0


_NONE, _MASK = "two-phase:filter=none", "two-phase:filter=mask"
_WARP, _BOTH = "two-phase:filter=mask+warp", "two-phase"
_EVOLUTION = ["v1", "v3.1", "v3.2", "v3.3", "auto"]
CLAIMS = {
    "v3.3": [
        Claim("PCIe never grows: V1, V3.1 … ours", "21,245 … 831 ms", _order(_EVOLUTION)),
        Claim("edges, V3.1 ÷ V3.2", "10x in time", _ratio("v3.1 / v3.2", "edge_ratio", 5)),
        Claim("atomics on the queue, V3.2 ÷ V3.3", "32x", _ratio("v3.2 / v3.3", _QUEUE, 16)),
        Claim("atomics on all arrays", "", _ratio("v3.2 / v3.3", "atomics", 16)),
        Claim("compressed rows", "-37%", _compressed),
        Claim("launches, V3.2 ÷ V3.3", "more than 1", _ratio("v3.2 / v3.3", "launches", 1)),
    ],
    "merrill": [
        Claim("edges expanded without culling", "4.2x on a grid, overflow", _expanded(_NONE, 2)),
        Claim("edges expanded with both culls", "< 1.05x", _expanded(_BOTH, 0, 1.05)),
        Claim("missed by the bitmask, of m - n", "6.4%", _missed),
        Claim(
            "duplicates, without ÷ with warp culling", "10x", _ratio(f"{_MASK} / {_WARP}", _D, 5)
        ),
        Claim("the same for history culling", "5x", _ratio(f"{_WARP} / {_BOTH}", _D, 2.5)),
        Claim(
            "device memory, two-phase ÷ expand-contract",
            "more than 1",
            _ratio("two-phase / expand-contract", _DEVICE, 1),
        ),
        Claim("PCIe, serial gathering ÷ all three", "more than 1", _ratio(_GATHERS, _PCIE, 1)),
    ],
    "xbfs": [
        *(
            Claim(f"part of the gain: {part}", f"{share:g}%", _saved(part, share / 100))
            for part, share in XBFS_SHARES.items()
        ),
        Claim("edges, xbfs ÷ async", "1.3x (1.01 – 2.04)", _ratio(_ASYNC, "edge_ratio", 1, 2.04)),
        Claim("busiest warp, stride ÷ fetch32", "1.6x in time", _ratio(_FETCH, _BUSIEST, 1)),
    ],
    "rtx4070": [
        Claim("edges, simple ÷ gswitch", "3x in time", _ratio(_CHOICE, "edge_ratio", 1.5)),
        Claim("device memory, queue ÷ simple", "3.6 – 50x in time", _ratio(_QUEUED, _DEVICE, 1.8)),
        Claim("launches, scan ÷ queue", "four to one", _ratio("scan / queue", "launches", 2)),
        Claim("busiest warp, gunrock ÷ queue", "6.4x in time", _ratio(_GUNROCK, _BUSIEST, 3.2)),
    ],
    "sei": [
        Claim("PCIe, edge-blocks ÷ harish", "more than 1", _ratio(_BLOCKS, _PCIE, 1)),
    ],
}


def table(paper: str, measured: dict[str, Measured]) -> str:
    """Write what a paper claims, and what each graph says of it; graphs have titles."""
    lines = ["| " + " | ".join(["claim", "paper", *measured]) + " |"]
    lines.append("|" + "---|" * (2 + len(measured)))
    for claim in CLAIMS[paper]:
        cells = [claim.words, claim.reported, *(_cell(claim.judge(m)) for m in measured.values())]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return "–"
    return verdict.figure if verdict.holds else f"**no**: {verdict.figure}"
