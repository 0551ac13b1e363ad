"""Drawing without a library: panels of one width that a picture or a page puts side by side.

A panel is as wide as a telephone, so that a page can put panels below each other there, and its
letters stay as large as they are. Colours are classes, which one style sheet gives a meaning in
light and in dark.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from html import escape

WIDTH = 380
LETTER = 6.9  # mean width of a letter of 12 pixels
_GAP = 28

# Colours that the colour-blind tell apart, for light and for dark paper.
_LIGHT = ("0072b2", "d55e00", "009e73", "b4588c", "b07d00", "3aa0dc", "7a5bd0", "6b7280")
_DARK = ("4aa3df", "f5813c", "2fbf93", "e08cbc", "e2b33c", "93d1f8", "a994f0", "9aa4b2")
_NEUTRAL = {
    "paper": ("ffffff", "14181d"),
    "ink": ("1c2126", "e8ecf1"),
    "muted": ("5b6570", "a3adb8"),
    "grid": ("dfe4e9", "333b44"),
    "logical": ("c3cbd3", "4c5763"),
}


def style() -> str:
    """Return the rules that all panels share."""
    return (
        "text{font:12px system-ui,-apple-system,'Segoe UI',sans-serif}"
        ".title{font-weight:600;font-size:13px}.heading{font-weight:600;font-size:17px}"
        ".small{font-size:10px}.end{text-anchor:end}.middle{text-anchor:middle}"
        ".line{fill:none;stroke-width:1.8}"
        f"{_colours(0)}@media(prefers-color-scheme:dark){{{_colours(1)}}}"
    )


def _colours(which: int) -> str:
    rules = [f".{name}{{fill:#{pair[which]}}}" for name, pair in _NEUTRAL.items()]
    rules.append(f".rule{{stroke:#{_NEUTRAL['grid'][which]};stroke-width:1}}")
    for number, colour in enumerate((_LIGHT, _DARK)[which]):
        rules.append(f".c{number}{{fill:#{colour}}}.s{number}{{stroke:#{colour}}}")
    logical = _NEUTRAL["logical"][which]
    rules.append(f".slogical{{stroke:#{logical};stroke-width:5;stroke-linejoin:round}}")
    return "".join(rules)


@dataclass
class Panel:
    """One drawing; ``height`` grows with what is put below the rest."""

    title: str
    height: float = 22
    parts: list[str] = field(default_factory=list)

    def text(self, x: float, y: float, words: str, kind: str = "ink") -> None:
        """Write words; ``kind`` is a colour, and ``end`` or ``middle`` for where x is."""
        self.parts.append(f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>')

    def bar(self, x: float, y: float, width: float, height: float, kind: str, hint: str) -> None:
        """Draw a filled bar that says more when it is pointed at."""
        self.parts.append(
            f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" '
            f'height="{height:.1f}" rx="1.5"><title>{escape(hint)}</title></rect>'
        )

    def rule(self, x0: float, y0: float, x1: float, y1: float) -> None:
        """Draw a thin line of the grid."""
        self.parts.append(
            f'<line class="rule" x1="{x0:.1f}" y1="{y0:.1f}" x2="{x1:.1f}" y2="{y1:.1f}"/>'
        )

    def line(self, points: Sequence[tuple[float, float]], kind: str, hint: str) -> None:
        """Draw a line through points."""
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self.parts.append(
            f'<polyline class="line {kind}" points="{path}"><title>{escape(hint)}</title>'
            "</polyline>"
        )

    def dot(self, x: float, y: float, kind: str, hint: str) -> None:
        """Draw a point of a line."""
        self.parts.append(
            f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="2.6">'
            f"<title>{escape(hint)}</title></circle>"
        )

    def legend(self, named: Iterable[tuple[str, str]]) -> None:
        """Name colours below what is drawn so far, on as many lines as that takes."""
        x = 0.0
        self.height += 14
        for name, kind in named:
            width = 16 + LETTER * len(name) + 12
            if x + width > WIDTH and x:
                x = 0.0
                self.height += 17
            self.bar(x, self.height - 9, 10, 10, kind, name)
            self.text(x + 15, self.height, name)
            x += width
        self.height += 10

    def draw(self) -> str:
        """Return the elements, the title first."""
        return f'<text class="ink title" x="0" y="13">{escape(self.title)}</text>' + "".join(
            self.parts
        )

    def alone(self) -> str:
        """Return a drawing for a page that has the style sheet."""
        return (
            f'<svg viewBox="-2 0 {WIDTH + 4} {self.height:.0f}" role="img" '
            f'aria-label="{escape(self.title)}">{self.draw()}</svg>'
        )


@dataclass(frozen=True)
class Picture:
    """Panels that answer one question, a heading, which may be missing, and what they show."""

    heading: str
    caption: str
    panels: list[Panel]


def together(title: str, pictures: Sequence[Picture], columns: int = 3) -> str:
    """Return one file that holds all pictures, below each other, with a title."""
    columns = max(1, min(columns, max((len(p.panels) for p in pictures), default=1)))
    width = columns * (WIDTH + _GAP) + _GAP
    parts: list[str] = []
    y = 44.0 if any(picture.heading for picture in pictures) else 0.0
    for picture in pictures:
        if picture.heading:
            parts.append(_words(picture.heading, y, "ink heading"))
            y += 8
            for line in wrap(picture.caption, (width - 2 * _GAP) / LETTER):
                y += 16
                parts.append(_words(line, y, "muted"))
            y += 20
        for first in range(0, len(picture.panels), columns):
            row = picture.panels[first : first + columns]
            for number, panel in enumerate(row):
                x = _GAP + number * (WIDTH + _GAP)
                parts.append(f'<g transform="translate({x},{y:.0f})">{panel.draw()}</g>')
            y += max(panel.height for panel in row) + _GAP
        y += 20 if picture.heading else 0
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y:.0f}" width="{width}" '
        f'height="{y:.0f}"><title>{escape(title)}</title><style>{style()}</style>'
        f'<rect class="paper" width="100%" height="100%"/>{"".join(parts)}</svg>\n'
    )


def inline(title: str, panels: list[Panel]) -> str:
    """Return panels side by side as an image for a page; neither changes the other's style."""
    drawn = together(title, [Picture("", "", panels)]).encode()
    data = base64.b64encode(drawn).decode()
    return f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{data}">'


def _words(words: str, y: float, kind: str) -> str:
    return f'<text class="{kind}" x="{_GAP}" y="{y:.0f}">{escape(words)}</text>'


def wrap(words: str, letters: float) -> list[str]:
    """Break words into lines of so many letters at most."""
    lines = [""]
    for word in words.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > letters:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines
