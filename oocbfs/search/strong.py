"""Strongly connected components: trimming, a search there and back, and what is left in memory.

Vertices that nothing leads to, or that lead nowhere, are components of their own: passes over the
rows find them. The largest component is what a search from a well connected vertex and one on the
graph turned around both reach; they run on any engine. Whatever is left lies outside, mostly in
small pieces: it is trimmed again, copied, and finished by one thread: see
``kernels.components.strong``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs import memory
from oocbfs.arrays import fresh
from oocbfs.engines.choice import Choice
from oocbfs.errors import BudgetError
from oocbfs.formats.io.ordered import available_threads
from oocbfs.graph.passes import pass_over
from oocbfs.kernels.compiling import clock, code_of
from oocbfs.kernels.components import strong as kernels
from oocbfs.kernels.components.connect import ComponentStep
from oocbfs.plan.host import PIECE_BYTES, expect_code
from oocbfs.results.components import ComponentsRun
from oocbfs.search.run import bfs
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph

CODE = tuple(map(code_of, (kernels.trim, kernels.count, kernels.copy, kernels.join)))
# The parts of vertices: not reached from the pivot and not reaching it, one of both, or neither
# known. Part 0 is done.
_ANY, _BEHIND, _BEFORE = 1, 2, 3
# Another pass of trimming is worth it while one finds at least this share of what is left.
_LEAST_GAIN = 1 / 64


def connect_strongly(
    graph: StoredGraph, labels: NDArray[np.uint32], settings: Settings
) -> tuple[ComponentsRun, Choice]:
    """Label every stored vertex with one of its strongly connected component.

    Raises
    ------
    BudgetError
        If the budget has no room for what is left outside the largest component.
    """
    return _Search(graph, labels, settings).run()


class _Search:
    """The steps, one after the other."""

    def __init__(self, graph: StoredGraph, labels: NDArray[np.uint32], settings: Settings) -> None:
        self._graph = graph
        self._labels = labels
        self._settings = settings
        self._threads = available_threads(settings.threads)
        self._parts = np.full(graph.num_vertices, _ANY, np.uint8)
        self._steps: list[ComponentStep] = []
        self._moved: dict[str, int] = {}
        expect_code(graph.path, CODE, settings.memory)
        self._choice = Choice("disk" if settings.engine == "disk" else "cpu")

    def run(self) -> tuple[ComponentsRun, Choice]:
        """Run all steps; return what they did, and which engine searched."""
        start = clock()
        self._labels[:] = np.arange(self._labels.size, dtype=np.uint32)
        if self._labels.size:
            self._trim()
            self._search_around()
            self._trim()
            self._join_rest()
            if self._graph.order is None:
                self._take_smallest()
        engine = self._choice.engine
        run = ComponentsRun(engine, self._threads, self._steps, clock() - start, self._moved)
        return run, self._choice

    def _trim(self) -> None:
        """Trim from both sides until little is found."""
        start, num_bytes = clock(), 0
        left = int(np.count_nonzero(self._parts))
        while left:
            found = 0
            for inward in (False, True):
                trimmed, more_bytes = self._pass(inward, kernels.trim, self._parts)
                found += trimmed
                num_bytes += more_bytes
            left -= found
            if found == 0 or found < left * _LEAST_GAIN:
                break
        self._step("trim", num_bytes, start)

    def _search_around(self) -> None:
        """Search from a well connected vertex and back to it: what both reach is its component."""
        pivot = self._pivot()
        if pivot is None:
            return
        start = clock()
        graph, settings = self._graph, replace(self._settings, progress=False)
        source = graph.ids_of(np.array([pivot]))
        turned = graph.reversed()
        try:
            reached = self._reached(graph, source, settings)
            if "disk_rows" in graph.__dict__:
                graph.share_disk_rows(turned)
            reaching = self._reached(turned, source, settings)
        finally:
            turned.close()
        alive = self._parts != kernels.DONE
        inside = reached & reaching & alive
        self._labels[inside] = pivot
        # Nothing leads from what it reaches to what it does not.
        self._parts[reached & alive] = _BEHIND
        self._parts[reaching & alive] = _BEFORE
        self._parts[inside] = kernels.DONE
        self._step("there and back", 0, start)

    def _pivot(self) -> int | None:
        """Choose the vertex that is most likely in the largest component."""
        best, pivot = 0.0, None
        out_degrees, in_degrees = self._graph.rows.degrees, self._graph.in_rows.degrees
        for first in range(0, self._parts.size, PIECE_BYTES):
            part = slice(first, first + PIECE_BYTES)
            ways = out_degrees[part].astype(np.float64) * in_degrees[part]
            ways[self._parts[part] == kernels.DONE] = 0
            most = int(ways.argmax())
            if ways[most] > best:
                best, pivot = float(ways[most]), first + most
        return pivot

    def _reached(
        self, graph: StoredGraph, source: NDArray[np.uint64], settings: Settings
    ) -> NDArray[np.bool_]:
        """Return which stored vertices a search reaches."""
        found = bfs(graph, source, parents=False, settings=settings)
        stats = found.stats
        self._choice = Choice(stats.engine, stats.fallback, stats.engine_reason)
        for tier, moved in stats.slow_bytes_by_tier.items():
            self._moved[tier] = self._moved.get(tier, 0) + moved
        levels = found.levels
        reached: NDArray[np.bool_] = levels >= 0
        return reached if self._graph.order is None else reached[self._graph.order]

    def _join_rest(self) -> None:
        """Copy what is left without edges between parts, and finish it."""
        start = clock()
        alive = np.flatnonzero(self._parts)
        if not alive.size:
            return
        numbers = np.zeros(self._parts.size, np.uint32)
        numbers[alive] = np.arange(alive.size, dtype=np.uint32)
        self._expect(24 * alive.size)
        firsts = np.zeros(alive.size + 1, np.int64)
        _, counted = self._pass(False, kernels.count, firsts[1:], numbers, self._parts)
        np.cumsum(firsts, out=firsts)
        self._expect(20 * alive.size + 4 * int(firsts[-1]))
        targets = fresh(int(firsts[-1]), np.uint32)
        _, copied = self._pass(False, kernels.copy, targets, firsts, numbers, self._parts)
        labels, stack, path = (fresh(alive.size, np.uint32) for _ in range(3))
        kernels.join(
            labels, np.zeros_like(labels), firsts, targets, firsts[:-1].copy(), stack, path
        )
        self._labels[alive] = alive[labels]
        self._step("rest", counted + copied, start)

    def _expect(self, num_bytes: int) -> None:
        """Refuse to copy what has no room."""
        budget_bytes = self._settings.memory
        needed_bytes = memory.used_bytes() + num_bytes
        if budget_bytes is not None and needed_bytes > budget_bytes:
            raise BudgetError(
                f"{self._graph.path}: finding strong components needs "
                f"{memory.format_size(needed_bytes)} of memory for what is outside the largest, "
                f"and may take {memory.format_size(budget_bytes)}: allow more",
                needed_bytes,
            )

    def _take_smallest(self) -> None:
        """Label with the smallest vertex of each component, where nothing else will."""
        least = np.full(self._labels.size, self._labels.size, np.uint32)
        np.minimum.at(least, self._labels, np.arange(self._labels.size, dtype=np.uint32))
        self._labels[:] = least[self._labels]

    def _pass(self, inward: bool, kernel: Callable[..., Any], *arguments: Any) -> tuple[int, int]:
        """Run a kernel over the rows of vertices that are not done yet."""
        return pass_over(
            self._graph,
            kernel,
            *arguments,
            inward=inward,
            threads=self._threads,
            bounded=self._settings.memory is not None,
            wanted=self._parts,
        )

    def _step(self, name: str, tail_bytes: int, start: float) -> None:
        self._steps.append(ComponentStep(name, 0, tail_bytes, clock() - start))
