"""Benchmarks run to their end on tiny graphs; no speed is asserted."""

from pathlib import Path

import pytest

from tests.benchmarks import convert


def test_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert.main(["--scale", "8", "--repeats", "1", "--folder", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "| 512M |" in shown
    assert "MB/s" in shown
    assert not list(tmp_path.iterdir())
