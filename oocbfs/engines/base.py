"""What an engine is: it says in one line why it cannot answer, what it needs, and it runs.

An engine is given a ``Query`` in stored vertices and an ``Output`` to fill, and returns a ``Run``.
Ids, names, validation and the result that users see are none of its business: ``search.run`` takes
a query through every engine in the same way.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.plan.host import MemoryPlan, unbounded_plan
from oocbfs.query import Output, Query, Run
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.results.components import ComponentsRun


class ReachesTooMuch(Exception):  # noqa: N818 - nothing is wrong
    """An engine for small reaches has found out that this one is none: another has to search."""


class Engine(ABC):
    """A place where searches run."""

    def __init__(self, name: str) -> None:
        self.name = name

    def settle(self, settings: Settings) -> Settings:
        """Return the settings with what this engine takes for granted."""
        return settings

    def refusal(self, graph: Any, settings: Settings) -> str | None:
        """Return why this cannot be answered here, in one line; None if it can."""
        return None

    def needs(self, graph: Any, settings: Settings) -> MemoryPlan:
        """Return what a search takes of which memory, before anything moves.

        Raises
        ------
        BudgetError
            If that is more than it may take; says how much would do.
        """
        graph.expect_unpacking()
        return unbounded_plan(graph, self.name)

    @abstractmethod
    def run(self, graph: Any, query: Query, out: Output, settings: Settings) -> Run:
        """Search from one source, or from the nearest of several."""

    def connect(self, graph: Any, labels: NDArray[np.uint32], settings: Settings) -> ComponentsRun:
        """Label every stored vertex with one of its component.

        Raises
        ------
        QueryError
            If this engine finds none.
        """
        raise QueryError(
            "components are found on the CPU, from disk or on one GPU: leave out devices and method"
        )

    def open_many(self, graph: Any, settings: Settings, *, with_levels: bool) -> Any:
        """Bring a graph to a device, for searches from many sources; None where there is none."""
        return None
