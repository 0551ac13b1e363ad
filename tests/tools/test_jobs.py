"""What jobs and scripts rely on: levels of messages, progress in logs, JSON, help, clear lines."""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import re
import shlex
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oocbfs
from oocbfs import console, progress
from oocbfs.cli import VERBS, build_parser
from oocbfs.generate import generators
from tests.support import children
from tests.support.command_line import call, run, said


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    oocbfs.convert(generators.kron(6), tmp_path / "g.ocg")
    return tmp_path / "g.ocg"


def test_quiet_says_nothing_but_errors(graph: Path, tmp_path: Path) -> None:
    levels = tmp_path / "levels.npy"
    done = call("bfs", graph, "--source", "@largest", "--levels", levels, "--vram", "1G", "-q")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout == ""
    assert levels.exists()
    done = call("bfs", graph, "--source", "@largest", "--levels", levels, "--quiet")
    assert done.returncode == 1
    assert "exists" in done.stderr


def test_messages_and_details(graph: Path, tmp_path: Path) -> None:
    levels = tmp_path / "levels.npy"
    done = call("bfs", graph, "--source", "@largest", "--levels", levels, "--engine", "cpu")
    assert said(done) == [f"wrote {levels}"]
    levels.unlink()
    shown = call("bfs", graph, "--source", "@largest", "--levels", levels, "--engine", "cpu", "-v")
    assert f"wrote {levels}" in said(shown)
    details = [line for line in said(shown) if re.match(r" *\d+\.\d{3} s  oocbfs\.", line)]
    assert any(f"opened {graph}: 64 vertices" in line for line in details)
    assert any("cpu engine" in line for line in details)
    edges = tmp_path / "edges.txt"
    edges.write_text("1 2\n")
    convert = said(call("convert", edges, "-o", tmp_path / "e.ocg", "--verbose"))
    assert any(f"reading {edges} as edge lists" in line for line in convert)
    assert any("order natural" in line for line in convert)
    assert any(re.search(r"encode took \d", line) for line in convert)
    assert call("bfs", graph, "--source", "1", "-q", "-v").returncode == 2


