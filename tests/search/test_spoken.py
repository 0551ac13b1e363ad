"""Messages speak as who reads them: arguments in Python, options on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.errors import OutputError, QueryError, in_shell
from tests.support.command_line import call, said


@pytest.mark.parametrize(
    ("shell", "python"),
    [
        ("use --force to replace it", "use force=True to replace it"),
        ("--no-header if it is an edge", "header=False if it is an edge"),
        ("use --ids names for names", 'use ids="names" for names'),
        ("such as --columns 2,3", 'such as columns="2,3"'),
        ("use --engine cpu, or --resident-tails", 'use engine="cpu", or resident_tails'),
        ("--max-depth is no number", "max_depth is no number"),
        ("run 'oocbfs convert --zstd x' again", "run 'oocbfs convert --zstd x' again"),
        ("a--b, x/--y and --", "a--b, x/--y and --"),
    ],
)
def test_options_and_arguments(shell: str, python: str) -> None:
    assert str(QueryError(shell)) == python
    assert str(OutputError(str(QueryError(shell)))) == python  # however often it is said
    with in_shell():
        assert str(QueryError(shell)) == shell


def test_one_mistake_in_both(tmp_path: Path) -> None:
    (tmp_path / "edges").write_text("1 2\n")
    oocbfs.convert(np.array([[1, 2]]), tmp_path / "g.ocg")
    with pytest.raises(OutputError, match="use force=True"):
        oocbfs.convert(tmp_path / "edges", tmp_path / "g.ocg")
    done = call("convert", tmp_path / "edges", "-o", tmp_path / "g.ocg")
    assert "use --force to replace it" in said(done)[-1]
    with pytest.raises(OutputError, match="use force=True"):
        oocbfs.convert(tmp_path / "edges", tmp_path / "g.ocg")
