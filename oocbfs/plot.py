"""Pictures of traversals and components; matplotlib is the extra ``plot``."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from oocbfs.errors import OutputError, QueryError
from oocbfs.formats.output.atomic import atomic_output
from oocbfs.results.bfs import STOPPED, BfsResult, Level
from oocbfs.results.components import ComponentsResult

_COLOURS = {
    "top-down": "#3b75af",
    "bottom-up": "#ef8636",
    "heads": "#519e3e",
    "heads, top-down": "#86b4d8",
    "split": "#8d69b8",
    "small": "#777777",
    STOPPED: "#c7c7c7",
}
_SUFFIXES = (".svg", ".png", ".pdf")


def check_plot(path: str | os.PathLike[str]) -> None:
    """Refuse a plot that cannot be drawn, before any work is done."""
    if os.path.splitext(path)[1].lower() not in _SUFFIXES:
        raise OutputError(f"{path}: name the plot {', '.join(_SUFFIXES)}")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise QueryError("plots need matplotlib: pip install 'oocbfs[plot]'") from error


def plot_levels(result: BfsResult, path: str | os.PathLike[str], *, force: bool = False) -> None:
    """Draw frontier, examined edges and slow bytes per level; colours are the directions."""
    check_plot(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    levels = result.stats.levels
    panels = {"frontier (vertices)": [level.frontier for level in levels]}
    if any(level.edges_examined is not None for level in levels):
        panels["edges examined"] = [level.edges_examined or 0 for level in levels]
    for tier in sorted({tier for level in levels for tier in level.slow_bytes}):
        panels[f"bytes from {tier}"] = [level.slow_bytes.get(tier, 0) for level in levels]
    figure = Figure(figsize=(8, 2 + 2 * len(panels)), layout="constrained")
    FigureCanvasAgg(figure)
    all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axes, (label, values) in zip(all_axes, panels.items(), strict=True):
        _draw(axes, levels, values, label)
    upper, lower = all_axes[0], all_axes[-1]
    lower.set_xlabel("level expanded")
    lower.xaxis.set_major_locator(MaxNLocator(integer=True))
    for name, colour in _COLOURS.items():
        if any(level.direction == name for level in levels):
            upper.bar([0], [0], color=colour, label=name)
    if levels:
        upper.legend()
    upper.set_title(
        f"{os.path.basename(result.graph.path)} from {result.sources[0]}"
        f"{' and others' if len(result.sources) > 1 else ''}: "
        f"{result.reached:,} of {result.graph.num_vertices:,} vertices, depth {result.depth}, "
        f"{result.stats.seconds * 1e3:,.1f} ms"
    )
    _save(figure, path, force=force)


def plot_components(
    result: ComponentsResult, path: str | os.PathLike[str], *, force: bool = False
) -> None:
    """Draw how many components there are of each size."""
    check_plot(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    axes.scatter(list(result.histogram), list(result.histogram.values()), s=12, color="#3b75af")
    if result.histogram:  # nothing has no logarithm
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_xlabel("size (vertices)")
    axes.set_ylabel("components")
    axes.grid(alpha=0.3)
    n, giant = result.graph.num_vertices, result.giant
    axes.set_title(
        f"{os.path.basename(result.graph.path)}: {result.num_components:,} components, "
        f"{0 if giant is None else giant.size / n:.1%} of {n:,} vertices in the largest"
    )
    _save(figure, path, force=force)


def _save(figure: Any, path: str | os.PathLike[str], *, force: bool) -> None:  # noqa: ANN401
    """Write a figure in the form that its name says."""
    with atomic_output(path, force=force) as file:
        figure.savefig(file, format=os.path.splitext(path)[1][1:].lower(), dpi=120)


def _draw(
    axes: Any,  # noqa: ANN401
    levels: Sequence[Level],
    values: list[int],
    label: str,
) -> None:
    """Draw bars while they can be told apart, dots if there are thousands of levels.

    Levels that ran in one launch share a bar, which is as wide as they are many.
    """
    colours = [_COLOURS[level.direction] for level in levels]
    widths = [level.num_levels for level in levels]
    firsts = list(accumulate(widths, initial=0))[:-1]
    if sum(widths) <= 200:
        lefts = [first - 0.4 for first in firsts]
        axes.bar(lefts, values, [width - 0.2 for width in widths], color=colours, align="edge")
    else:
        axes.scatter(firsts, values, c=colours, s=2)
    if max(values, default=0) > 0:
        axes.set_yscale("log")
    axes.set_ylabel(label)
    axes.grid(axis="y", alpha=0.3)
