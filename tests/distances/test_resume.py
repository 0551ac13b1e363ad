"""Runs that end early know what is certain, and go on with the same answer."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.distances.job import Answer, Job, Question
from oocbfs.errors import FormatError, QueryError
from oocbfs.generate import generators
from oocbfs.search.graph import open_file
from tests.support.command_line import call

EVERYTHING = Question(
    exact=("diameter", "radius", "center", "eccentricities", "closeness"), top=4, confidence=0.9
)


def figures(answer: Answer) -> dict[str, Any]:
    """All that was found."""
    assert answer.distribution is not None
    assert answer.extremes is not None
    return {
        "diameter": answer.extremes.diameter,
        "radius": answer.extremes.radius,
        "center": answer.center,
        "distribution": answer.distribution.summary(),
        "top": answer.top,
        "eccentricities": None if answer.eccentricities is None else answer.eccentricities.tolist(),
        "closeness": None if answer.sources is None else answer.sources.closeness().tolist(),
        "estimates": None if answer.harmonic is None else answer.harmonic.values.tolist(),
        "searched": answer.searched,
    }


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("question", [EVERYTHING, Question(samples=800, closeness=True)])
def test_stopped_after_any_group(tmp_path: Path, question: Question, directed: bool) -> None:
    oocbfs.convert(generators.kron(9), tmp_path / "g.ocg", directed=directed)
    state = tmp_path / "state"
    with open_file(tmp_path / "g.ocg") as graph:
        expected = figures(Job(graph, question).run())
        stops = 0
        while True:
            groups = 0

            def stop(answer: Answer) -> None:
                nonlocal groups
                if answer.extremes is not None:
                    low, high = answer.extremes.diameter
                    assert low <= expected["diameter"][0] <= high
                    low, high = answer.extremes.radius
                    assert low <= expected["radius"][0] <= high
                groups += 1
                if groups == 2:
                    raise KeyboardInterrupt

            job = Job(graph, question, state=state, resume=True)
            try:
                answer = job.run(stop)
                break
            except KeyboardInterrupt:
                stops += 1
                assert state.exists()
    assert stops > 2
    assert answer.resumed
    assert figures(answer) == expected
    assert not state.exists()


def test_state_of_another_question(tmp_path: Path) -> None:
    oocbfs.convert(generators.kron(6), tmp_path / "g.ocg")
    state = tmp_path / "state"

    def stop(answer: Answer) -> None:
        raise KeyboardInterrupt

    with open_file(tmp_path / "g.ocg") as graph:
        with pytest.raises(KeyboardInterrupt):
            Job(graph, Question(), state=state).run(stop)
        with pytest.raises(QueryError, match="begun with another seed"):
            Job(graph, Question(seed=2), state=state, resume=True)
        data = bytearray(state.read_bytes())
        data[len(data) // 2] ^= 0xFF
        state.write_bytes(data)
        with pytest.raises(FormatError, match="is damaged"):
            Job(graph, Question(), state=state, resume=True)


_SLOW = """
import sys
from oocbfs.cli import program
from oocbfs.distances import job
job.SAVE_SECONDS, job._SAVING_SHARE = 0.05, 0
program(sys.argv[1:])
"""


def test_killed_at_random_moments(tmp_path: Path) -> None:
    """The same bytes come out, however often it was killed."""
    oocbfs.convert(generators.kron(12), tmp_path / "g.ocg")
    words = ["distances", tmp_path / "g.ocg", "--exact", "eccentricities,closeness", "--resume"]
    words += ["--threads", 1]
    whole, pieces = tmp_path / "whole.csv", tmp_path / "pieces.csv"
    assert call(*words, "-o", whole).returncode == 0
    command = [sys.executable, "-c", _SLOW, *map(str, words), "-o", str(pieces)]
    rng = np.random.default_rng(4)
    kills = 0
    for number in (signal.SIGKILL, signal.SIGINT, signal.SIGKILL, None):
        child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        state = Path(f"{pieces}.state")
        began, started = time.monotonic(), time.time_ns()
        while number is not None and child.poll() is None and time.monotonic() - began < 30:
            # Only this run's own state: it has begun to search.
            if state.exists() and state.stat().st_mtime_ns > started:
                time.sleep(rng.uniform(0, 0.1))
                os.kill(child.pid, number)
                kills += 1
                break
            time.sleep(0.01)
        _, errors = child.communicate(timeout=60)
        if number in (signal.SIGINT, signal.SIGTERM) and child.returncode:
            assert "certain so far: diameter" in errors
            assert "--resume continues" in errors
            assert child.returncode in (130, 143)
        if child.returncode == 0:
            break
    assert kills
    assert pieces.read_bytes() == whole.read_bytes()
    assert [path.name for path in tmp_path.iterdir() if "state" in path.name] == []
