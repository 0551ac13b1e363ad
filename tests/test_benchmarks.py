"""Benchmarks run to their end on tiny graphs; no speed is asserted."""

from pathlib import Path

import pytest

from tests.benchmarks import bfs, convert


def test_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert.main(["--scale", "8", "--repeats", "1", "--folder", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "| 512M |" in shown
    assert "MB/s" in shown
    assert not list(tmp_path.iterdir())


def test_bfs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    arguments = (
        "--scale 9 --side 12 --graphs kron,uniform,grid2d --peers scipy --sources 3 --rounds 1"
    )
    plot = tmp_path / "ratios.png"
    bfs.main([*arguments.split(), "--plot", str(plot), "--folder", str(tmp_path)])
    shown = capsys.readouterr().out
    assert shown.count("| scipy |") == 3
    assert plot.stat().st_size > 1000
    assert list(tmp_path.iterdir()) == [plot]
