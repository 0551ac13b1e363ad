"""The plot of a distribution of distances, with its interval."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from oocbfs import plot
from oocbfs.results.plots import MOST_BARS, count_levels

if TYPE_CHECKING:
    from oocbfs.distances.distribution import DistanceDistribution


def plot_distribution(
    found: DistanceDistribution, path: str | os.PathLike[str] | None = None, *, force: bool = False
) -> Any:
    """Draw the share of pairs at each distance, and within it with its interval."""
    distances = range(1, found.depth + 1)

    def at(axes: Any) -> None:
        shares = found.shares[1:] - found.shares[:-1]
        if len(distances) <= MOST_BARS:
            axes.bar(distances, shares, 0.86, color=plot.BLUE)
        else:
            axes.plot(distances, shares, color=plot.BLUE)
        axes.set_ylabel("share of pairs at it")
        axes.grid(visible=False, axis="x")

    def within(axes: Any) -> None:
        axes.plot(distances, found.shares[1:], color=plot.BLUE, label=found.certainty)
        if not found.is_exact:
            axes.fill_between(
                distances, found.low[1:], found.high[1:], color=plot.BLUE, alpha=0.2, lw=0
            )
        axes.set_ylim(0, 1.02)
        axes.legend(loc="lower right")
        axes.set_ylabel("share of pairs within")
        count_levels(axes, "distance")

    title, _, subtitle = found.title.partition(": ")
    return plot.draw(
        [at, within], title=title, subtitle=subtitle, size=(9, 5.4), path=path, force=force
    )
