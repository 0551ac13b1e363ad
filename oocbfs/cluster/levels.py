"""Levels as they go by: a bar, and the refusal of graphs that have too many for an exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from oocbfs.cluster.driver import Outcome
from oocbfs.cluster.exchange import Exchange
from oocbfs.errors import QueryError
from oocbfs.progress import make_bar

if TYPE_CHECKING:
    from oocbfs.cluster.graph import ShardedGraph

# After so many levels, what is reached tells how many there will be.
_TELLING_LEVELS = 64
# So long may the levels of a search take, besides computing, if nobody forces it.
_PATIENCE_SECONDS = 10.0


class Watch:
    """Shows levels on a terminal, and ends a search whose levels would cost more than its work."""

    def __init__(self, graph: ShardedGraph, exchange: Exchange, *, show: bool, force: bool) -> None:
        self._graph, self._exchange, self._force = graph, exchange, force
        self._bar = make_bar("levels", None, "level", disable=None if show else True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def on_level(self, level: int, outcome: Outcome) -> None:
        """See a level begin.

        Raises
        ------
        QueryError
            If there are too many levels to come.
        """
        self._bar.update()
        self._bar.set_postfix(frontier=outcome.sizes[-1], refresh=False)
        if level != _TELLING_LEVELS or self._force:
            return
        # A frontier that does not grow reaches as much in each level to come.
        left = self._graph.shape.connected - sum(outcome.sizes)
        recent = sum(outcome.sizes[-_TELLING_LEVELS // 2 :]) / (_TELLING_LEVELS // 2)
        to_come = left / max(1.0, recent)
        seconds = to_come * self._exchange.level_seconds
        if seconds > _PATIENCE_SECONDS:
            raise QueryError(
                f"{self._graph.path}: is deep: about {to_come:,.0f} levels are to come, and each "
                f"costs {1000 * self._exchange.level_seconds:.0f} ms on {self._exchange.name}, "
                f"{seconds:,.0f} s in all: search it on one machine, or use --force"
            )
