"""Compressed graphs take memory when used: it is told, and refused where it does not fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import oocbfs
from oocbfs.cli import main
from oocbfs.errors import BudgetError
from oocbfs.formats.container.layout import MAX_VERTICES
from oocbfs.memory import available_bytes, peak_bytes
from tests.support.crafting import write_archive

# Degrees, heads and starts.
BYTES_A_VERTEX = 12
VERBS = (
    ("verify",),
    ("export", "-o", "x.txt"),
    ("bfs", "--source", "0"),
    ("components",),
    ("batch", "--all-hubs", "1", "-o", "out"),
    ("plan",),
)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archives") / "small.ocg"
    write_archive(path, 1 << 20)
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some megabytes that take twice the memory there is."""
    num_vertices = min(MAX_VERTICES, 2 * available_bytes() // BYTES_A_VERTEX)
    if BYTES_A_VERTEX * num_vertices < available_bytes():
        pytest.skip("no graph is too large for this machine")
    path = tmp_path_factory.mktemp("archives") / "large.ocg"
    write_archive(path, num_vertices)
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where outputs without a folder go."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def call(path: Path, verb: str, *rest: str) -> int:
    return main([verb, str(path), *rest])


def refusal(path: Path, capfd: pytest.CaptureFixture[str], *words: str, at_most: int) -> str:
    """Return the one line with which a graph is refused, before this takes more memory."""
    before = peak_bytes()
    assert call(path, *words) == 1
    (line,) = (said for said in capfd.readouterr().err.splitlines() if "compiling" not in said)
    assert peak_bytes() - before < at_most
    return line


def test_the_archive_is_a_sound_graph(small: Path) -> None:
    assert call(small, "verify") == 0
    with oocbfs.open(small) as graph:
        assert graph.bfs(7).reached == 1


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_how_much_is_said_once(
    small: Path, capfd: pytest.CaptureFixture[str], verb: tuple[str, ...]
) -> None:
    assert call(small, *verb) == 0
    assert capfd.readouterr().err.count(f"unpacking {small}: 12.0 MB of memory") == 1


def test_info_says_how_much_without_taking_it(
    small: Path, large: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call(small, "info") == 0
    assert "12.0 MB once unpacked" in capfd.readouterr().out
    assert call(large, "info", "--json") == 0
    assert json.loads(capfd.readouterr().out)["unpacked_bytes"] > available_bytes()


@pytest.mark.parametrize("verb", VERBS, ids=lambda verb: verb[0])
def test_more_than_the_machine_has_is_refused_before_it_is_taken(
    large: Path, here: Path, capfd: pytest.CaptureFixture[str], verb: tuple[str, ...]
) -> None:
    assert "of memory unpacked, and" in refusal(large, capfd, *verb, at_most=1 << 30)
    assert list(here.iterdir()) == []


@pytest.mark.parametrize(
    "verb", [verb for verb in VERBS if verb[0] in ("bfs", "components", "batch")]
)
def test_more_than_the_budget_is_refused_before_it_is_taken(
    here: Path, capfd: pytest.CaptureFixture[str], verb: tuple[str, ...]
) -> None:
    path = here / "g.ocg"
    write_archive(path, 1 << 27)  # 1.5 GB
    line = refusal(path, capfd, *verb, "--memory", "1G", at_most=256 << 20)
    assert "of memory unpacked" in line


def test_from_python(large: Path) -> None:
    with oocbfs.open(large) as graph, pytest.raises(BudgetError, match="of memory unpacked"):
        graph.degree(0)
