"""Tests that guard sources run when these have changed, and are found by their names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import guarded
from tests.support.guarded import GROUPS, Group


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A tree with one guarded source, whose test is recorded as passed."""
    for name in ("kernels/a.cu", "kernels/b.py", "tests/test_a.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "tests" / "golden").mkdir()
    monkeypatch.setattr(guarded, "ROOT", tmp_path)
    monkeypatch.setattr(guarded, "RECORD", tmp_path / "tests" / "golden" / "guarded.json")
    monkeypatch.setattr(guarded, "GROUPS", {"a": Group(("kernels/*.cu",), ("tests/test_a.py",))})
    monkeypatch.setattr(guarded, "ALL", False)
    monkeypatch.setattr(guarded, "ALONE", False)
    guarded.is_guarding.cache_clear()
    yield tmp_path
    guarded.is_guarding.cache_clear()


def is_wanted(name: str) -> bool:
    guarded.is_guarding.cache_clear()
    return guarded.is_wanted(name)


def test_a_test_comes_back_when_its_sources_change(tree: Path) -> None:
    name = "tests/test_a.py::test_one[3]"
    assert is_wanted(name)  # nobody has seen it pass
    guarded.record()
    assert not is_wanted(name)
    assert is_wanted("tests/test_b.py::test_one")
    (tree / "kernels" / "b.py").write_text("changed")
    assert not is_wanted(name)
    (tree / "kernels" / "a.cu").write_text("changed")
    assert is_wanted(name)
    guarded.record()
    assert not is_wanted(name)
    (tree / "tests" / "test_a.py").write_text("a better test")
    assert is_wanted(name)


def test_a_group_with_a_failed_test_is_not_recorded(tree: Path) -> None:
    guarded.record(["tests/test_a.py::test_two"])
    assert is_wanted("tests/test_a.py::test_one")
    guarded.record(["tests/test_b.py::test_two"])
    assert not is_wanted("tests/test_a.py::test_one")


def test_a_source_that_is_new_or_renamed_is_a_change(tree: Path) -> None:
    guarded.record()
    (tree / "kernels" / "a.cu").rename(tree / "kernels" / "c.cu")
    assert is_wanted("tests/test_a.py")
    guarded.record()
    (tree / "kernels" / "d.cu").write_text("")
    assert is_wanted("tests/test_a.py")


def test_patterns_that_find_nothing_are_refused(tree: Path) -> None:
    (tree / "kernels" / "a.cu").unlink()
    with pytest.raises(AssertionError, match=r"kernels/\*\.cu is guarded"):
        guarded.record()


def test_every_group_names_sources_and_tests_that_exist() -> None:
    for group in GROUPS.values():
        assert len(guarded.digest(group)) == 64
        for name in group.tests:
            module, _, test = name.partition("::")
            text = (guarded.ROOT / module).read_text()
            assert not test or f"def {test}" in text, f"{name}: there is no such test"


def test_the_record_is_of_these_groups() -> None:
    if guarded.RECORD.exists():
        assert set(json.loads(guarded.RECORD.read_text())) <= set(GROUPS)
