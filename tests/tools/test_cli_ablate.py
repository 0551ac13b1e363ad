"""``oocbfs ablate`` as a person or a script uses it: real methods on small graphs."""

import contextlib
import csv
import json
import os
import shutil
import signal
import time
from pathlib import Path
from statistics import median
from xml.etree import ElementTree

import numpy as np
import pytest

import oocbfs
from oocbfs.ablation.plan import prepare
from oocbfs.ablation.runs import flat
from oocbfs.generate import generators
from oocbfs.settings import Settings
from tests.support.command_line import Started, call, run, said
from tests.support.shared import SharedGraphs

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)
METHODS = "v1,v3.3,auto"


@pytest.fixture(scope="module")
def graph(shared_graphs: SharedGraphs) -> Path:
    return shared_graphs.make("ablate-rmat-7", lambda: generators.rmat(7, seed=5))


def test_medians_are_those_of_the_runs(graph: Path, tmp_path: Path) -> None:
    table = tmp_path / "counts.csv"
    words = ("--methods", METHODS, "--sources", 2, "--seeds", 3, "--threads", 1)
    done = call("ablate", graph, *words, "--csv", table)
    assert done.returncode == 0, done.stderr
    assert said(done) == [f"wrote {table}"]
    rows = {row["method"]: row for row in csv.DictReader(table.read_text().splitlines())}
    assert list(rows) == METHODS.split(",")
    plan = prepare(str(graph), [], num_sources=2, num_seeds=3, threads=1)
    with oocbfs.open(graph) as opened:
        for method, row in rows.items():
            results = [
                opened.bfs(
                    source, engine="emulator", options=Settings(method=method, schedule=schedule)
                )
                for source in plan.expected
                for schedule in plan.schedules
            ]
            counts = [flat(result.stats.counts) for result in results]
            for name in ("launches", "edges_examined", "queue_writes", "atomics", "pcie_sectors"):
                assert float(row[name]) == median(count[name] for count in counts), (method, name)
            share = median(count["pcie_sectors"] for count in counts) * 32 / plan.graph_bytes
            assert float(row["pcie_share"]) == pytest.approx(share)
    assert rows["v1"]["paper"].startswith("21,245 ms")


def test_the_table_has_a_row_for_each_method(graph: Path) -> None:
    done = call("ablate", graph, "--methods", METHODS, "--sources", 1, "--seeds", 1, "--threads", 1)
    lines = done.stdout.splitlines()
    assert lines[0].split()[:3] == ["method", "PCIe", "launches"]
    assert [line.split()[0] for line in lines[1:4]] == METHODS.split(",")
    assert "21,245 ms, Friendster" in lines[1]
    assert "levels equal to the CPU engine's" in lines[-1]


def test_processes_find_what_one_finds(graph: Path) -> None:
    words = ("ablate", graph, "--methods", METHODS, "--sources", 2, "--seeds", 1, "--json")
    alone, several = run(*words, "--threads", 1), run(*words, "--threads", 3)
    assert (alone.returncode, several.returncode) == (0, 0), alone.stderr + several.stderr
    found = json.loads(alone.stdout)
    assert found == json.loads(several.stdout)
    assert [row["method"] for row in found["methods"]] == METHODS.split(",")
    assert len(found["sources"]) == 2
    assert found["schedules"] == [{"seed": 1, "blocks": 3, "resident_blocks": 2}]


def test_picture_and_page(graph: Path, tmp_path: Path) -> None:
    picture, page = tmp_path / "a.svg", tmp_path / "a.html"
    words = ("--methods", "evolution,merrill,xbfs", "--sources", 1, "--seeds", 1)
    done = call("ablate", graph, *words, "--plot", picture, "--report", page, "--threads", 2)
    assert done.returncode == 0, done.stderr
    root = ElementTree.fromstring(picture.read_text())
    drawn = {element.text for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert {"The evolution of the v3.3 report", "All methods", "21,245"} <= drawn
    assert {"Frontiers, level by level", "Who does the work", "xbfs", "double-scan"} <= drawn
    text = page.read_text()
    assert text.count("<tr>") == 1 + 6 + 7 + 6
    assert text.count("<svg ") > 10
    for outside in ("src=", "href=", "@import", "url("):
        assert outside not in text


def test_a_queue_that_overflows_is_a_row(tmp_path: Path) -> None:
    """All vertices of one half find those of the other at the same time."""
    half = np.arange(120)
    oocbfs.convert(np.stack(np.meshgrid(half, half + 120), -1).reshape(-1, 2), tmp_path / "g.ocg")
    table, page, picture = (tmp_path / f"a.{ending}" for ending in ("csv", "html", "svg"))
    files = ("--csv", table, "--report", page, "--plot", picture)
    method = "two-phase:filter=none,gather=serial"
    words = ("--methods", f"{method},v1", "--sources", 1, "--seeds", 2, "--threads", 1)
    done = call("ablate", tmp_path / "g.ocg", *words, *files)
    assert done.returncode == 0, done.stderr
    overflowed, row = csv.DictReader(table.read_text().splitlines())
    assert overflowed["failure"].startswith(f"method {method}: level 3 needs room for")
    assert "2 of 2 runs" in overflowed["failure"]
    assert overflowed["launches"] == ""
    assert row["failure"] == ""
    assert float(row["launches"]) > 0
    assert overflowed["failure"] in done.stdout
    assert overflowed["failure"] in page.read_text()
    assert "overflows" in picture.read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--methods", "v9"], "there is no group or method 'v9'"),
        (["--methods", "list"], "does not run on emulator"),
        (["--csv", "a.txt"], "name the file for --csv .csv"),
        (["--plot", "a.png"], "name the file for --plot .svg"),
        (["--report", "a.htm"], "name the file for --report .html"),
        (["--report", "there.html"], "already exists"),
        (["--csv", "none/a.csv"], "there is no folder"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(
    graph: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    (tmp_path / "there.html").write_text("mine")
    done = call("ablate", graph, *words, cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = said(done)
    assert line.startswith("oocbfs: ")
    assert message in line
    assert [path.name for path in tmp_path.iterdir()] == ["there.html"]


def holders(path: Path) -> list[str]:
    """Return the other processes that have a file mapped."""
    found = []
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with contextlib.suppress(OSError):
            if bytes(path) in maps.read_bytes() and maps.parent.name != str(os.getpid()):
                found.append(maps.parent.name)
    return found


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks at processes in /proc")
@pytest.mark.parametrize("threads", [1, 2])
def test_an_interruption_leaves_nothing(graph: Path, tmp_path: Path, threads: int) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    mine = Path(shutil.copy(graph, tmp_path / "mine.ocg"))
    words = ("--methods", METHODS, "--sources", 100, "--seeds", 500, "--threads", threads)
    started = Started(tmp_path / "said", "ablate", mine, *words, "--csv", folder / "a.csv")
    while len(holders(mine)) < threads:
        time.sleep(0.1)
    time.sleep(1)
    started.send_signal(signal.SIGINT)
    code, messages = started.finish()
    assert code == 130, messages
    assert "interrupted; nothing was written" in messages
    assert "Traceback" not in messages
    assert not list(folder.iterdir())
    assert holders(mine) == []
