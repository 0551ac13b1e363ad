"""``oocbfs bfs`` as a person or a script uses them."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.cli import main
from oocbfs.formats.container.layout import Kind
from oocbfs.generate import generators
from oocbfs.gpu.nvidia import ask_driver
from tests.support.command_line import call, run, said
from tests.support.crafting import rewrite
from tests.support.small_graph import convert_small


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return convert_small(tmp_path_factory.mktemp("cli") / "g.ocg")


def test_json_holds_the_contract(graph: Path) -> None:
    done = run("bfs", graph, "--source", 1, "--json", "--validate", "--threads", 1)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["level_sizes"] == [1, 1, 2, 1]
    expected = {
        "vertices": 7,
        "edges": 5,
        "arcs": 10,
        "source": 1,
        "reached": 5,
        "depth": 3,
        "engine": "cpu",
    }
    assert expected.items() <= found.items()
    assert found["threads"] == 1
    assert found["validated"] is True
    assert found["edges_per_second"] == pytest.approx(found["edges_traversed"] / found["seconds"])
    assert found["edges_traversed"] == 4
    each = found["nanoseconds_per_edge"]
    examined = {
        way: [level for level in found["levels"] if level["direction"] == way] for way in each
    }
    assert each == pytest.approx(
        {
            way: 1e9
            * sum(level["seconds"] for level in levels if level["edges_examined"])
            / sum(level["edges_examined"] for level in levels)
            for way, levels in examined.items()
        }
    )
    assert [level["frontier"] for level in found["levels"]] == [1, 1, 2, 1]


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs a C++ compiler")
def test_counts_of_a_device(graph: Path) -> None:
    done = call("bfs", graph, "--source", 1, "--engine", "emulator", "--json")
    found = json.loads(done.stdout)
    counts = found["counts"]
    by_level = [level["edges_examined"] for level in found["levels"]]
    # Each of the four edges of the component is looked at from both ends.
    assert counts["edges_examined"] == sum(by_level) == 8
    assert counts["claims_won"] == 5
    assert counts["launches"] > sum(level["counts"]["launches"] for level in found["levels"]) > 0
    assert counts["pcie_sectors"] * 32 == found["slow_bytes"]
    assert counts["device_sectors"] > 0
    assert counts["hottest_word"]["array"] in counts["atomics_by_array"]
    table = call("bfs", graph, "--source", 1, "--engine", "emulator").stdout.splitlines()
    titles = next(line for line in table if "claims won" in line)
    assert next(line for line in table if line.startswith("  all")).split()[4] == "5"
    assert titles.endswith("busiest ÷ mean warp")
    assert json.loads(call("bfs", graph, "--source", 1, "--json").stdout)["counts"] is None


def test_table_and_path(graph: Path) -> None:
    words = ("bfs", graph, "--source", 1, "--target")
    done = call(*words, 10, "--engine", "cpu")
    assert "1 → 2 → 3 → 10" in done.stdout
    assert "direction" in done.stdout
    assert "5 of 7 vertices, depth 3" in done.stdout
    assert "not reached" in call(*words, 60, "--engine", "cpu").stdout
    # Who wants no levels gets the path alone, which both ends are searched for.
    done = call(*words, 10)
    assert "3 steps: 1 → 2 → 3 → 10" in done.stdout
    assert "direction" not in done.stdout
    assert "not reached" in call(*words, 60).stdout
    assert "not reached" in call(*words, 10, "--max-depth", 2).stdout
    assert json.loads(call(*words, 10, "--json").stdout)["reached"] == 5


def test_level_and_parent_files(graph: Path, tmp_path: Path) -> None:
    for suffix in ("npy", "csv", "tsv"):
        levels, parents = tmp_path / f"l.{suffix}", tmp_path / f"p.{suffix}"
        done = call("bfs", graph, "--source", "1,60", "--levels", levels, "--parents", parents)
        assert done.returncode == 0, done.stderr
    assert np.load(tmp_path / "l.npy").tolist() == [0, 1, 2, 2, 3, 1, 0]
    assert np.load(tmp_path / "l.npy").dtype == np.int32
    assert np.load(tmp_path / "p.npy").tolist() == [1, 1, 2, 2, 3, 60, 60]
    assert (tmp_path / "l.csv").read_text().splitlines()[:3] == ["id,level", "1,0", "2,1"]
    assert (tmp_path / "p.tsv").read_text().splitlines()[-1] == "60\t60"
    alone = tmp_path / "alone.csv"
    call("bfs", graph, "--source", 50, "--levels", alone)
    assert alone.read_text().splitlines()[1] == "1,-1"


def test_plot(graph: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    for suffix in ("svg", "png"):
        plot = tmp_path / f"levels.{suffix}"
        done = call("bfs", graph, "--source", 1, "--plot", plot)
        assert done.returncode == 0, done.stderr
        assert plot.stat().st_size > 1000
    assert "<svg" in (tmp_path / "levels.svg").read_text()


def test_bytes_from_disk_in_table_json_and_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="plots need matplotlib")
    oocbfs.convert(generators.kron(12), tmp_path / "g.ocg")
    arguments = ("bfs", tmp_path / "g.ocg", "--source", 1, "--engine", "disk", "--memory", "4G")
    done = call(*arguments, "--json", "--plot", tmp_path / "levels.svg")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["engine"] == "disk"
    moved = [level["slow_bytes"]["disk"] for level in found["levels"]]
    assert found["slow_bytes_by_tier"] == {"disk": sum(moved)}
    assert found["slow_bytes"] == sum(moved) > 0
    assert (tmp_path / "levels.svg").stat().st_size > 1000
    table = call(*arguments).stdout
    assert "disk bytes" in table.splitlines()[0]
    assert f"{sum(moved):,} bytes" in table


def test_thousands_of_levels_fit_on_a_screen(tmp_path: Path) -> None:
    n = 70_000
    oocbfs.convert((np.arange(n - 1), np.arange(1, n)), tmp_path / "path.ocg")
    done = call("bfs", tmp_path / "path.ocg", "--source", 0)
    assert "depth 69,999" in done.stdout
    assert len(done.stdout.splitlines()) < 60


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--source", "7"], "has no vertex 7"),
        (["--source", "-1"], "has no vertex -1"),
        (["--source", "99999999999999999999999"], "has no vertex"),
        (["--source", "1", "--target", "7"], "has no vertex 7"),
        (["--source", "1", "--levels", "x.txt"], "name it .npy, .csv, .tsv"),
        (["--source", "1", "--plot", "x.gif"], ".svg"),
        (["--source", "1", "--levels", "none/x.npy"], "no folder"),
        (["--source", "1", "--memory", "1M"], "a search needs"),
    ],
)
def test_refusals_are_one_line(
    graph: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    done = call("bfs", graph, *arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert len(said(done)) == 1, done.stderr
    assert message in said(done)[0]
    assert not list(tmp_path.iterdir())


def test_damaged_graph_is_one_line(graph: Path, tmp_path: Path) -> None:
    damaged = tmp_path / "g.ocg"
    damaged.write_bytes(graph.read_bytes())
    rewrite(damaged, Kind.TAILS, 0, 127)
    done = call("bfs", damaged, "--source", 1, "--direction", "top-down")
    assert done.returncode == 1
    assert "verify" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_engine_that_auto_falls_back_to_is_named(graph: Path) -> None:
    if ask_driver().problem is None:
        pytest.skip("there is a GPU")
    done = call("bfs", graph, "--source", 1, "--json")
    found = json.loads(done.stdout)
    said = [line for line in done.stderr.splitlines() if line.startswith("using the CPU: ")]
    assert len(said) == (find_spec("cupy") is not None)
    assert (found["fallback"] is None) == (not said)
    assert "using" not in call("bfs", graph, "--source", 1, "--engine", "cpu").stderr


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs a C++ compiler")
def test_emulator_with_a_plan_and_a_target(graph: Path) -> None:
    arguments = ("bfs", graph, "--source", 1, "--engine", "emulator")
    done = call(*arguments, "--resident-tails", "50%", "--target", 3, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["depth"], found["reached"], found["path"]) == (2, 4, [1, 2, 3])
    # Two rows have tails, in one sector, which a small level reads once.
    assert found["slow_bytes"] == 32
    whole = json.loads(call(*arguments, "--resident-tails", "100%", "--json").stdout)
    assert whole["slow_bytes"] == 0
    refused = call(*arguments, "--vram", "1K")
    assert refused.returncode == 1
    assert "1.0 KB of device memory are too little" in refused.stderr


def test_usage(graph: Path) -> None:
    assert call("bfs", graph).returncode == 2
    assert call("bfs", graph, "--source", "1,").returncode == 2
    assert call("bfs", graph, "--source", 1, "--direction", "up").returncode == 2


def test_data_frame(graph: Path) -> None:
    pytest.importorskip("pandas", reason="data frames need pandas")
    with oocbfs.open(graph) as opened:
        frame = opened.bfs(1, parents=True).to_pandas()
    assert list(frame.columns) == ["id", "level", "parent"]
    assert frame.loc[frame["id"] == 10, "level"].item() == 3


@pytest.mark.parametrize("engine", ["cpu", "disk", "emulator"])
@pytest.mark.parametrize("stop", [("--max-depth", 0), ("--max-depth", 1), ("--target", 8)])
def test_levels_of_a_search_that_stops_early(
    tmp_path: Path, engine: str, stop: tuple[str, int], capsys: pytest.CaptureFixture[str]
) -> None:
    """The last level is shown by itself: it was found, and not expanded."""
    if engine == "emulator" and shutil.which("g++") is None:
        pytest.skip("the emulator needs a C++ compiler")
    rim = np.arange(1, 97)
    edges = (np.concatenate([0 * rim, rim, [97]]), np.concatenate([rim, rim + 97, [500]]))
    oocbfs.convert(edges, tmp_path / "star.ocg")
    arguments = ["bfs", tmp_path / "star.ocg", "--source", 0, "--engine", engine, *stop]
    assert main([*map(str, arguments), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    expected = [1] if stop == ("--max-depth", 0) else [1, 96]
    assert found["level_sizes"] == expected
    assert [level["frontier"] for level in found["levels"]] == expected
    assert [level["num_levels"] for level in found["levels"]] == [1] * len(expected)
    assert [level["direction"] == "stopped" for level in found["levels"]][-2:] == [False, True][
        -len(expected) :
    ]
    assert main([*map(str, arguments)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1 : 1 + len(expected)]]
    assert [(row[0], row[2]) for row in rows] == [(str(i), str(n)) for i, n in enumerate(expected)]
