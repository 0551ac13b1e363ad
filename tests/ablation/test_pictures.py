"""Panels and pictures: what is drawn is what was counted, and any name may be drawn."""

import math
import re
from xml.etree import ElementTree

import pytest

from oocbfs.ablation.charts import LOGICAL, bars, lines, short, stacks
from oocbfs.ablation.svg import WIDTH, Panel, Picture, together, wrap

ODD = 'a<b>&"c"'
NS = {"svg": "http://www.w3.org/2000/svg"}


def elements(panel: Panel, name: str) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(f"<svg>{panel.draw()}</svg>")
    return root.findall(f".//{name}")


def words(panel: Panel) -> list[str]:
    return [element.text or "" for element in elements(panel, "text")]


def test_bars_are_as_long_as_their_values() -> None:
    panel = bars("bytes", {"one": 10.0, ODD: 40.0, "none": None}, absent={"none": "overflows"})
    widths = [float(bar.attrib["width"]) for bar in elements(panel, "rect")]
    assert widths[0] * 4 == pytest.approx(widths[1], rel=0.01)
    assert max(widths) < WIDTH
    assert {"bytes", "one", ODD, "40", "overflows"} <= set(words(panel))


def test_bars_of_nothing_are_drawn_too() -> None:
    panel = bars("bytes", {"one": 0.0})
    assert "0" in words(panel)


def test_stacks_fill_the_width() -> None:
    kinds = {"top-down": "c0", "bottom-up": "c1", "never": "c2"}
    shares = {"x": {"top-down": 3.0, "bottom-up": 1.0}, "nothing": {}}
    panel = stacks("levels", shares, kinds)
    bars_drawn = [bar for bar in elements(panel, "rect") if float(bar.attrib["width"]) > 20]
    assert [round(float(bar.attrib["width"])) for bar in bars_drawn] == [
        round(WIDTH * share - 1.5) for share in (0.75, 0.25)
    ]
    assert "never" not in words(panel)
    assert "–" in words(panel)


def test_lines_leave_out_what_has_no_logarithm() -> None:
    panel = lines("frontier", {"real": ("1", [1, 100, 0, 10]), "ideal": (LOGICAL, [1, 10, 5, 1])})
    drawn = [line.attrib["points"].split() for line in elements(panel, "polyline")]
    assert [len(points) for points in drawn] == [2, 4]
    heights = [float(point.split(",")[1]) for point in drawn[0]]
    # From 1 to 100 is the whole height of two decades.
    assert heights[0] - heights[1] == pytest.approx(170)
    assert len(elements(panel, "circle")) == 7


@pytest.mark.parametrize("levels", [0, 1, 9, 61, 5000])
def test_any_number_of_levels_can_be_drawn(levels: int) -> None:
    panel = lines("frontier", {"real": ("1", [7.0] * levels)})
    named = [text for text in words(panel) if text.isdigit() and text not in ("1", "10")]
    assert len(named) <= 9
    assert not any("nan" in part or "inf" in part for part in panel.parts)


def test_a_picture_is_one_well_formed_file() -> None:
    panels = [bars(ODD, {ODD: value}) for value in (1.0, 2.0, 3.0, 4.0)]
    text = together(ODD, [Picture(ODD, "What it shows. " * 30, panels), Picture("b", "", [])])
    root = ElementTree.fromstring(text)
    height = float(root.attrib["height"])
    moved = [group.attrib["transform"] for group in root.findall("svg:g", NS)]
    places = [tuple(map(float, re.findall(r"[\d.]+", move))) for move in moved]
    assert len(set(places)) == 4
    for (_, y), panel in zip(places, panels, strict=True):
        assert y + panel.height <= height
    assert "prefers-color-scheme:dark" in text
    assert "http" not in text.replace(NS["svg"], "")


def test_short_numbers() -> None:
    for value in (0, 1, 12.34, 999, 999.6, 1000, 123456, 999_999, 1e6, 123456789, 5e9):
        text = short(value)
        assert len(text) <= 5, text
        size = {"k": 1e3, "M": 1e6, "G": 1e9}.get(text[-1], 1)
        assert math.isclose(float(text.rstrip("kMG")) * size, value, rel_tol=0.006)


def test_words_are_wrapped() -> None:
    assert wrap("one two three", 7) == ["one two", "three"]
    assert wrap("", 7) == [""]
    assert " ".join(wrap("a bb ccccccccccc d", 4)) == "a bb ccccccccccc d"
