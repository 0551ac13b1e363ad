"""Wrong command lines: each ends in one clear line or a usage error, and harms nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.cli import main
from oocbfs.gpu.nvidia import ask_driver

BFS = ("bfs", "g.ocg", "--source", "1")
JOB = '[[job]]\ngraph = "g.ocg"\noutput = "o"\nrandom = 1\n'
JOBS = {
    "nul": JOB.replace('"o"', r'"a\u0000b"'),
    "numbers": "job = [1, 2]\n",
    "mixed": 'job = [{graph = "g.ocg", output = "o", random = 1}, 3]\n',
    "text": 'job = "x"\n',
    "deep": f"job = {'[' * 5000}{']' * 5000}\n",
    "digits": f"{JOB}seed = {'9' * 5000}\n",
    "seed": f"{JOB}seed = {2**64}\n",
    "threads": f"{JOB}threads = 1000000000\n",
    "twice": JOB + JOB.replace('"o"', '"./x/../o"'),
    "inside": JOB + JOB.replace('"o"', '"o/levels"'),
    "nameless": JOB.replace('"o"', '""'),
    "list": JOB.replace('"g.ocg"', "[1]"),
    "date": JOB.replace('"g.ocg"', "1979-05-27"),
    "table": JOB.replace('"g.ocg"', f"{'[' * 200}{']' * 200}"),
}


def call(*arguments: object) -> int:
    try:
        return main([str(argument) for argument in arguments])
    except SystemExit as left:
        return int(left.code or 0)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wrong")
    oocbfs.convert(np.array([[0, 1], [1, 2], [2, 9]]), folder / "g.ocg")
    oocbfs.convert(np.empty((0, 2), np.int64), folder / "empty.ocg")
    (folder / "edges.txt").write_text("0 1\n")
    (folder / "folder").mkdir()
    for name in ("loop.npy", "loop.ocg"):
        (folder / name).symlink_to(name)
    for name in ("g.npy", "g.csv", "g.svg", "g.txt"):
        (folder / name).symlink_to("g.ocg")
    (folder / "lost.npy").symlink_to("nowhere/x.npy")
    (folder / "full.npy").symlink_to("/dev/full")
    (folder / "out.csv").symlink_to("/dev/stdout")
    os.mkfifo(folder / "pipe.csv")
    os.mkfifo(folder / "pipe.ocg")
    for name, text in {
        "none": "",
        "words": "1\nx\n",
        "fraction": "1.5\n",
        "underscore": "1_0\n",
        "script": "٣\n",
        "huge": "9" * 5000,
        "nul": "1\n\0\n",
        "endless": "1" * 200_000,
    }.items():
        (folder / f"{name}.ids").write_text(text)
    (folder / "odd.pairs").write_text("0,1\n0\n")
    for name, text in JOBS.items():
        (folder / f"{name}.toml").write_text(text)
    return folder


@pytest.fixture
def unharmed(made: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Work in the folder and see to it that nothing in it comes, goes or changes."""

    def state() -> dict[str, bytes]:
        return {
            path.name: path.read_bytes() if path.suffix != ".ids" and path.is_file() else b""
            for path in made.iterdir()
        }

    monkeypatch.chdir(made)
    before = state()
    yield made
    assert state() == before


USAGE = [
    *((*BFS, f"--max-depth={value}") for value in ("-1", 2**31, 2**63, "9" * 5000, "x", "1.5")),
    (*BFS, "--max-depth=--"),
    *((*BFS, f"--threads={value}") for value in ("0", "-1", 10**9, "9" * 30, "x", "")),
    *((*BFS, f"--alpha={value}") for value in ("0", "nan", "inf", "x")),
    *((*BFS, f"--beta={value}") for value in ("0", "nan", "inf", "x")),
    (*BFS, "--target="),
    *(("bfs", "g.ocg", f"--source={value}") for value in ("", ",", "1,")),
    *((*BFS, f"--{name}=") for name in ("levels", "parents", "plot", "tmp")),
    *((*BFS, f"--{name}={value}") for name in ("memory", "vram") for value in ("", "x", "9" * 400)),
    *((*BFS, f"--resident-tails={value}") for value in ("", "x", "101%", "nan%")),
    ("bfs", "", "--source", "1"),
    ("components", "g.ocg", "--labels="),
    ("components", "g.ocg", "--threads=1000000000"),
    ("components", "g.ocg", "--vram=much"),
    ("convert", "edges.txt", "-o", ""),
    ("convert", "edges.txt", "-o", "new.ocg", "--tmp", "nowhere"),
    ("convert", "edges.txt", "-o", "new.ocg", "--codec=lz4"),
    ("batch", "g.ocg", "--random", "1", "-o", "o", "--seed", "-1"),
    ("batch", "g.ocg", "--sources", "", "-o", "o"),
    ("batch", "g.ocg", "--emit", "pairs", "-o", "o"),
    *(("generate", "kron", "-o", "k.txt", f"--scale={n}") for n in ("-1", "63", "9" * 5000)),
    ("generate", "kron", "-o", "k.txt", "--scale=3", "--seed=-1"),
    ("generate", "kron", "-o", "k.txt", "--scale=3", f"--seed={2**64}"),
    ("generate", "uniform", "-o", "k.txt", "--vertices=-5"),
    ("generate", "uniform", "-o", "k.txt", "--vertices=9", "--edges=-1"),
    ("generate", "grid2d", "-o", "k.txt", "--rows=0", "--columns=1"),
    ("generate", "powerlaw", "-o", "k.txt", "--vertices=9", "--max-degree=2", "--mean-degree=nan"),
    ("graph500", "--scale=32"),
    ("graph500", "--scale=4", "--seed=-1"),
    ("graph500", "--scale=4", "--tmp=nowhere"),
    ("plan", "g.ocg", "--samples=-1"),
    ("verify", "g.ocg", "--threads=0"),
    ("export", "g.ocg", "-o", ""),
    ("\udcff",),
]  # fmt: skip

