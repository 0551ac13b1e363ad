"""What the papers claim, each as a figure that can be counted here, and when it holds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

from oocbfs.ablation.charts import short
from oocbfs.ablation.figures import contributions
from oocbfs.ablation.plan import Plan
from oocbfs.ablation.runs import Row
from oocbfs.ablation.table import COLUMNS

_COLUMNS = {column.name: column for column in COLUMNS}


class Measured:
    """What all methods counted on one graph."""

    def __init__(self, title: str, plan: Plan, rows: list[Row]) -> None:
        self.title = title
        self.plan = plan
        self.rows = {row.method: row for row in rows}

    def value(self, method: str, name: str) -> float | None:
        """Give a figure of a method; None if it did not run, overflowed, or did not count it."""
        row, column = self.rows.get(method), _COLUMNS.get(name)
        if row is None:
            return None
        return row.median(name) if column is None else column.of(row, self.plan)

    def shown(self, method: str, name: str) -> str:
        """Write a figure of a method."""
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


def _quotient(one: str, other: str, name: str, holds: Callable[[float], bool]) -> Judge:
    """Judge by how many times the other's figure is in the one's."""

    def judge(measured: Measured) -> Verdict | None:
        above, below = measured.value(one, name), measured.value(other, name)
        if above is None or not below:
            return None
        return Verdict(f"{above / below:.3g}x", holds(above / below))

    return judge


def _order(methods: list[str], name: str) -> Judge:
    """Judge by whether figures never grow from one method to the next."""

    def judge(measured: Measured) -> Verdict | None:
        values = [measured.value(method, name) for method in methods]
        counted = [value for value in values if value is not None]
        if len(counted) < len(methods):
            return None
        shown = " ".join(measured.shown(method, name) for method in methods)
        return Verdict(shown, all(a >= b for a, b in pairwise(counted)))

    return judge


def _figure(method: str, name: str, holds: Callable[[float], bool], overflow: bool) -> Judge:
    """Judge by a figure; ``overflow`` says whether a queue that overflows is what was claimed."""

    def judge(measured: Measured) -> Verdict | None:
        value = measured.value(method, name)
        if value is not None:
            return Verdict(measured.shown(method, name), holds(value))
        return None if method not in measured.rows else Verdict("overflows", overflow)

    return judge


def _compressed(measured: Measured) -> Verdict:
    share = 1 - measured.plan.graph_bytes / (4 * measured.plan.num_edges)
    return Verdict(f"{-share:+.0%}", share >= 0.37)


def _missed(method: str) -> Judge:
    """Judge by the vertices that a filter lets through once more, of the edges it should drop."""

    def judge(measured: Measured) -> Verdict | None:
        duplicates = measured.value(method, "duplicates")
        if duplicates is None:
            return None
        ideal = measured.plan.num_edges - measured.plan.num_vertices
        return Verdict(f"{duplicates / ideal:.2%}", duplicates / ideal <= 0.064)

    return judge


def _saved(part: str, share: float) -> Judge:
    """Judge by the share that a part of xbfs has in the sectors it saves, within ten points."""

    def judge(measured: Measured) -> Verdict | None:
        saved = contributions(measured.rows["xbfs"], measured.rows["single-scan"])
        whole = sum(saved.values())
        if not whole:
            return None
        return Verdict(f"{saved[part] / whole:.0%}", abs(saved[part] / whole - share) <= 0.1)

    return judge


CLAIMS = {
    "v3.3": [
        Claim(
            "each version moves no more than the one before, ours least",
            "21,245 … 831 ms",
            _order(["v1", "v3.1", "v3.2", "v3.3", "auto"], "pcie_share"),
        ),
        Claim(
            "going bottom-up skips most edges: V3.1 ÷ V3.2",
            "10x in time",
            _quotient("v3.1", "v3.2", "edge_ratio", lambda ratio: ratio >= 2),
        ),
        Claim(
            "warps aggregate atomics at the end of the queue: V3.2 ÷ V3.3",
            "32x",
            _quotient("v3.2", "v3.3", "atomics.words", lambda ratio: ratio >= 16),
        ),
        Claim(
            "the same, on all arrays",
            "",
            _quotient("v3.2", "v3.3", "atomics", lambda ratio: ratio >= 16),
        ),
        Claim("delta-varint rows are smaller than plain ones", "-37%", _compressed),
        Claim(
            "no pass over all vertices: device memory, V3.2 ÷ V3.3",
            "100 – 150 ms a level",
            _quotient("v3.2", "v3.3", "device_bytes", lambda ratio: ratio > 1),
        ),
    ],
    "merrill": [
        Claim(
            "without culling, edges are expanded again and again",
            "4.2x on a grid, overflow on Kronecker",
            _figure("two-phase:filter=none", "edge_ratio", lambda x: x > 2, overflow=True),
        ),
        Claim(
            "with both culls they are not",
            "< 1.05x",
            _figure("two-phase", "edge_ratio", lambda x: x < 1.05, overflow=False),
        ),
        Claim("what the bitmask misses, of m - n", "6.4%", _missed("two-phase:filter=mask")),
        Claim(
            "warp culling leaves a tenth of it",
            "10x",
            _quotient(
                "two-phase:filter=mask",
                "two-phase:filter=mask+warp",
                "duplicates",
                lambda ratio: ratio >= 10,
            ),
        ),
        Claim(
            "history culling a fifth of the rest",
            "5x",
            _quotient(
                "two-phase:filter=mask+warp", "two-phase", "duplicates", lambda ratio: ratio >= 5
            ),
        ),
        Claim(
            "one kernel moves less device memory than two",
            "(5n + 4m) ÷ (5n + 2m)",
            _quotient("two-phase", "expand-contract", "device_bytes", lambda ratio: ratio > 1),
        ),
        Claim(
            "scan, warp and block gather evenly: busiest warp, serial ÷ all",
            "dramatic over-fetch",
            _quotient("two-phase:gather=serial", "two-phase", "warp_imbalance", lambda x: x > 1),
        ),
    ],
    "xbfs": [
        Claim("part of the gain: scan-free", "18%", _saved("scan-free", 0.18)),
        Claim("single-scan", "15.7%", _saved("single-scan", 0.157)),
        Claim("no-queue", "11.4%", _saved("no-queue", 0.114)),
        Claim("double-scan", "54.9%", _saved("double-scan", 0.549)),
        Claim(
            "asynchronous bottom-up saves edge checks: xbfs ÷ async",
            "1.3x (1.01 … 2.04)",
            _quotient("xbfs", "async", "edge_ratio", lambda ratio: 1.01 <= ratio <= 2.04),
        ),
        Claim(
            "fetching evens out warps: busiest, stride ÷ fetch32",
            "1.6x in time",
            _quotient("xbfs:balance=stride", "xbfs", "warp_imbalance", lambda ratio: ratio > 1),
        ),
    ],
    "rtx4070": [
        Claim(
            "choosing pays: edges, simple ÷ gswitch",
            "3x on orkut, 0.8x on a road",
            _quotient("simple", "gswitch", "edge_ratio", lambda ratio: ratio > 1),
        ),
        Claim(
            "a queue costs atomics that flags do not: device memory, queue ÷ simple",
            "50x in time on orkut",
            _quotient("queue", "simple", "device_bytes", lambda ratio: ratio > 1),
        ),
        Claim(
            "scans take more launches than a queue",
            "four kernels a level",
            _quotient("scan", "queue", "launches", lambda ratio: ratio > 1),
        ),
    ],
    "sei": [
        Claim(
            "out of core, what is moved decides: PCIe, edge-blocks ÷ harish",
            "well below the trend",
            _quotient("edge-blocks", "harish", "pcie_share", lambda ratio: ratio > 1),
        ),
    ],
}


def table(paper: str, measured: dict[str, Measured]) -> str:
    """Write what a paper claims, and what each graph says of it."""
    graphs = [one.title for one in measured.values()]
    lines = ["| " + " | ".join(["claim", "paper", *graphs]) + " |"]
    lines.append("|" + "---|" * (2 + len(graphs)))
    for claim in CLAIMS[paper]:
        cells = [claim.words, claim.reported, *(_cell(claim.judge(m)) for m in measured.values())]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(verdict: Verdict | None) -> str:
    if verdict is None:
        return "–"
    return verdict.figure if verdict.holds else f"**no**: {verdict.figure}"
