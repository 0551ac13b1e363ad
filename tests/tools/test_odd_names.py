"""Files whose names have a byte that is no UTF-8: every verb reads and writes them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.support.command_line import call

ODD = os.fsdecode(b"g\xfe")
VERBS = (
    ("info",),
    ("verify",),
    ("export", "-o", "{}.parquet"),
    ("bfs", "--source", "1", "--levels", "{}.parquet", "--plot", "{}.png"),
    ("bfs", "--source", "1", "--parents", "{}.npy", "--plot", "{}.svg"),
    ("components", "--labels", "{}.csv", "--plot", "{}.svg"),
    ("report", "-o", "{}.html"),
    ("batch", "--random", "2", "-o", "{}-batch", "--table", "parquet"),
    ("shard", "--parts", "2", "-o", "{}-parts"),
    ("plan",),
    ("ablate", "--methods", "simple", "--sources", "1", "--seeds", "1", "--report", "{}.html"),
)


@pytest.fixture
def graph(tmp_path: Path) -> Path:
    folder = tmp_path / ODD
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    (folder / f"{ODD}.txt").write_text("1 2\n2 3\n3 1\n")
    done = call("convert", folder / f"{ODD}.txt", "-o", folder / f"{ODD}.ocg", "--json")
    assert done.returncode == 0, done.stderr
    check_json(done.stdout)
    return folder / f"{ODD}.ocg"


def check_json(text: str) -> None:
    """Parse an object whose text is UTF-8, also where letters are escaped."""
    json.dumps(json.loads(text), ensure_ascii=False).encode()


@pytest.mark.parametrize("words", VERBS, ids=lambda words: " ".join(words))
def test_verbs(graph: Path, words: tuple[str, ...]) -> None:
    verb, *rest = (word.format(graph.parent / ODD) for word in words)
    done = call(verb, graph, *rest, "--json")
    assert done.returncode == 0, done.stderr
    check_json(done.stdout)
    for name in rest:
        if name.startswith(str(graph.parent)):
            assert os.path.exists(name)


def test_tables_as_inputs(graph: Path) -> None:
    table = graph.with_suffix(".parquet")
    assert call("export", graph, "-o", table).returncode == 0
    done = call("convert", table, "-o", graph, "--force", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["edges_read"] == 3