REFUSED = [
    ((*BFS, "--levels=x.npy", "--parents=x.npy"), "the file for --levels too"),
    ((*BFS, "--levels=x.npy", "--parents=./folder/../x.npy", "--force"), "file for --levels too"),
    ((*BFS, "--levels=g.npy", "--force"), "is an input too"),
    ((*BFS, "--parents=g.csv", "--force"), "is an input too"),
    ((*BFS, "--plot=g.svg", "--force"), "is an input too"),
    (("components", "g.ocg", "--labels=g.csv", "--force"), "is an input too"),
    (("export", "g.ocg", "-o", "g.txt", "--force"), "is an input too"),
    (("convert", "edges.txt", "-o", "folder/../edges.txt", "--force"), "is an input too"),
    ((*BFS, "--levels=loop.npy", "--force"), "Too many levels of symbolic links"),
    (("convert", "edges.txt", "-o", "loop.ocg"), "Too many levels of symbolic links"),
    ((*BFS, "--levels=lost.npy"), "there is no folder"),
    ((*BFS, "--levels=full.npy", "--force"), "is a device or a pipe"),
    ((*BFS, "--levels=out.csv", "--force"), "name a"),
    ((*BFS, "--levels=pipe.csv", "--force"), "is a device or a pipe"),
    (("convert", "edges.txt", "-o", "/dev/null"), "is a device or a pipe"),
    (("convert", "edges.txt", "-o", "folder"), "is a folder"),
    (("convert", "edges.txt", "-o", "new.ocg/"), "is a folder"),
    (("convert", "edges.txt", "-o", "edges.txt/new.ocg"), "Not a directory"),
    (("convert", "edges.txt", "-o", f"{'x' * 300}.ocg"), "File name too long"),
    ((*BFS, "--levels=nowhere/a\n\033[31m.npy"), r"a\n\x1b[31m.npy: there is no folder"),
    (("convert", "edges.txt", "-o", "-"), "name a file"),
    (("export", "g.ocg", "-o", "-", "--json"), "leave one out"),
    (("generate", "kron", "--scale=3", "-o", "-", "--json"), "leave one out"),
    (("info", "pipe.ocg"), "pipe.ocg: cannot be opened"),
    (("bfs", "empty.ocg", "--source=@largest"), "no vertex to start from"),
    (("bfs", "g.ocg", "--source=7777"), "7777"),
    *(((*BFS, f"--target={value}"), f"g.ocg: '{value[:50]}")
      for value in ("1_0", "٣", "x", "9" * 5000)),
    *((("bfs", "g.ocg", f"--source={value}"), f"'{value}' is not an id")
      for value in ("0x1", "1e3", "1_0", "-")),
    (("batch", "g.ocg", "--random=1", "-o", "x" * 300), "File name too long"),
    (("batch", "g.ocg", "--random=1", "-o", "loop.ocg"), "loop.ocg"),
    *((("batch", "g.ocg", "--sources", f"{name}.ids", "-o", "o"), f"{name}.ids")
      for name in ("none", "words", "fraction", "underscore", "script", "huge", "nul", "endless")),
    (("batch", "g.ocg", "--sources", "/dev/zero", "-o", "o"), "/dev/zero"),
    (("batch", "g.ocg", "--emit", "pairs", "odd.pairs", "-o", "o"), "odd.pairs:2: expected two"),
    (("batch", "g.ocg", "--emit", "pairs", "endless.ids", "-o", "o"), "endless.ids:1"),
    *((("batch", f"{name}.toml"), f"{name}.toml: ") for name in JOBS),
    (("generate", "kron", "--scale=45", "-o", "k.u64"), "bytes, and"),
    (("generate", "kron", "--scale=45", "-o", "k.ocg"), "bytes, and"),
    (("graph500", "--scale=31", "--edge-factor=1000000"), "bytes, and"),
    (("graph500", "--scale=1", "--edge-factor=1", "--roots=1"), "no vertex has an edge"),
]  # fmt: skip


