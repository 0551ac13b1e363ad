"""The CUDA kernels, run by the emulator, give what the CPU engine gives."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.errors import BudgetError, FormatError, OocbfsError
from oocbfs.formats.container.layout import Kind
from oocbfs.generate import generators
from oocbfs.gpu.nvidia import ask_driver
from oocbfs.plan.device import plan
from oocbfs.plan.shape import shape_of
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import Settings
from tests.support import children
from tests.support.crafting import rewrite
from tests.support.gpu.engine_graphs import source_of

pytestmark = [
    pytest.mark.usefixtures("verified"),
    pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs a C++ compiler"),
]


@pytest.mark.parametrize("engine", ["cpu", "emulator"])
def test_a_damaged_file_is_refused_by_every_engine(tmp_path: Path, engine: Any) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(generators.rmat(11, seed=3), path)
    with open_file(path) as graph:
        tails = np.asarray(graph._stored.rows.tails)
        content = path.read_bytes()
        at = content.index(tails[:64].tobytes())
    # The first row is a hub's: its gaps become larger than the graph.
    path.write_bytes(content[:at] + b"\xff\xff\xff\xff\x0f" * 10 + content[at + 50 :])
    with open_file(path) as graph:
        source = int(graph._stored.ids_of(np.array([0]))[0])
        with pytest.raises(FormatError, match=r"g\.ocg: a row is damaged: run 'oocbfs verify'"):
            graph.bfs(source, engine=engine, options=Settings(direction="top-down"))


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    path = tmp_path_factory.mktemp("engines") / "g.ocg"
    edges = generators.rmat(11, seed=5)
    oocbfs.convert(edges, path, directed=True, order="degree")
    with open_file(path) as opened:
        yield opened


def test_target_on_a_long_path(tmp_path: Path) -> None:
    """One launch runs many levels: those after the target must not show."""
    oocbfs.convert(np.stack([np.arange(6000), np.arange(1, 6001)], axis=1), tmp_path / "g.ocg")
    with open_file(tmp_path / "g.ocg") as graph:
        stops: list[dict[str, Any]] = [{"target": 4500}, {"max_depth": 4500}]
        for stop in stops:
            found = graph.bfs(0, engine="emulator", parents=True, **stop)
            assert found.depth == 4500
            assert found.reached == 4501
            assert (found.levels[4501:] == -1).all()
            assert (found.parents[4501:] == -1).all()


def test_plans_change_bytes_but_not_levels(graph: Graph) -> None:
    source = source_of(graph)
    expected = graph.bfs(source, engine="cpu").levels
    moved: list[int] = []
    for share in ("0%", "10%", "50%", "100%"):
        found = graph.bfs(
            source, engine="emulator", options=Settings(resident_tails=share, direction="bottom-up")
        )
        np.testing.assert_array_equal(found.levels, expected)
        assert found.stats.slow_bytes is not None
        moved.append(found.stats.slow_bytes)
    assert moved == sorted(moved, reverse=True)
    assert moved[0] > moved[1] > moved[3] == 0
    unplanned = graph.bfs(source, engine="emulator", options=Settings(direction="bottom-up"))
    assert unplanned.stats.slow_bytes == moved[0]
    roomy = graph.bfs(source, engine="emulator", options=Settings(vram="1G"))
    assert roomy.stats.slow_bytes == 0
    np.testing.assert_array_equal(roomy.levels, expected)


def test_budgets_that_do_not_hold_the_graph_are_refused(graph: Graph) -> None:
    with pytest.raises(BudgetError, match=r"levels, queues, heads and starts take"):
        graph.bfs(source_of(graph), engine="emulator", options=Settings(vram="10K"))
    least = plan(shape_of(graph._stored), vram_bytes=None).mandatory_bytes
    graph.bfs(source_of(graph), engine="emulator", options=Settings(vram=least))
    with pytest.raises(BudgetError, match=r"resident_tails"):
        graph.bfs(
            source_of(graph), engine="emulator", options=Settings(vram=least, resident_tails="50%")
        )
    for share in ("101%", "x%", "-3%", "lots"):
        with pytest.raises(BudgetError, match=r"cannot read"):
            graph.bfs(source_of(graph), engine="emulator", options=Settings(resident_tails=share))


def test_seconds_of_levels_add_up(graph: Graph) -> None:
    stats = graph.bfs(
        source_of(graph), engine="emulator", options=Settings(direction="bottom-up")
    ).stats
    assert all(level.seconds > 0 for level in stats.levels)
    assert sum(level.seconds for level in stats.levels) <= stats.seconds
    assert sum(level.num_levels for level in stats.levels) >= 3


def test_damaged_tails_are_refused(tmp_path: Path) -> None:
    """Ids that are no vertices end in an error, never in wrong levels."""
    star = np.stack([np.zeros(200, np.int64), np.arange(1, 201)], axis=1)
    oocbfs.convert(star, tmp_path / "g.ocg", order="natural")
    rewrite(tmp_path / "g.ocg", Kind.TAILS, 5, 127)
    with open_file(tmp_path / "g.ocg") as graph:
        for share in ("0%", "100%"):
            with pytest.raises(FormatError, match=r"g\.ocg: .*verify"):
                graph.bfs(0, engine="emulator", options=Settings(resident_tails=share))


def test_the_cuda_engine_says_what_is_missing(graph: Graph) -> None:
    if ask_driver().problem is None:
        pytest.skip("there is a GPU")
    with pytest.raises(OocbfsError, match="CuPy"):
        graph.bfs(source_of(graph), engine="cuda")


def test_auto_falls_back_and_says_so(graph: Graph) -> None:
    problem = ask_driver().problem
    if problem is None:
        pytest.skip("there is a GPU")
    stats = graph.bfs(source_of(graph)).stats
    assert stats.engine == "cpu"
    if find_spec("cupy") is None:
        assert stats.fallback is None
    else:
        assert problem in str(stats.fallback)
    code = f"import sys, oocbfs; oocbfs.open({graph.path!r}).bfs(1); print('cupy' in sys.modules)"
    done = children.run_python(code)
    assert done.stdout.strip() == "False"


def test_auto_falls_back_when_the_graph_does_not_fit(
    graph: Graph, monkeypatch: pytest.MonkeyPatch, driver_double: Path
) -> None:
    """With a driver that reports a GPU, everything up to the first real CUDA call happens."""
    pytest.importorskip("cupy", reason="cupy-cuda12x is not installed")
    if ask_driver().problem is None:
        pytest.skip("there is a GPU")
    monkeypatch.setattr("oocbfs.engines.choice.ask_driver", lambda: ask_driver(str(driver_double)))
    stats = graph.bfs(source_of(graph)).stats
    assert stats.engine == "cpu"
    assert "CuPy finds no usable CUDA driver" in str(stats.fallback)
