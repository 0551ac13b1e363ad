"""The READMEs: commands run as printed, options are all named, paths and links lead somewhere."""

from __future__ import annotations

import argparse
import os
import re
import runpy
import shlex
import shutil
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from oocbfs.cli import VERBS, build_parser, main
from oocbfs.kernels.cuda.source import KERNELS
from oocbfs.kernels.varint import encode_rows
from tests.support import children

ROOT = Path(__file__).parents[2]
FOLDERS = (
    *("tools", "oocbfs", "oocbfs/networkx", "oocbfs/workers", "kernels", "formats"),
    *("tests", "tests/benchmarks"),
)
PAGES = (
    *("README.md", "CONTRIBUTING.md", "kernels/METHODS.md"),
    *("oocbfs/memory.md", "tools/troubles.md"),
    *(f"{folder}/README.md" for folder in FOLDERS),
)
# Blocks that cannot run here say why in the line above.
MARK = re.compile(r"<!-- not run by tests/docs/test_readme.py: (.+) -->")
# What blocks may be; the others are drawings and what a program prints.
RUN, SHOWN = ("sh", "bash", "python", "toml", "console"), ("text", "json")
# The same commands on less.
SMALLER = {
    "kron --scale 18": "kron --scale 10",
    "graph500 --scale 16": "graph500 --scale 8 --roots 4",
    "--rows 2000 --columns 2000": "--rows 20 --columns 20",
    "--random 1000": "--random 70",
    "random = 1000": "random = 70",
    "--mutants 50000": "--mutants 8",
    "faults --sample 100": "faults verify --sample 1",
}
# What some lines need beyond a plain installation.
NEEDS = {
    "--plot": find_spec("matplotlib"),
    "parquet": find_spec("pyarrow"),
    "zarr": find_spec("zarr"),
    "--cluster": find_spec("distributed"),
    "emulator": shutil.which("g++"),
    "oocbfs ablate": shutil.which("g++"),
    "support.faults": shutil.which("gcc"),
}
# What each page leaves behind, if all of it ran.
MADE = {
    "README.md": ("graph.ocg", "levels.npy", "out/summary.csv", "labels.npy"),
    "tools/README.md": (
        "back.csv",
        "matrix.npz",
        "report.html",
        "levels.npy",
        "hubs/summary.jsonl",
        "job-pairs/pairs.csv",
    ),
}


class Block(NamedTuple):
    language: str
    text: str
    line: int
    reason: str | None


def read(page: str) -> str:
    return (ROOT / page).read_text()


def blocks(page: str) -> list[Block]:
    found = []
    lines = read(page).splitlines()
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


def prose(page: str) -> str:
    return re.sub(r"^```.*?^```$", "", read(page), flags=re.MULTILINE | re.DOTALL)


