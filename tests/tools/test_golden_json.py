"""``--json`` of every verb is as it was; ``tests.support.written.golden_json`` writes it anew."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from oocbfs.cli import VERBS
from tests.support.shared import SharedGraphs
from tests.support.written.golden_json import CASES, find

GOLDEN = Path(__file__).parents[1] / "golden" / "json"
# What they print is about the machine, or for a shell.
_OTHERS = {"doctor", "completion"}

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)


@pytest.fixture(scope="module")
def found(shared_graphs: SharedGraphs) -> dict[str, Any]:
    """All that is printed, by case."""
    everything: dict[str, Any] = shared_graphs.once("golden", find)
    return everything


@pytest.mark.parametrize("case", CASES)
def test_json_is_as_it_was(found: dict[str, Any], case: str) -> None:
    verb = CASES[case][0]
    expected = json.loads((GOLDEN / f"{verb}.json").read_text())
    assert found[case] == expected[case]
    assert list(found[case]) == list(expected[case])


def test_every_verb_has_a_case() -> None:
    assert {words[0] for words in CASES.values()} | _OTHERS == set(VERBS)


def test_counts_say_which_they_are(found: dict[str, Any]) -> None:
    """An undirected edge counts once, and is two arcs; bits are of the whole file."""
    for case, value in found.items():
        if "arcs" in value and "edges" in value:
            once = 1 if "d.ocg" in CASES[case] else 2
            assert value["arcs"] == once * value["edges"], case
        if "bits_per_arc" in value:
            sides = 2 if value["directed"] else 1
            assert value["bits_per_arc"] == 8 * value["file_bytes"] / (sides * value["arcs"]), case
