"""Decide on a traversal and on the search for its source, if that takes one, before any work."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from oocbfs.errors import BudgetError
from oocbfs.plan.host import Division
from oocbfs.search import bfs, components
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph


def decide(
    graph: StoredGraph, *, from_largest: bool, parents: bool, settings: Settings
) -> list[Division]:
    """Give the division of each search, that of the traversal last.

    Raises
    ------
    BudgetError
        If one of them does not fit; says how much is enough for both.
    """
    searches: list[Callable[[], Division]] = [lambda: bfs.decide(graph, parents, settings)]
    if from_largest:
        searches.insert(0, lambda: components.decide(graph, settings.for_largest()))
    divisions, errors = [], []
    for search in searches:
        try:
            divisions.append(search())
        except BudgetError as error:
            errors.append(error)
    if errors:
        raise max(errors, key=lambda error: error.needed_bytes or 0)
    return divisions
