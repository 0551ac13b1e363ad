"""Panels of three kinds: bars for amounts, stacks for shares, lines by level."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from oocbfs.ablation.svg import WIDTH, Panel

_VALUE = 86  # what is left free for the value behind a bar
_ROW = 36
_BAR = 13
_PLOT_HEIGHT = 170
_LEFT = 46
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


def lines(title: str, series: Mapping[str, tuple[str, Sequence[float]]]) -> Panel:
    """Draw amounts by level on a logarithmic axis; nothing is drawn where nothing was counted.

    ``series`` gives each line its colour: a number, or ``LOGICAL``.
    """
    panel = Panel(title)
    panel.legend((name, _fill(kind)) for name, (kind, _) in series.items())
    levels = max((len(values) for _, values in series.values()), default=0)
    most = max((max(values, default=0) for _, values in series.values()), default=0)
    decades = max(1, math.ceil(math.log10(max(most, 2))))
    bottom = panel.height + 8 + _PLOT_HEIGHT
    every = 1 if decades <= 5 else 2
    for decade in range(0, decades + 1, every):
        y = bottom - _PLOT_HEIGHT * decade / decades
        panel.rule(_LEFT, y, WIDTH, y)
        panel.text(_LEFT - 6, y + 4, short(10**decade), "muted end")
    span = WIDTH - _LEFT - 12

    def at(level: int, value: float) -> tuple[float, float]:
        across = _LEFT + 6 + span * level / max(1, levels - 1)
        return across, bottom - _PLOT_HEIGHT * math.log10(max(value, 1)) / decades

    for level in _ticks(levels):
        panel.text(at(level, 1)[0], bottom + 17, str(level), "muted middle")
    panel.text(WIDTH, bottom + 33, "level", "muted end")
    for name, (kind, values) in series.items():
        for run in _runs(values):
            points = [at(level, values[level]) for level in run]
            if len(points) > 1:
                panel.line(points, f"s{kind}", name)
            if levels <= _DOTS or len(points) == 1:
                for (x, y), level in zip(points, run, strict=True):
                    hint = f"{name}, level {level}: {values[level]:,.0f}"
                    panel.dot(x, y, _fill(kind), hint)
    panel.height = bottom + 38
    return panel


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
    """Give stretches of levels in which something was counted: a logarithm has no place for 0."""
    runs: list[list[int]] = [[]]
    for level, value in enumerate(values):
        if value > 0:
            runs[-1].append(level)
        elif runs[-1]:
            runs.append([])
    return [run for run in runs if run]
