"""Plots of results: levels of a search, levels from many sources, sizes of components."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from oocbfs import plot
from oocbfs.pictures.charts import short
from oocbfs.results.bfs import BfsResult
from oocbfs.results.components import ComponentsResult
from oocbfs.results.levels import STOPPED, Level
from oocbfs.results.panels import count_by_size
from oocbfs.settings import file_name

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored
    from oocbfs.results.source import SourceResult

_COLOURS = {
    "top-down": plot.BLUE,
    "bottom-up": plot.ORANGE,
    "heads": plot.GREEN,
    "heads, top-down": plot.LIGHT_BLUE,
    "split": plot.PURPLE,
    "small": plot.GREY,
    "relax": plot.GREY,
    STOPPED: plot.LIGHT_GREY,
}
# More levels than this are dots.
MOST_BARS = 200
# More sources than this are lines without a name.
_MOST_NAMES = len(plot.CYCLE)
Path = str | os.PathLike[str] | None


def plot_levels(result: BfsResult, path: Path = None, *, force: bool = False) -> Any:
    """Draw frontier, examined edges and slow bytes per level; colours are the directions."""
    levels = list(result.stats.levels)
    amounts = {"vertices in the frontier": [level.frontier for level in levels]}
    if any(level.edges_examined is not None for level in levels):
        amounts["edges examined"] = [level.edges_examined or 0 for level in levels]
    for tier in sorted({tier for level in levels for tier in level.slow_bytes}):
        amounts[f"bytes from {tier}"] = [level.slow_bytes.get(tier, 0) for level in levels]
    panels = [
        _panel(levels, values, label, is_first=number == 0, is_last=number == len(amounts) - 1)
        for number, (label, values) in enumerate(amounts.items())
    ]
    title, _, subtitle = result.title.partition(": ")
    return plot.draw(
        panels,
        title=title,
        subtitle=subtitle,
        size=(9, 1.2 + 1.9 * len(panels)),
        path=path,
        force=force,
    )


def _panel(
    levels: Sequence[Level], values: list[int], label: str, *, is_first: bool, is_last: bool
) -> Callable[[Any], None]:
    def panel(axes: Any) -> None:
        _draw(axes, levels, values)
        axes.set_ylabel(label)
        if is_first:
            _name_directions(axes, levels)
        if is_last:
            count_levels(axes, "level expanded")

    return panel


def _draw(axes: Any, levels: Sequence[Level], values: list[int]) -> None:
    """Draw bars while they can be told apart, dots if there are thousands of levels.

    Levels that ran in one launch share a bar, which is as wide as they are many.
    """
    colours = [_COLOURS[_plain(level.direction)] for level in levels]
    widths = [level.num_levels for level in levels]
    firsts = list(accumulate(widths, initial=0))[:-1]
    if max(values, default=0) > 0:
        plot.count_by_powers(axes, max(values))
    if sum(widths) <= MOST_BARS:
        lefts = [first - 0.4 for first in firsts]
        bars = axes.bar(
            lefts, values, [width - 0.2 for width in widths], color=colours, align="edge"
        )
        plot.write_values(axes, bars, values, short)
    else:
        axes.scatter(firsts, values, c=colours, s=2, rasterized=True)
    axes.grid(visible=False, axis="x")


def _name_directions(axes: Any, levels: Sequence[Level]) -> None:
    """Name the colours beside the bars, if there are several."""
    from matplotlib.patches import Patch

    used = {_plain(level.direction) for level in levels}
    named = [Patch(color=colour, label=name) for name, colour in _COLOURS.items() if name in used]
    if named:
        axes.legend(handles=named, loc="upper left", bbox_to_anchor=(1, 1), title="direction")


def _plain(direction: str) -> str:
    """Return the direction without the way in which a method of the papers went."""
    return direction if direction in _COLOURS else direction.partition(",")[0]


def count_levels(axes: Any, label: str) -> None:
    """Write the numbers of levels or distances below an axis."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.set_xlabel(label)
    axes.xaxis.set_major_locator(MaxNLocator(12, integer=True, min_n_ticks=1, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def plot_components(result: ComponentsResult, path: Path = None, *, force: bool = False) -> Any:
    """Draw how many components there are of each size, in classes that double."""
    classes = count_by_size(result.size_classes())

    def panel(axes: Any) -> None:
        counts = list(classes.values())
        if counts:
            plot.count_by_powers(axes, max(counts))
        bars = axes.bar(range(len(counts)), counts, 0.86, color=plot.BLUE)
        plot.write_values(axes, bars, counts, short)
        every = -(-len(classes) // 17) or 1
        axes.set_xticks(range(0, len(classes), every), list(classes)[::every])
        axes.set_xlabel("vertices of a component")
        axes.set_ylabel("components")
        axes.grid(visible=False, axis="x")

    title, _, subtitle = result.title.partition(": ")
    return plot.draw([panel], title=title, subtitle=subtitle, size=(9, 4.2), path=path, force=force)


def plot_sources(
    graph: AnyStored, results: Sequence[SourceResult], path: Path = None, *, force: bool = False
) -> Any:
    """Draw how many vertices are how far from each source."""

    def panel(axes: Any) -> None:
        most = max((int(result.level_sizes.max()) for result in results), default=0)
        if most:
            plot.count_by_powers(axes, most)
        few = len(results) <= _MOST_NAMES
        for number, result in enumerate(results):
            sizes = result.level_sizes
            axes.plot(
                range(sizes.size),
                sizes,
                marker="o" if sizes.size <= MOST_BARS else None,
                markersize=3.5,
                alpha=1 if few else 0.35,
                color=plot.CYCLE[number] if few else plot.BLUE,
                label=f"from {result.source}",
            )
        if results and few:
            axes.legend(loc="upper left", bbox_to_anchor=(1, 1))
        axes.set_ylabel("vertices")
        count_levels(axes, "distance")

    reached = sorted(result.reached for result in results)
    depths = sorted(result.depth for result in results)
    found = (
        f"{_range(reached)} of {graph.num_vertices:,} vertices reached, depth {_range(depths)}"
        if results
        else ""
    )
    whence = f"{results[0].source}" if len(results) == 1 else f"{len(results):,} sources"
    title = f"{file_name(graph.path)} from {whence}"
    return plot.draw([panel], title=title, subtitle=found, size=(9, 4.2), path=path, force=force)


def _range(ascending: list[int]) -> str:
    first, last = ascending[0], ascending[-1]
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"
