"""A limit of addresses (``ulimit -v``): the answer is right, or one line says how many are needed.

Libraries that get no addresses abort the process, or leave a thread that never begins.
"""

import resource
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from tests.support import children
from tests.support.exhaustive import ALL
from tests.support.shared import SharedGraphs

MEGABYTES = range(100, 1200, 50) if ALL else (150, 400, 710, 725, 800, 1100)
VERBS = {
    "cpu": ["bfs", "GRAPH", "--source", "1", "--engine", "cpu"],
    "disk": ["bfs", "GRAPH", "--source", "1", "--engine", "disk"],
    "batch": ["batch", "GRAPH", "--random", "70", "-o", "OUT"],
    "components": ["components", "GRAPH"],
    "convert": ["convert", "EDGES", "-o", "OUT"],
    "export": ["export", "GRAPH", "-o", "OUT"],
}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux keeps to a limit of addresses")
@pytest.mark.parametrize("verb", VERBS)
def test_it_runs_or_says_how_many_are_needed(
    verb: str, tmp_path: Path, shared_graphs: SharedGraphs
) -> None:
    rng = np.random.default_rng(5)
    edges = rng.integers(0, 3_000, (20_000, 2))
    graph = shared_graphs.make("addresses", lambda: edges)
    text = tmp_path / "edges.txt"
    np.savetxt(text, edges, fmt="%d")
    codes = set()
    for megabytes in MEGABYTES:
        named = {"GRAPH": graph, "EDGES": text, "OUT": tmp_path / f"{megabytes}.tsv"}
        limit = (megabytes << 20, megabytes << 20)
        done = children.run(
            [
                sys.executable,
                "-m",
                "oocbfs",
                *(named.get(word, word) for word in VERBS[verb]),
                "-q",
            ],
            capture_output=True,
            text=True,
            preexec_fn=partial(resource.setrlimit, resource.RLIMIT_AS, limit),
        )
        said = done.stderr.splitlines()
        assert (done.returncode, len(said)) in ((0, 0), (1, 1)), (megabytes, done.stderr)
        if done.returncode:
            assert "need" in said[0]
            assert not named["OUT"].exists()
        codes.add(done.returncode)
    assert codes == {0, 1}
