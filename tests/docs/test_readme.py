"""The README's blocks, run in their order in an empty folder, as somebody would who reads it."""

from __future__ import annotations

import re
import runpy
import shlex
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from oocbfs.cli import main

README = Path(__file__).parents[2] / "README.md"
# Blocks that cannot run here say why in the line above.
MARK = re.compile(r"<!-- not run by tests/docs/test_readme.py: (.+) -->")
# The same commands on less.
SMALLER = {
    "kron --scale 18": "kron --scale 10",
    "kron --scale 20": "kron --scale 8",
    "graph500 --scale 16": "graph500 --scale 8 --roots 4",
    "--vertices 1000000": "--vertices 6000",
    "--rows 2000 --columns 2000": "--rows 20 --columns 20",
    "--random 1000": "--random 70",
    "random = 1000": "random = 70",
}
# What some lines need beyond a plain installation.
NEEDS = {
    "--plot": find_spec("matplotlib"),
    "zarr": find_spec("zarr"),
    "emulator": shutil.which("g++"),
}


class Block(NamedTuple):
    language: str
    text: str
    line: int
    reason: str | None


def blocks() -> list[Block]:
    found = []
    lines = README.read_text().splitlines()
    inside: list[str] | None = None
    for number, line in enumerate(lines):
        if inside is None and line.startswith("```"):
            mark = MARK.fullmatch(lines[number - 1])
            language, begin, inside = line[3:], number + 1, []
            reason = mark[1] if mark else None
        elif inside is not None and line == "```":
            found.append(Block(language, "\n".join(inside), begin, reason))
            inside = None
        elif inside is not None:
            inside.append(line)
    assert inside is None
    return found


def run_line(line: str) -> None:
    """Run one line of a shell; ours in this process, because starting one takes longer than the rest."""
    words = shlex.split(line, comments=True)
    if not words or any(need in line and not there for need, there in NEEDS.items()):
        return
    if words[0] == "oocbfs":
        assert main(words[1:]) == 0, line
    else:
        subprocess.run(["sh", "-c", line], check=True)


def test_every_block_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = {"sh": 0, "python": 0, "toml": 0}
    for block in blocks():
        if block.reason is not None:
            continue
        text = block.text
        for whole, part in SMALLER.items():
            text = text.replace(whole, part)
        if block.language == "sh":
            for line in text.splitlines():
                run_line(line)
        elif block.language == "python":
            Path(f"line{block.line}.py").write_text(text)
            runpy.run_path(f"line{block.line}.py")
        elif block.language == "toml":
            Path("jobs.toml").write_text(text)
        ran[block.language] += 1
    assert ran["sh"] >= 9
    assert ran["python"] >= 4
    assert ran["toml"] == 1
    shown = capfd.readouterr()
    assert "Traceback" not in shown.err
    for name in ("graph.ocg", "back.csv", "levels.npy", "out/summary.csv", "job-pairs/pairs.csv"):
        assert Path(name).stat().st_size > 0


def test_the_installation_ends_with_oocbfs_on_the_path() -> None:
    """What follows it calls oocbfs by its name."""
    install = next(block.text for block in blocks() if "pip install ." in block.text)
    lines = [line.split("#")[0].strip() for line in install.splitlines()]
    assert lines[-2:] == [". .venv/bin/activate", "oocbfs --help"]
    assert lines[0].endswith(".venv")


def test_replacements_are_of_what_is_printed() -> None:
    text = "\n".join(block.text for block in blocks() if block.reason is None)
    assert [whole for whole in SMALLER if whole not in text] == []