def named(arguments: object) -> str:
    return " ".join(map(str, arguments))[:60] if isinstance(arguments, tuple) else ""


@pytest.mark.parametrize("arguments", USAGE, ids=named)
def test_usage_errors(
    unharmed: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[object, ...]
) -> None:
    assert call(*arguments) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err.startswith("usage:")
    assert len(err.splitlines()[-1]) < 1000


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=named)
def test_refusals(
    unharmed: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[object, ...], message: str
) -> None:
    if any("--plot" in str(argument) for argument in arguments):
        pytest.importorskip("matplotlib", reason="plots need matplotlib")
    assert call(*arguments) == 1
    out, err = capfd.readouterr()
    assert out == ""
    lines = [line for line in err.splitlines() if "compiling" not in line]
    assert len(lines) == 1, err
    assert message in lines[0]


def test_outputs_that_exist_are_refused_before_the_work(
    unharmed: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The first of two files used to be written before the second was found to be there."""
    assert call(*BFS, "--levels=x.npy", "--parents=edges.csv", "--plot=g.svg") == 1
    assert "g.svg: is an input too" in capfd.readouterr().err


@pytest.mark.parametrize("suffix", ["svg", "png", "pdf"])
def test_an_empty_graph_and_a_lonely_source_are_drawn(
    made: Path, tmp_path: Path, suffix: str
) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    for number, arguments in enumerate(
        (("components", made / "empty.ocg"), ("bfs", made / "g.ocg", "--source", 5))
    ):
        plot = tmp_path / f"{number}.{suffix}"
        assert call(*arguments, "--plot", plot) == 0
        assert plot.stat().st_size > 500


@pytest.mark.parametrize("verb", [("bfs", "--source", 1), ("components",)])
@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--vram", "5G"), "driver"),
        (("--resident-tails", "10%"), "driver"),
        (("--vram", "5G", "--memory", "4G"), "by --memory"),
        (("--vram", "5G", "--engine", "disk"), "by --engine disk"),
    ],
)
def test_device_memory_that_is_not_used_is_mentioned(
    made: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    verb: tuple[object, ...],
    options: tuple[str, ...],
    why: str,
) -> None:
    """Also where CuPy is not installed, whose users are told nothing otherwise."""
    if why == "driver" and ask_driver().problem is None:
        pytest.skip("there is a GPU here")
    monkeypatch.setitem(sys.modules, "cupy", None)
    name, *rest = verb
    assert call(name, made / "g.ocg", *rest) == 0
    assert "using the CPU" not in capfd.readouterr().err
    assert call(name, made / "g.ocg", *rest, *options) == 0
    lines = [line for line in capfd.readouterr().err.splitlines() if "using the CPU: " in line]
    assert len(lines) == 1
    assert why in lines[0]


@pytest.mark.parametrize(
    ("words", "usage", "meant"),
    [
        (("bfs", "g.ocg", "--sources", "1"), "oocbfs bfs", "--source"),
        (("bfs", "g.ocg", "--sourec=1"), "oocbfs bfs", "--source"),
        (("convert", "edges.txt", "--outptu", "x.ocg"), "oocbfs convert", "--output"),
        (("batch", "g.ocg", "--hubs", "3"), "oocbfs batch", "--all-hubs"),
        (("generate", "kron", "--scales", "3"), "oocbfs generate kron", "--scale"),
        (("components", "g.ocg", "--label", "--lables", "x"), "oocbfs components", "--labels"),
        (("info", "g.ocg", "-z"), "oocbfs info", None),
        (("verify", "g.ocg", "--xyzzy"), "oocbfs verify", None),
    ],
    ids=lambda words: " ".join(words) if isinstance(words, tuple) else "",
)
def test_unknown_options(
    words: tuple[str, ...], usage: str, meant: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*words) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"usage: {usage} ")
    last = said.splitlines()[-1]
    assert last.startswith(f"{usage}: error: unrecognized arguments: ")
    assert last.endswith(f"(did you mean {meant}?)") if meant else "did you mean" not in last


def test_a_folder_that_cannot_be_looked_at(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call("bfs", made / "g.ocg", "--source", "1", "--tmp", made / ("x" * 300)) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("cannot be looked at: File name too long")
