"""Figures for people to show, by matplotlib, which is the extra ``plot``: one look for all."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from oocbfs.errors import OutputError, QueryError
from oocbfs.formats.output.atomic import atomic_output
from oocbfs.pictures.charts import short

# Colours that the colour-blind tell apart.
BLUE, ORANGE, GREEN, PURPLE, GREY = "#0072b2", "#e07b24", "#009e73", "#8d69b8", "#777777"
LIGHT_BLUE, LIGHT_GREY, INK = "#7fb8da", "#c7c7c7", "#3c454d"
CYCLE = (BLUE, ORANGE, GREEN, "#b4588c", "#b07d00", LIGHT_BLUE, PURPLE, GREY, "#333333", "#c44e52")

_SUFFIXES = (".svg", ".png", ".pdf")
# Points of the picture for each inch, and pixels of a screen that shows two for one.
_DPI, _SHARP_DPI = 100, 200
# More bars than this have no room for their values.
_MOST_VALUES = 24
_STYLE: dict[Any, Any] = {
    "axes.axisbelow": True,  # the grid lies behind the bars
    "axes.edgecolor": "#8a939c",
    "axes.grid": True,
    "axes.grid.which": "major",
    "axes.labelcolor": INK,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "figure.constrained_layout.h_pad": 0.1,
    "figure.constrained_layout.w_pad": 0.1,
    "font.sans-serif": ["DejaVu Sans", "Verdana", "sans-serif"],
    "font.size": 10,
    "grid.color": "#e1e5e9",
    "grid.linewidth": 0.8,
    "legend.frameon": False,
    # Lines of the grid are marks enough.
    "xtick.bottom": False,
    "xtick.color": INK,
    "ytick.color": INK,
    "ytick.left": False,
    # Letters stay letters: a tenth of the size, and the same bytes each time.
    "svg.fonttype": "none",
    "svg.hashsalt": "oocbfs",
}


def check_plot(path: str | os.PathLike[str] | None) -> None:
    """Refuse a plot that cannot be drawn, before any work is done."""
    if path is not None and os.path.splitext(path)[1].lower() not in _SUFFIXES:
        raise OutputError(f"{path}: name the plot {', '.join(_SUFFIXES)}")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise QueryError("plots need matplotlib: pip install 'oocbfs[plot]'") from error


def draw(
    panels: Sequence[Callable[[Any], None]],
    *,
    title: str,
    subtitle: str = "",
    size: tuple[float, float],
    path: str | os.PathLike[str] | None,
    force: bool = False,
) -> Any:
    """Make a figure whose panels, one below the other, are drawn by functions of their axes.

    Returns the figure, which notebooks show; it is written too if a file is named.
    """
    check_plot(path)
    with _style():
        figure = _figure_type()(figsize=size, dpi=_DPI, layout="constrained")
        all_axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
        for axes, panel in zip(all_axes, panels, strict=True):
            panel(axes)
        upper = all_axes[0]
        upper.set_title(title, fontweight="bold", fontsize=13, pad=26 if subtitle else 10)
        places = {"xycoords": "axes fraction", "textcoords": "offset points"}
        upper.annotate(subtitle, (0, 1), (0, 10), **places, fontsize=10.5, color=INK)
    if path is not None:
        with atomic_output(path, force=force) as file:
            _save(figure, file, os.path.splitext(path)[1][1:].lower())
    return figure


def count_by_powers(axes: Any, most: float) -> None:
    """Count upwards in powers of ten, written short; a single one is seen, too."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(numticks=8))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    # Some room above the highest bar is for its value.
    axes.set_ylim(0.7, max(most, 2) * 4)


def write_values(
    axes: Any, bars: Any, values: Sequence[float], write: Callable[[float], str]
) -> None:
    """Write values on bars, while they have room."""
    if len(values) <= _MOST_VALUES:
        labels = [write(value) if value else "" for value in values]
        # On paper of their own, so that no line of the grid goes through them.
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
        for text in axes.bar_label(bars, labels, padding=3, fontsize=8, color=INK):
            if text.get_text():
                text.set_bbox(paper)


def _style() -> AbstractContextManager[None]:
    from matplotlib import rc_context

    style: AbstractContextManager[None] = rc_context(_STYLE)
    return style


def _figure_type() -> type[Any]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        """A figure that shows itself, without pyplot."""

        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            FigureCanvasAgg(self)

        def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
            file = io.BytesIO()
            _save(self, file, "png")
            width, height = self.get_size_inches() * _DPI
            return file.getvalue(), {"width": int(width), "height": int(height)}

    return NotebookFigure


def _save(figure: Any, file: Any, form: str) -> None:
    """Write a figure; the same figure makes the same bytes."""
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(form)
    with _style():
        figure.savefig(file, format=form, dpi=_SHARP_DPI, metadata=undated)
