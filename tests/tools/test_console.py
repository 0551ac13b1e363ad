"""What is printed where the terminal knows little, and where nobody reads any more."""

from __future__ import annotations

import codecs
import io
import json
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import pytest

import oocbfs
from oocbfs import console
from oocbfs.cli import VERBS, main
from oocbfs.generate import generators
from tests.support import children


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A grid, whose export is larger than a pipe, under a name that is neither ASCII nor UTF-8."""
    folder = tmp_path_factory.mktemp("console")
    path = os.fsdecode(os.fsencode(folder) + "/é→".encode() + b"\xff.ocg")
    oocbfs.convert(generators.grid2d(100, 120), path)
    return path


@contextmanager
def streams(out: TextIO, err: TextIO) -> Iterator[None]:
    """Put others in the place of the standard streams."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = out, err
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def show(encoding: str, *arguments: str) -> tuple[int, bytes, bytes]:
    """Run where the terminal knows one encoding only."""
    out, err = io.BytesIO(), io.BytesIO()
    with streams(io.TextIOWrapper(out, encoding), io.TextIOWrapper(err, encoding)):
        try:
            code = main(arguments)
        except SystemExit as left:
            code = int(left.code or 0)
        sys.stderr.flush()
        return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp437"])
def test_tables_on_a_plain_terminal(graph: str, encoding: str) -> None:
    code, path, _ = show(encoding, "bfs", graph, "--source", "0", "--target", "121")
    assert code == 0
    assert b"2 steps: 0 -> " in path
    code, table, _ = show(encoding, "bfs", graph, "--source", "0")
    assert code == 0
    assert b"  ...    " in table
    for verb in ("info", "components", "verify", "plan"):
        assert show(encoding, verb, graph)[0] == 0


def test_our_own_signs_where_they_are_known(graph: str) -> None:
    shown = show("utf-8", "bfs", graph, "--source", "0", "--target", "121")[1].decode()
    assert "2 steps: 0 → " in shown


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_json_is_the_same_on_every_terminal(graph: str, encoding: str) -> None:
    shown = show(encoding, "info", graph, "--json")[1]
    assert shown.isascii()
    assert json.loads(shown)["path"] == graph.encode("utf-8", "backslashreplace").decode()


def test_help_and_errors_on_an_ascii_terminal(graph: str) -> None:
    for verb in ((), *((verb,) for verb in VERBS)):
        code, out, err = show("ascii", *verb, "--help")
        assert (code, err) == (0, b"")
        assert b"usage: " in out
    code, _, err = show("ascii", "bfs", graph, "--source", "9→")
    assert code == 1
    assert b"'9->' is not an id" in err
    code, _, err = show("ascii", "info", "→\udcff")
    assert (code, err) == (1, b"oocbfs: ->\\udcff: cannot be opened: No such file or directory\n")


def test_progress_on_an_ascii_terminal(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with open(theirs, "w", encoding="ascii") as terminal, streams(terminal, terminal):
        assert main(["generate", "kron", "--scale", "12", "-o", str(tmp_path / "k.txt.xz")]) == 0
        shown = os.read(ours, 1 << 16)
    os.close(ours)
    assert b"generate: " in shown
    assert shown.isascii()


@contextmanager
def nobody(buffering: int = -1) -> Iterator[io.TextIOWrapper]:
    """Return a stream whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", buffering=buffering) as stream:
        yield stream


@pytest.mark.parametrize(
    "arguments",
    [
        ("export", "-o", "-"),
        ("info", "--json"),
        ("verify",),
        ("bfs", "--source", "0"),
        ("components",),
        ("plan", "--samples", "0"),
        ("batch", "--random", "1", "-o", "out"),
        ("--help",),
        ("doctor",),
    ],
    ids=" ".join,
)
def test_a_closed_pipe_ends_quietly(
    graph: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    verb, *rest = arguments
    files = [] if verb in ("--help", "doctor") else [graph]
    err = io.BytesIO()
    with nobody() as out, streams(out, io.TextIOWrapper(err, "utf-8")):
        assert main([verb, *files, *rest]) == 141
        sys.stderr.flush()
        assert b"oocbfs: " not in err.getvalue()


def test_closed_errors_end_quietly(graph: str) -> None:
    with nobody(buffering=1) as err, streams(io.TextIOWrapper(io.BytesIO()), err):
        assert main(["info", f"{graph}.none"]) == 141


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_reader_who_has_had_enough(graph: str, unbuffered: str) -> None:
    """A process of its own, because the interpreter flushes once more at its end."""
    with subprocess.Popen(
        [sys.executable, "-m", "oocbfs", "export", graph, "-o", "-"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline().startswith(b"# Nodes: 12000")
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("info",), ("export", "-o", "-"), ("verify",)])
def test_a_full_disk_behind_standard_output(
    graph: str, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    verb, *rest = arguments
    with open("/dev/full", "w") as full, streams(full, sys.stderr):
        assert main([verb, graph, *rest]) == 1
    reason = "standard output cannot be written: No space left on device"
    assert capfd.readouterr().err.splitlines()[-1] == f"oocbfs: {reason}"


def test_closed_streams(graph: str, tmp_path: Path) -> None:
    line = '"$0" -m oocbfs info "$1" >&- && "$0" -m oocbfs verify "$1" 2>&-'
    command = ["sh", "-c", line, sys.executable, graph]
    done = children.run(command, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"sound" in done.stdout


def test_an_open_graph_is_no_standard_input(tmp_path: Path) -> None:
    """Not even where standard input was closed, and the graph is what is opened first."""
    oocbfs.convert([(0, 1)], tmp_path / "g.ocg")
    (tmp_path / "add.txt").write_text("1 2\n")
    command = ["sh", "-c", '"$0" -m oocbfs update g.ocg --add add.txt <&-', sys.executable]
    done = children.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    with oocbfs.open(tmp_path / "g.ocg") as updated:
        assert updated.num_edges == 2


def test_a_signal_leaves_streams_that_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that comes while a stream is between its old and its new encoder."""
    made = codecs.IncrementalEncoder.__init__

    def interrupted(encoder: codecs.IncrementalEncoder, errors: str = "strict") -> None:
        monkeypatch.setattr(codecs.IncrementalEncoder, "__init__", made)
        signal.raise_signal(signal.SIGINT)
        made(encoder, errors)

    buffer = io.BytesIO()
    stream = io.TextIOWrapper(buffer, encoding="utf-8")
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(io.BytesIO(), encoding="utf-8"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(codecs.IncrementalEncoder, "__init__", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            console.prepare()
    finally:
        signal.signal(signal.SIGINT, before)
    stream.write("interrupted")
    stream.flush()
    assert buffer.getvalue() == b"interrupted"
