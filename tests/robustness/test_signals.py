"""Signals at any moment, and bursts of them, end a command in one line."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from oocbfs.generate import generators
from tests.support.command_line import Started, call, run
from tests.support.exhaustive import ALL
from tests.support.shared import SharedGraphs

# How often each verb gets a burst.
TIMES = 60 if ALL else 4


@pytest.fixture(scope="module")
def graph(shared_graphs: SharedGraphs) -> Path:
    return shared_graphs.make("signals-kron-14", lambda: generators.kron(14))


def burst(started: Started, rng: random.Random) -> None:
    """Send signals in a moment, some of them right behind each other."""
    for _ in range(rng.randint(2, 12)):
        started.send_signal(rng.choice((signal.SIGINT, signal.SIGINT, signal.SIGTERM)))
        time.sleep(rng.choice((0, 0, 0.0005, 0.01)))


@pytest.mark.parametrize(
    "verb", ["bfs", "disk", "batch", "components", "export", "near", "pairs", "part", "report"]
)
def test_a_burst_of_signals_ends_in_one_line(graph: Path, tmp_path: Path, verb: str) -> None:
    out = tmp_path / "out"
    (tmp_path / "pairs.csv").write_text("".join(f"{i},{i * 7 % 1000}\n" for i in range(1000)))
    words: dict[str, tuple[object, ...]] = {
        "bfs": ("bfs", graph, "--source", 1, "--levels", out / "levels.csv"),
        "disk": ("bfs", graph, "--source", 1, "--engine", "disk", "--parents", out / "p.npy"),
        "batch": ("batch", graph, "--random", 200, "--seed", 1, "-o", out / "batch"),
        "components": ("components", graph, "--labels", out / "labels.npy"),
        "export": ("export", graph, "-o", out / "edges.txt.gz"),
        "near": ("near", graph, "1,2,3,5,8", "--depth", 3, "-o", out / "near.csv.gz"),
        "part": ("export", graph, "--near", 1, "--depth", 2, "-o", out / "part.ocg"),
        "pairs": ("pairs", graph, tmp_path / "pairs.csv", "-o", out / "pairs.csv", "--paths"),
        "report": ("report", graph, "-o", out / "report.html"),
    }
    rng = random.Random(f"{verb} bursts")
    for number in range(TIMES):
        folder = tmp_path / f"out{number}"
        folder.mkdir()
        mine = [str(word).replace(str(out), str(folder)) for word in words[verb]]
        started = Started(tmp_path / "said", *mine)
        started.wait_until_begun()
        time.sleep(rng.uniform(0, 0.6))
        burst(started, rng)
        code, said = started.finish()
        lines = [line for line in said.splitlines() if line.startswith("oocbfs: ")]
        assert "Traceback" not in said
        assert "Exception ignored" not in said
        assert code in (0, 130, 143), said
        assert len(lines) == (code == 130), said
        left = [str(path) for path in folder.iterdir() if verb != "batch"]
        assert code != 130 or not left or f"interrupted; {left[0]}: written" in said, said
        assert all(not Path(path).name.startswith(".") for path in left), left


@pytest.mark.parametrize(("number", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_a_signal_while_numpy_is_imported(
    graph: Path, tmp_path: Path, number: str, code: int
) -> None:
    """Its C code imports datetime, and makes an ImportError of all that is raised there."""
    (tmp_path / "datetime.py").write_text(
        f"import os, signal\nos.kill(os.getpid(), signal.{number})\nfrom _datetime import *\n"
        "from _datetime import datetime_CAPI\n"
    )
    done = run("bfs", graph, "--source", 1, env=os.environ | {"PYTHONPATH": str(tmp_path)})
    assert done.returncode == code, done.stderr
    assert done.stderr == ("oocbfs: interrupted; nothing was written\n" if code == 130 else "")


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("verb", ["bfs", "shard"])
def test_what_has_its_name_already_is_not_denied(
    graph: Path, tmp_path: Path, verb: str, late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal right before and right after a rename, of a file and of a folder."""
    out = tmp_path / "out"
    words, module = {
        "bfs": (("bfs", graph, "--source", 1, "--levels", out.with_suffix(".npy")), "atomic"),
        "shard": (("shard", graph, "--parts", 2, "-o", out), "folder"),
    }[verb]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    place = f"oocbfs.formats.output.{module}"
    if late:
        monkeypatch.setattr(f"{place}.sync_folder", interrupted if verb == "bfs" else _second())
    else:
        monkeypatch.setattr(f"{place}.os.fsync" if verb == "bfs" else f"{place}._move", interrupted)
    done = call(*words)
    written = f"{words[-1]}: written" if late else "nothing was written"
    assert done.returncode == 130
    assert done.stderr.splitlines()[-1] == f"oocbfs: interrupted; {written}"
    assert [path.name for path in tmp_path.iterdir()] == [Path(words[-1]).name] * late


def _second() -> Callable[..., None]:
    """Return what passes the first call and interrupts the second: that after the rename."""
    calls = iter(range(2))

    def interrupted(*_: object) -> None:
        if next(calls):
            raise KeyboardInterrupt

    return interrupted
