"""Pictures of traversals and components; matplotlib is the extra ``plot``."""

from __future__ import annotations

import os
from typing import Any

from oocbfs.components_result import ComponentsResult
from oocbfs.errors import OutputError, QueryError
from oocbfs.formats.atomic import atomic_output
from oocbfs.result import BfsResult

_COLOURS = {"top-down": "#3b75af", "bottom-up": "#ef8636"}
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
    """Draw frontier, edge work and slow bytes per level, the direction of each marked by its colour."""
    check_plot(path)
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    levels = result.stats.levels
    tiers = sorted({tier for level in levels for tier in level.slow_bytes})
    figure = Figure(figsize=(8, 6 + 2 * len(tiers)), layout="constrained")
    FigureCanvasAgg(figure)
    upper, middle, *others = figure.subplots(2 + len(tiers), 1, sharex=True)
    colours = [_COLOURS.get(level.direction, "#777777") for level in levels]
    _draw(upper, [level.frontier for level in levels], colours, "frontier (vertices)")
    _draw(middle, [level.edges_examined or 0 for level in levels], colours, "edges examined")
    for axes, tier in zip(others, tiers, strict=True):
        moved = [level.slow_bytes.get(tier, 0) for level in levels]
        _draw(axes, moved, colours, f"bytes from {tier}")
    lower = (others or [middle])[-1]
    lower.set_xlabel("level expanded")
    lower.xaxis.set_major_locator(MaxNLocator(integer=True))
    for name, colour in _COLOURS.items():
        upper.bar([0], [0], color=colour, label=name)
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


def _draw(axes: Any, values: list[int], colours: list[str], label: str) -> None:  # noqa: ANN401
    """Bars while they can be told apart, a line of dots when there are thousands of levels."""
    if len(values) <= 200:
        axes.bar(range(len(values)), values, color=colours)
    else:
        axes.scatter(range(len(values)), values, c=colours, s=2)
    if max(values, default=0) > 0:
        axes.set_yscale("log")
    axes.set_ylabel(label)
    axes.grid(axis="y", alpha=0.3)