def run_oocbfs(words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as exit:  # how argparse ends --help
        return int(exit.code or 0)


def run_line(line: str) -> None:
    """Run one line of a shell, ours in this process: starting one takes longer than the rest."""
    words = shlex.split(line, comments=True)
    if not words or any(need in line and not there for need, there in NEEDS.items()):
        return
    if words[0] == "oocbfs" and not {"|", ">", "<"}.intersection(words):
        assert run_oocbfs(words[1:]) == 0, line
    elif words[0] == "scripts/bench":
        import_module(f"tests.benchmarks.{words[1]}").main(words[2:])
    else:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        # Tests are run from the checkout.
        folder = ROOT if re.match(r"python -m (pytest tests/|tests\.)", line) else None
        children.run(["sh", "-c", line], check=True, env={**os.environ, "PATH": path}, cwd=folder)


def check_console(text: str, capfd: pytest.CaptureFixture[str]) -> None:
    """Run the lines that begin with a prompt; each prints on standard output what follows it."""
    for session in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        line, _, expected = session.partition("\n")
        capfd.readouterr()
        run_line(line)
        assert capfd.readouterr().out.strip() == expected.strip(), line


@pytest.mark.parametrize("page", PAGES)
def test_every_block_runs(
    page: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """In their order, in an empty folder, as somebody would who reads the page."""
    monkeypatch.chdir(tmp_path)
    for block in blocks(page):
        assert block.language in RUN + SHOWN, f"{page}:{block.line}"
        if block.reason is not None:
            continue
        text = block.text
        for whole, part in SMALLER.items():
            text = text.replace(whole, part)
        if block.language in ("sh", "bash"):
            for line in text.splitlines():
                run_line(line)
        elif block.language == "console":
            check_console(text, capfd)
        elif block.language == "python":
            Path(f"line{block.line}.py").write_text(text)
            runpy.run_path(f"line{block.line}.py")
        elif block.language == "toml":
            Path("jobs.toml").write_text(text)
    assert "Traceback" not in capfd.readouterr().err
    for name in MADE.get(page, ()):
        assert Path(name).stat().st_size > 0


def test_replacements_are_of_what_is_printed() -> None:
    text = "\n".join(b.text for page in PAGES for b in blocks(page) if b.reason is None)
    assert [whole for whole in SMALLER if whole not in text] == []


def test_the_front_page_is_short() -> None:
    assert len(read("README.md").splitlines()) <= 210


def test_the_installation_ends_with_oocbfs_on_the_path() -> None:
    """What follows it calls oocbfs by its name."""
    install = next(block.text for block in blocks("README.md") if "pip install ." in block.text)
    lines = [line.split("#")[0].strip() for line in install.splitlines()]
    assert lines[-2:] == [". .venv/bin/activate", "oocbfs --help"]
    assert lines[0].endswith(".venv")


def actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the options of a parser and of those below it, which are options of theirs."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                yield argparse.Action([], name)
                yield from actions_of(below)
        elif (
            action.option_strings
            and "--help" not in action.option_strings
            and action.help is not argparse.SUPPRESS
        ):
            yield action


def parser_of(verb: str) -> argparse.ArgumentParser:
    (below,) = (
        action
        for action in build_parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    parser: argparse.ArgumentParser = below.choices[verb]
    return parser


# The options that all verbs have, which are explained once.
COMMON = {"-q", "--quiet", "-v", "--verbose"}


def section_of(title: str) -> str:
    return read("tools/README.md").split(f"\n## {title}\n")[1].split("\n## ")[0]


def test_what_all_verbs_share_is_explained() -> None:
    section = section_of("What all verbs share")
    for name in COMMON:
        assert f"`{name}`" in section
    for verb in VERBS:
        known = {name for action in actions_of(parser_of(verb)) for name in action.option_strings}
        assert known >= COMMON, verb


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_explained(verb: str) -> None:
    section = section_of(verb)
    known: set[str] = set()
    for action in actions_of(parser_of(verb)):
        names = action.option_strings or [action.dest]
        known.update(names)
        if COMMON.issuperset(names):
            continue
        for name in names:
            assert f"`{name}`" in section, f"{name} is not explained"
        for choice in action.choices or ():
            assert not isinstance(choice, str) or f"`{choice}" in section, f"{choice} is missing"
    named = re.findall(r"`(--[a-z][a-z0-9-]*)[^`]*`", section)
    assert set(named) <= known, "options that the verb does not have"


@pytest.mark.parametrize("page", PAGES)
def test_commands_of_benchmarks_are_those_that_exist(page: str) -> None:
    """Also of those that take too long to be run here."""
    for line in re.findall(r"scripts/bench ([^`\n#]+)", read(page)):
        name, *words = line.split()
        options = [word.rstrip(",;.") for word in words if word.startswith("--")]
        if not options:
            continue
        folder = ROOT / "tests" / "benchmarks"
        source = "".join((folder / f"{one}.py").read_text() for one in (name, "common"))
        assert [word for word in options if f'"{word}"' not in source] == [], line


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*PAGES, "CHANGELOG.md", "formats/FORMAT.md"])
def test_links_lead_somewhere(page: str) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith(("https://", "http://")):
            continue
        name, _, anchor = target.partition("#")
        path = (ROOT / page).parent / name if name else ROOT / page
        assert path.exists(), f"{page}: {target}"
        assert not anchor or anchor in anchors(path), f"{page}: {target}"


@pytest.mark.parametrize("page", PAGES)
def test_files_that_are_named_exist(page: str) -> None:
    """By their path from the top or from the page's folder, or by a name alone somewhere below."""
    folder = (ROOT / page).parent
    tops = tuple(f"{name.split('/')[0]}/" for name in (*FOLDERS, "scripts"))
    lost = []
    for span in re.findall(r"`([^`\n]+)`", prose(page)):
        name = span.split()[0]
        if "<" in name:  # which a reader is to choose
            continue
        if name.startswith(tops) or re.fullmatch(r"[\w./*]+\.(py|cu|cuh|h|cpp|md|svg)", name):
            there = [*ROOT.glob(name), *folder.glob(name)]
            if not there and "/" not in name:
                there = [*folder.rglob(name)]
            if not there:
                lost.append(name)
    assert lost == []


@pytest.mark.parametrize("page", PAGES)
def test_names_are_in_the_files_that_are_said_to_hold_them(page: str) -> None:
    for name, path in re.findall(r"`(\w+)` (?:of|in) `([\w/]+\.py)`", prose(page)):
        files = [*ROOT.glob(path), *(ROOT / page).parent.glob(path)]
        assert any(re.search(rf"\b{name}\b", file.read_text()) for file in files), (name, path)


def test_no_page_speaks_of_this_machine() -> None:
    text = "\n".join(map(read, PAGES))
    assert re.findall(r"(?<![\w.])/(?:home|root|tmp|work|Users)/\S*", text) == []


def test_the_worked_rows_are_what_the_encoder_writes() -> None:
    hub = [0, *(1 + 200 * k for k in range(600))]
    for neighbours, parts in (
        ([2, 9, 10, 300, 70_000], [(0, 7)]),
        (hub, [(0, 5), (1017, 1027), (1198, 1201)]),
    ):
        tails = np.empty(2048, np.uint8)
        heads, lengths, degrees = (np.empty(1, np.uint32) for _ in range(3))
        keys, by_degree = np.array(neighbours, np.uint64), np.empty(0, np.uint32)
        size = encode_rows(tails, heads, lengths, degrees, keys, by_degree, 0, 20)
        assert heads[0] == neighbours[0]
        assert parts[-1][1] == size
        drawn = re.sub(r"[^0-9a-f]+", " ", read("kernels/README.md"))
        for begin, end in parts:
            assert f" {tails[begin:end].tobytes().hex(' ')} " in drawn


def test_the_table_of_registers_names_every_kernel() -> None:
    rows = read("kernels/README.md").split("## Registers\n")[1].split("\n## ")[0]
    named = re.findall(r"^\| (\w+) \| \d", rows, re.MULTILINE)
    assert named == list(KERNELS)