def test_a_generator_has_the_options_of_its_models(tmp_path: Path) -> None:
    done = call("generate", "kron", "--scale", 4, "-o", tmp_path / "k.txt", "--quiet")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_library_is_silent_and_can_be_listened_to(
    graph: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    assert any(isinstance(h, logging.NullHandler) for h in logging.getLogger("oocbfs").handlers)
    with caplog.at_level(logging.DEBUG, "oocbfs"):
        oocbfs.open(graph).bfs(1, engine="cpu")
    assert {"oocbfs.graph.stored", "oocbfs.engines.choice"} <= {r.name for r in caplog.records}
    out, error = capfd.readouterr()
    assert (out, error) == ("", "")


def test_a_command_leaves_no_handler_behind(graph: Path) -> None:
    logger = logging.getLogger("oocbfs")
    before = list(logger.handlers), logger.level
    call("info", graph, "-v")
    call("info", graph.parent / "none")
    assert (list(logger.handlers), logger.level) == before
    assert not console.is_quiet()


def test_progress_without_a_terminal(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Lines come by themselves, also while nothing is counted, and end with the phase."""
    monkeypatch.setattr(progress, "INTERVAL_SECONDS", 0.05)
    phases = progress.Phases()
    with caplog.at_level(logging.INFO, "oocbfs"), phases("read", 4 << 20, "B") as bar:
        bar.update(1 << 20)
        before = len(caplog.records)  # a slow machine may write one before it counts
        wait_for(lambda: len(caplog.records) >= before + 3)
    lines = [record.getMessage() for record in caplog.records]
    assert re.fullmatch(
        r"read: 25%, 1\.00M of 4\.00M bytes, \d\d:\d\d so far, about \d\d:\d\d left", lines[-1]
    )
    count = len(lines)
    time.sleep(0.2)
    assert len(caplog.records) == count
    assert phases.seconds["read"] > 0.1
    caplog.clear()
    with caplog.at_level(logging.INFO, "oocbfs"), phases("scan", None, "edge") as bar:
        bar.update(12)
        before = len(caplog.records)
        wait_for(lambda: len(caplog.records) >= before + 2)
    last = caplog.records[-1].getMessage()
    assert re.fullmatch(r"scan: 12 edges, \d\d:\d\d so far", last)
    with pytest.raises(ValueError, match="broken"), phases("scan", 9, "edge"):
        raise ValueError("broken")


@pytest.mark.parametrize(
    ("unit", "plural"),
    [("B", "bytes"), ("edge", "edges"), ("search", "searches"), ("vertex", "vertices")],
)
def test_units_of_progress_in_the_plural(unit: str, plural: str) -> None:
    with progress.Lines("scan", 4, unit) as lines:
        assert lines.line().startswith(f"scan: 0%, 0 of 4 {plural}, ")


def wait_for(condition: Any) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_progress_of_a_command(tmp_path: Path) -> None:
    """In a process of its own, whose error stream is a file, with a shorter interval."""
    code = (
        "import sys; from oocbfs import cli, progress; progress.INTERVAL_SECONDS = 0.01;"
        "sys.exit(cli.main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", code, "generate", "kron", "--scale", "16"]
    words = [*command, "-o", str(tmp_path / "k.u32")]
    done = children.run(words, capture_output=True, text=True, check=True)
    lines = [line for line in done.stderr.splitlines() if line.startswith("generate: ")]
    assert lines
    assert all(re.match(r"generate: \d+%, \S+ of 1\.05M edges, \d\d:", line) for line in lines)
    quiet = [*command, "-o", str(tmp_path / "q.u32"), "-q"]
    assert children.run(quiet, capture_output=True, text=True, check=True).stderr == ""


# A number, perhaps with a unit.
NUMBER = re.compile(r"[-+]?\d[\d,._ ]*(e[-+]?\d+)?\s*(%|[kKMGTP]?i?B?|bytes|m?s|seconds)?")


def problems(value: object, where: str = "") -> Iterator[str]:
    """Name what a program cannot read easily."""
    if isinstance(value, dict):
        for key, item in value.items():
            if re.search(r"\s", key):
                yield f"{where}: the key {key!r} has a space"
            yield from problems(item, f"{where}.{key}")
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from problems(item, f"{where}[{number}]")
    elif isinstance(value, str) and NUMBER.fullmatch(value) and value.count(".") < 2:
        yield f"{where}: {value!r} is a number in a string"


def test_what_is_wrong_with_json_is_found() -> None:
    wrong = {"a b": 1, "c": ["12", "1,234", "3.5 GB", "25%", "1e-3", "0.25 s"]}
    assert len(list(problems(wrong))) == 7
    assert not list(problems({"a": "k8.ocg", "b": "PCIe 4.0 x16", "c": "1.2.3", "d": [1, 2.5]}))


@pytest.mark.long
def test_json_of_every_verb(tmp_path: Path) -> None:
    """Keys without spaces, and numbers as numbers."""
    (tmp_path / "edges.txt").write_text("1 2\n2 3\n")
    (tmp_path / "jobs.toml").write_text('[[job]]\ngraph = "g.ocg"\noutput = "j"\nrandom = 2\n')
    lines = [
        "convert edges.txt -o sparse.ocg --ids compact",
        "update sparse.ocg --add edges.txt",
        "generate kron --scale 6 -o g.ocg",
        "generate kron --scale 6 -o g.txt",
        "info g.ocg",
        "verify g.ocg",
        "export g.ocg -o back.csv",
        "bfs g.ocg --source @largest --target 1 --validate --engine cpu",
        "bfs g.ocg --source @largest --engine disk",
        "batch g.ocg --random 70 -o b --engine cpu",
        "batch jobs.toml",
        "components g.ocg --engine cpu",
        "distances g.ocg --samples 2",
        "path g.ocg 1 2",
        "pairs g.ocg edges.txt -o pairs.csv",
        "near g.ocg 1 --depth 1 -o near.csv",
        "graph500 --scale 6 --roots 2 --engine cpu",
        "plan g.ocg --samples 2",
        "report g.ocg -o report.html --sources 1",
        "shard g.ocg -o shards --parts 2",
        "info shards",
        "bfs shards --source @largest",
        "doctor",
    ]
    if shutil.which("g++"):
        lines += [
            "ablate g.ocg --methods v3.3 --sources 1 --seeds 1",
            "bfs g.ocg --source 1 --engine emulator",
        ]
    seen = set()
    for line in lines:
        done = call(*shlex.split(line), "--json", cwd=tmp_path)
        assert done.returncode == 0, (line, done.stderr)
        assert len(done.stdout.splitlines()) == 1, line
        report = json.loads(done.stdout)
        assert not list(problems(report)), line
        seen.add(line.split()[0])
        if line.startswith(("batch", "verify")):
            assert report["seconds"] > 0
    with_json = {verb for verb in VERBS if "\n  --json" in run_help(verb)}
    assert with_json == set(VERBS) - {"completion"}
    assert with_json - seen <= {"ablate"}


def run_help(verb: str) -> str:
    return call(verb, *(["kron"] if verb == "generate" else []), "--help").stdout


def test_doctor_gives_numbers() -> None:
    findings = json.loads(call("doctor", "--json").stdout)["findings"]
    values = {finding["part"]: finding["values"] for finding in findings}
    assert values["CPU"]["cores"] >= values["CPU"]["usable_cores"] >= 1
    assert values["RAM"]["total_bytes"] >= values["RAM"]["available_bytes"] > 1 << 20


def test_report_of_a_batch(graph: Path, tmp_path: Path) -> None:
    line = ("batch", graph, "--random", 9, "--engine", "cpu", "-o", tmp_path / "b")
    first = json.loads(call(*line, "--json").stdout)
    assert (first["sources"], first["done_before"]) == (9, 0)
    assert first["sources_by_strategy"] == {"together": 9}
    again = call(*line, "--resume").stdout
    assert re.search(r"done before +9\n", again)
    assert re.search(r"searched +nothing was left to do\n", again)
    assert re.search(r"seconds +\d+\.\d\d\n", again)


def test_json_of_a_damaged_graph(graph: Path) -> None:
    data = bytearray(graph.read_bytes())
    data[5000] ^= 1
    graph.write_bytes(data)
    done = call("verify", graph, "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert len(said(done)) == 1


def actions(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, argparse.Action]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, below in action.choices.items():
                yield from actions(below, f"{name} {verb}")
        elif action.help is not argparse.SUPPRESS:
            yield f"{name} {'/'.join(action.option_strings) or action.dest}", action


def exclusive(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for group in parser._mutually_exclusive_groups:
        yield from group._group_actions
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from exclusive(below)


def test_every_option_has_help_and_names_its_default() -> None:
    parser = build_parser()
    one_of_several = set(exclusive(parser))
    for name, action in actions(parser, "oocbfs"):
        assert action.help, f"{name} has no help"
        if not action.option_strings or action.nargs == 0 or action.required:
            continue
        assert "default" in action.help or action in one_of_several, f"{name}: {action.help}"
        if action.default not in (None, ()):
            default = action.default
            shown = " ".join(map(str, default)) if isinstance(default, list) else str(default)
            assert f"default: {shown}" in action.help, f"{name}: {action.help}"


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ("edges.txt", "edges.ocg"),
        ("edges.tsv.gz", "edges.ocg"),
        ("noending", "noending.ocg"),
        ("with space.csv", "with space.ocg"),
    ],
)
@pytest.mark.parametrize("size", [3, 3000])
def test_an_input_given_to_a_search(tmp_path: Path, given: str, made: str, size: int) -> None:
    """The line has the command that makes a graph of it, and that command works."""
    path = tmp_path / given
    path.write_text("1 2\n2 3\n" * size)
    for line in (("bfs", path, "--source", 1), ("info", path), ("components", path)):
        done = call(*line)
        assert done.returncode == 1
        (message,) = said(done)
        command = shlex.split(message.partition("first: ")[2])
        assert command == ["oocbfs", "convert", str(path), "-o", str(tmp_path / made)]
    assert call(*command[1:]).returncode == 0
    assert call("bfs", tmp_path / made, "--source", 1).returncode == 0


def test_files_that_are_no_inputs(graph: Path, tmp_path: Path) -> None:
    packed = tmp_path / "graph.ocg.gz"
    packed.write_bytes(gzip.compress(graph.read_bytes()))
    done = call("convert", packed, "-o", tmp_path / "new.ocg")
    assert (done.returncode, len(said(done))) == (1, 1)
    assert "is a graph that is compressed as a whole: decompress it before" in done.stderr
    short = tmp_path / "short.ocg"
    short.write_bytes(b"nothing")
    assert "not an .ocg file (too short to be one)" in call("info", short).stderr


@pytest.mark.parametrize("option", ["--source", "--target"])
def test_names_where_there_are_none(graph: Path, option: str) -> None:
    words = ["--source", "1"] if option == "--target" else []
    done = call("bfs", graph, *words, option, "abc")
    assert done.returncode == 1
    assert said(done) == [f"oocbfs: {graph}: 'abc' is not an id: its vertices have whole numbers"]


def test_the_old_name_of_level_files(graph: Path, tmp_path: Path) -> None:
    """It is another thing in bfs; the old spelling says what it is called now."""
    done = call("batch", graph, "--random", 1, "-o", tmp_path / "b", "--levels", "zarr")
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert "--levels: is --level-files zarr now; distances are written with --emit levels" in last
    jobs = tmp_path / "jobs.toml"
    jobs.write_text('[[job]]\ngraph = "g.ocg"\noutput = "o"\nrandom = 1\nlevels = "zarr"\n')
    done = call("batch", jobs)
    assert said(done) == [
        f"oocbfs: {jobs}: job 1: levels is called level-files now: level-files = 'zarr'"
    ]


def test_quiet_in_a_process_of_its_own(graph: Path) -> None:
    done = run("verify", graph, "-q")
    assert (done.returncode, done.stderr) == (0, "")
