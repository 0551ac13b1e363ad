"""Levels as they go by: a bar, and the refusal of graphs that have too many for an exchange."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Self

from oocbfs.errors import QueryError
from oocbfs.progress import make_bar
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.cluster.exchange import Exchange
    from oocbfs.cluster.stored_shards import StoredShards

# After so many levels, what is reached tells how many there will be.
_TELLING_LEVELS = 64
# The most seconds that levels may wait for messages, unless the user forces the search.
_PATIENCE_SECONDS = 10.0


class Terms(NamedTuple):
    """What tells whether a graph is too deep: its vertices with edges, and the cost of a level."""

    path: str
    non_isolated: int
    exchange: str
    level_seconds: float


class Watch:
    """Shows levels on a terminal, and ends a search whose levels would cost more than its work.

    It can be sent to other processes, which then see the same levels and show nothing.
    """

    def __init__(self, terms: Terms, force: bool = False, *, show: bool = False) -> None:
        self._terms, self._force = terms, force
        self._bar = make_bar("levels", None, "level", disable=not show)

    def __reduce__(self) -> tuple[type[Watch], tuple[Terms, bool]]:
        return Watch, (self._terms, self._force)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._bar.close()

    def on_level(self, level: int, sizes: list[int]) -> None:
        """See a level begin, with the sizes of all so far.

        Raises
        ------
        QueryError
            If there are too many levels to come.
        """
        self._bar.update()
        if level != _TELLING_LEVELS or self._force:
            return
        # A frontier that does not grow reaches as much in each level to come.
        terms = self._terms
        left = terms.non_isolated - sum(sizes)
        recent = sum(sizes[-_TELLING_LEVELS // 2 :]) / (_TELLING_LEVELS // 2)
        to_come = left / max(1.0, recent)
        seconds = to_come * terms.level_seconds
        if seconds > _PATIENCE_SECONDS:
            raise QueryError(
                f"{terms.path}: is deep: about {to_come:,.0f} levels are to come, and each "
                f"costs {1000 * terms.level_seconds:.0f} ms on {terms.exchange}, "
                f"{seconds:,.0f} s in all: search it on one machine, or use --force"
            )


def watch_levels(graph: StoredShards, exchange: Exchange, settings: Settings) -> Watch:
    """Return what watches a search of a graph over an exchange."""
    terms = Terms(graph.path, graph.shape.non_isolated, exchange.name, exchange.level_seconds)
    return Watch(terms, force=settings.force, show=settings.progress)
