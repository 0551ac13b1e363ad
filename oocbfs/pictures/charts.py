"""Panels: bars for amounts, stacks for shares, lines by level, columns, and powers on two axes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from oocbfs.pictures.svg import LETTER, WIDTH, Panel

_VALUE = 86  # what is left free for the value behind a bar
_ROW = 36
_BAR = 13
_PLOT_HEIGHT = 170
_LEFT = 46
# Mean width of a letter of 10 pixels.
_SMALL_LETTER = 5.7
# More levels than this are a line without dots.
_DOTS = 60

# Lines that are wide and grey, behind what is measured.
LOGICAL = "logical"


def short(value: float) -> str:
    """Write an amount in at most five signs."""
    if value == 0:
        return "0"
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= 0.9995 * size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def rounded(value: float) -> str:
    """Write an amount with two digits, or a number below 1,000 as it is."""
    return short(value if value < 1000 else float(f"{value:.2g}"))


def bars(
    title: str,
    values: Mapping[str, float | None],
    *,
    write: Callable[[float], str] = short,
    absent: Mapping[str, str] | None = None,
    kind: str = "c0",
) -> Panel:
    """Draw a bar for each name, which stands above it; None has no bar, but says why."""
    panel = Panel(title)
    most = max((value for value in values.values() if value is not None), default=0) or 1
    for name, value in values.items():
        y = panel.height
        panel.text(0, y + 13, name)
        if value is None:
            panel.text(0, y + 29, (absent or {}).get(name, "–"), "muted")
        else:
            width = (WIDTH - _VALUE) * value / most
            if value:
                panel.bar(0, y + 18, width, _BAR, kind, f"{name}: {value:,.6g}")
            panel.text(width + 6 if value else 0, y + 29, write(value))
        panel.height += _ROW
    return panel


def stacks(
    title: str, shares: Mapping[str, Mapping[str, float]], kinds: Mapping[str, str]
) -> Panel:
    """Draw a bar of full width for each name, cut into its parts; ``kinds`` are their colours."""
    panel = Panel(title)
    used = {part for parts in shares.values() for part, share in parts.items() if share}
    panel.legend((part, kind) for part, kind in kinds.items() if part in used)
    for name, parts in shares.items():
        y = panel.height
        panel.text(0, y + 13, name)
        whole = sum(parts.values()) or 1
        x = 0.0
        for part, kind in kinds.items():
            share = parts.get(part, 0) / whole
            if not share:
                continue
            width = share * WIDTH
            panel.bar(x, y + 18, width - 1.5, _BAR, kind, f"{name}: {part} {share:.1%}")
            x += width
        if not x:
            panel.text(0, y + 29, "–", "muted")
        panel.height += _ROW
    return panel


def lines(
    title: str,
    series: Mapping[str, tuple[str, Sequence[float]]],
    top: float = 0,
    along: str = "level",
) -> Panel:
    """Draw amounts by level on a logarithmic axis; nothing is drawn where nothing was counted.

    ``series`` gives each line its colour: a number, or ``LOGICAL``. The axis reaches ``top``, so
    that panels can be compared.
    """
    panel = Panel(title)
    panel.legend((name, _fill(kind)) for name, (kind, _) in series.items())
    levels = max((len(values) for _, values in series.values()), default=0)
    most = max((max(values, default=0) for _, values in series.values()), default=0)
    bottom, decades = _grid(panel, max(most, top))
    span = WIDTH - _LEFT - 12

    def at(level: int, value: float) -> tuple[float, float]:
        across = _LEFT + 6 + span * level / max(1, levels - 1)
        return across, bottom - _PLOT_HEIGHT * math.log10(max(value, 1)) / decades

    for level in _ticks(levels):
        panel.text(at(level, 1)[0], bottom + 17, str(level), "muted middle")
    panel.text(WIDTH, bottom + 33, along, "muted end")
    for name, (kind, values) in series.items():
        for run in _runs(values):
            points = [at(level, values[level]) for level in run]
            if len(points) > 1:
                panel.line(points, f"s{kind}", name)
            if levels <= _DOTS or len(points) == 1:
                for (x, y), level in zip(points, run, strict=True):
                    hint = f"{name}, {along} {level}: {values[level]:,.0f}"
                    panel.dot(x, y, _fill(kind), hint)
    panel.height = bottom + 38
    return panel


def columns(
    title: str, values: Mapping[str, float], across: str, *, kind: str = "c0", of: float = 0
) -> Panel:
    """Draw a column for each name on a logarithmic axis, which says how high it is.

    Names, and all values, that have no room are left out. ``of`` is the whole, of which hints give
    the share.
    """
    panel = Panel(title)
    panel.height += 10
    bottom, decades = _grid(panel, max(values.values(), default=0))
    step = (WIDTH - _LEFT - 8) / max(1, len(values))
    widest = max((len(name) for name in values), default=1)
    every = max(1, math.ceil((widest * LETTER + 6) / step))
    written = {name: rounded(value) for name, value in values.items()}
    have_room = max(map(len, written.values()), default=0) * _SMALL_LETTER < step
    for number, (name, value) in enumerate(values.items()):
        x = _LEFT + number * step
        if number % every == 0:
            panel.text(x + step / 2, bottom + 17, name, "muted middle")
        if value <= 0:
            continue
        # One is a column, too.
        height = _PLOT_HEIGHT * max(math.log10(value) / decades, 0.012)
        share = f", {value / of:.2%}" if of else ""
        hint = f"{across} {name}: {value:,.0f}{share}"
        panel.bar(x + 0.1 * step, bottom - height, 0.8 * step, height, kind, hint)
        if have_room:
            panel.text(x + step / 2, bottom - height - 4, written[name], "ink middle small")
    panel.text(WIDTH, bottom + 33, across, "muted end")
    panel.height = bottom + 38
    return panel


def powers(
    title: str, series: Mapping[str, tuple[str, Sequence[tuple[float, float]]]], across: str
) -> Panel:
    """Draw points, joined by a line, on two logarithmic axes; both begin at 1."""
    panel = Panel(title)
    if len(series) > 1:
        panel.legend((name, _fill(kind)) for name, (kind, _) in series.items())
    points = [point for _, found in series.values() for point in found]
    bottom, decades = _grid(panel, max((y for _, y in points), default=0))
    right = max((x for x, _ in points), default=0)
    widths = max(1, math.ceil(math.log10(max(right, 2)) - 1e-9))

    def at(x: float, y: float) -> tuple[float, float]:
        along = (WIDTH - _LEFT - 22) * math.log10(max(x, 1)) / widths
        return _LEFT + 6 + along, bottom - _PLOT_HEIGHT * math.log10(max(y, 1)) / decades

    for decade in range(0, widths + 1, 1 if widths <= 6 else 2):
        x = at(10**decade, 1)[0]
        panel.rule(x, bottom - _PLOT_HEIGHT, x, bottom)
        panel.text(x, bottom + 17, short(10**decade), "muted middle")
    panel.text(WIDTH, bottom + 33, across, "muted end")
    for name, (kind, found) in series.items():
        placed = [at(x, y) for x, y in found]
        if len(placed) > 1:
            panel.line(placed, f"s{kind}", name)
        for (x, y), (left, height) in zip(found, placed, strict=True):
            panel.dot(left, height, _fill(kind), f"{across} {x:,.4g}: {short(y)} vertices")
    panel.height = bottom + 38
    return panel


def _grid(panel: Panel, most: float) -> tuple[float, int]:
    """Draw a logarithmic axis from 1 below what is drawn; returns its foot, and its decades."""
    decades = max(1, math.ceil(math.log10(max(most, 2)) - 1e-9))
    bottom = panel.height + 8 + _PLOT_HEIGHT
    for decade in range(0, decades + 1, 1 if decades <= 5 else 2):
        y = bottom - _PLOT_HEIGHT * decade / decades
        panel.rule(_LEFT, y, WIDTH, y)
        panel.text(_LEFT - 6, y + 4, short(10**decade), "muted end")
    return bottom, decades


def _fill(kind: str) -> str:
    return kind if kind == LOGICAL else f"c{kind}"


def _ticks(levels: int) -> list[int]:
    """Choose at most eight levels to be named."""
    step = next(
        size * 10**power
        for power in range(12)
        for size in (1, 2, 5)
        if levels <= 8 * size * 10**power
    )
    return list(range(0, levels, step))


def _runs(values: Sequence[float]) -> list[list[int]]:
    """Return runs of levels in which something was counted: a logarithm has no place for 0."""
    runs: list[list[int]] = [[]]
    for level, value in enumerate(values):
        if value > 0:
            runs[-1].append(level)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
