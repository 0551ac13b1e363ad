"""``oocbfs completion``: the code works in the shells, where they are installed."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from tests.support import children
from tests.support.command_line import call

BIN = Path(sys.executable).parent
needs_program = pytest.mark.skipif(
    not (BIN / "oocbfs").exists(), reason="oocbfs is not installed beside this Python"
)


def in_shell(tmp_path: Path, shell: str, program: str) -> list[str]:
    """Run lines after the completion code was read; returns what they print."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = call("completion", shell)
    assert done.returncode == 0, done.stderr
    (tmp_path / "code").write_text(done.stdout)
    (tmp_path / "edges-to-convert.txt").write_text("1 2\n")
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}
    plain = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    ran = children.run(
        [shell, *plain, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env=environment,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    return [line.split("\t")[0].strip() for line in ran.stdout.splitlines()]


BASH = """
source ./code
complete -p oocbfs > /dev/null || exit 1
try() {
    COMP_LINE="$1" COMP_POINT=${#1} COMP_TYPE=9 COMP_WORDBREAKS=$' \\t\\n"=:'
    COMPREPLY=()
    _python_argcomplete oocbfs
    printf '%s\\n' "${COMPREPLY[@]}"
}
"""


@needs_program
def test_bash(tmp_path: Path) -> None:
    pytest.importorskip("argcomplete")
    found = in_shell(
        tmp_path,
        "bash",
        BASH + 'try "oocbfs comp"; try "oocbfs bfs g.ocg --dire";'
        'try "oocbfs bfs g.ocg --direction b"; try "oocbfs convert edges-"',
    )
    expected = ["completion", "components", "--direction", "bottom-up", "edges-to-convert.txt"]
    assert sorted(found) == sorted(expected)


@needs_program
def test_fish(tmp_path: Path) -> None:
    pytest.importorskip("argcomplete")
    lines = ("oocbfs comp", "oocbfs bfs g.ocg --dire", "oocbfs bfs g.ocg --direction b")
    asked = "; ".join(f'complete -C "{line}"' for line in lines)
    found = in_shell(tmp_path, "fish", f"source ./code; {asked}")
    assert sorted(found) == ["--direction", "bottom-up", "completion", "components"]


# What the completion system of zsh calls is called here, with a _describe that prints.
ZSH = """
autoload -U compinit && compinit -D -u
source ./code
[[ $_comps[oocbfs] == _python_argcomplete ]] || exit 1
_describe() { print -l -- ${completions%%:*} }
try() { BUFFER=$1 CURSOR=${#1} words=(${=1}); _python_argcomplete }
try "oocbfs comp"
try "oocbfs bfs g.ocg --direction b"
"""


@needs_program
def test_zsh(tmp_path: Path) -> None:
    pytest.importorskip("argcomplete")
    found = in_shell(tmp_path, "zsh", ZSH)
    assert sorted(found) == ["bottom-up", "completion", "components"]


def test_other_shells_and_a_missing_library(monkeypatch: pytest.MonkeyPatch) -> None:
    assert call("completion", "csh").returncode == 2
    for name in ("argcomplete", "argcomplete.shell_integration"):
        monkeypatch.setitem(sys.modules, name, None)
    done = call("completion", "bash")
    assert (done.returncode, done.stdout) == (1, "")
    assert "pip install 'oocbfs[completion]'" in done.stderr
    # A line that is only to be completed is never run.
    monkeypatch.setenv("_ARGCOMPLETE", "1")
    done = call("doctor")
    assert (done.returncode, done.stdout) == (1, "")
