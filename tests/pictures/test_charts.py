"""Panels and pictures: what is drawn is what was counted, and any name may be drawn."""

import base64
import math
import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from oocbfs.pictures.charts import LOGICAL, bars, columns, lines, powers, short, stacks
from oocbfs.pictures.degrees import degree_classes, degree_tail
from oocbfs.pictures.svg import WIDTH, Panel, Picture, inline, together, wrap

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


def test_columns_are_as_high_as_their_logarithms() -> None:
    panel = columns("sizes", {"1": 1, "2": 10, ODD: 1000, "none": 0}, "vertices", of=1011)
    bars_drawn = elements(panel, "rect")
    heights = [float(bar.attrib["height"]) for bar in bars_drawn]
    # A decade is a third of the height, and a single one is seen.
    assert heights[1:] == pytest.approx([170 / 3, 170], abs=0.1)
    assert 0 < heights[0] < 3
    assert {"1", "10", "1k", ODD, "vertices"} <= set(words(panel))
    assert "vertices 2: 10, 0.99%" in [bar[0].text for bar in bars_drawn]
    feet = {round(float(bar.attrib["y"]) + float(bar.attrib["height"])) for bar in bars_drawn}
    assert len(feet) == 1


@pytest.mark.parametrize("count", [0, 1, 12, 40, 300])
def test_columns_stay_inside_and_names_apart(count: int) -> None:
    panel = columns("levels", {str(level): 10.0**5 for level in range(count)}, "level")
    for bar in elements(panel, "rect"):
        assert float(bar.attrib["x"]) + float(bar.attrib["width"]) <= WIDTH
    named = [
        (float(text.attrib["x"]), len(text.text or ""))
        for text in elements(panel, "text")
        if text.attrib["class"] == "muted middle"
    ]
    for (x, size), (other, _) in pairwise(named):
        assert other - x > 6 * size
    # Values are written on all columns, or on none.
    values = [t for t in elements(panel, "text") if "small" in t.attrib["class"]]
    assert len(values) in (0, count)


def test_powers_have_two_logarithmic_axes() -> None:
    points = [(1.0, 1000.0), (10.0, 100.0), (100.0, 1.0)]
    panel = powers("degrees", {"one": ("0", points)}, "degree")
    (line,) = elements(panel, "polyline")
    xs, ys = zip(
        *(map(float, point.split(",")) for point in line.attrib["points"].split()), strict=True
    )
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2)
    assert (ys[1] - ys[0]) * 2 == pytest.approx(ys[2] - ys[1], abs=0.2)
    assert powers("nothing", {}, "degree").height > 0


def test_degrees_are_counted_in_classes_and_from_above() -> None:
    histogram = {0: 5, 1: 4, 2: 3, 3: 2, 9: 1}
    assert degree_classes(histogram) == {"0": 5, "1": 4, "2": 5, "4": 0, "8": 1}
    assert degree_tail(histogram) == [(1, 10), (2, 6), (3, 3), (9, 1)]
    assert degree_classes({}) == {}
    assert degree_tail({}) == degree_tail({0: 7}) == []


def test_inline_images_hold_all_they_need() -> None:
    html = inline(ODD, [columns("sizes", {"1": 1}, "vertices")])
    data = re.fullmatch(r'<img alt="[^"<]*" src="data:image/svg\+xml;base64,(.*)">', html)
    assert data
    root = ElementTree.fromstring(base64.b64decode(data[1]))
    assert root.find("svg:style", NS) is not None
