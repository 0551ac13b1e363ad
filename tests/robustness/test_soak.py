"""The soak finds what is wrong, draws the same again, and passes for a few runs."""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from tests.support.soak.plain import draw_graph
from tests.support.soak.process import Disturbance, End, WrongError, run
from tests.support.soak.soak import main
from tests.support.soak.verbs import Asker


@pytest.mark.long
def test_a_few_runs(capfd: pytest.CaptureFixture[str]) -> None:
    code = main(["--runs", "2", "--seed", "12", "--minutes", "2"])
    shown = capfd.readouterr().out
    assert code == 0, shown
    assert "2 runs, 0 wrong" in shown


def test_a_wrong_answer_is_found(tmp_path: Path) -> None:
    graph = draw_graph(random.Random(1), "dense")
    oocbfs.convert(np.array([(0, 1)]), tmp_path / "g.ocg")
    command = next(Asker(random.Random(1), graph, "dense").commands())
    with pytest.raises(AssertionError, match="other edges"):
        command.check(tmp_path, End(0, "", []))


def test_a_hang_shows_its_stacks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WrongError, match=r"(?s)still runs after 2 s.*most recent call first"):
        run(["convert", "pipe", "-o", "g.ocg"], tmp_path, Disturbance(), limit=2)


def test_a_signal_at_once_meets_the_program(tmp_path: Path) -> None:
    """And not the start of Python, which ends with a traceback."""
    oocbfs.convert(np.array([(0, 1)]), tmp_path / "g.ocg")
    words = ["bfs", "g.ocg", "--source", "0"]
    ends = [run(words, tmp_path, Disturbance(signal.SIGINT)) for _ in range(5)]
    assert 130 in {end.code for end in ends}


def test_a_seed_draws_the_same_again() -> None:
    def drawn(seed: str) -> list[list[str]]:
        rng = random.Random(seed)
        ids = rng.choice(["dense", "names"])
        return [command.words for command in Asker(rng, draw_graph(rng, ids), ids).commands()]

    assert drawn("1-7") == drawn("1-7")
    assert drawn("1-7") != drawn("1-8")
