"""Benchmarks run to their end on tiny graphs; no speed is asserted."""

import csv
import json
import pickle
import re
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import oocbfs
from oocbfs.generate import generators
from tests.benchmarks import (
    batch,
    bfs,
    budgets,
    cluster,
    codec,
    components,
    convert,
    disk,
    distances,
    methods,
    names,
    near,
    networkx,
    outofcore,
    pairs,
    pcie,
    resident,
    to_ids,
    workers,
)
from tests.benchmarks.common import Run
from tests.support.command_line import call
from tests.support.exhaustive import ALL


def test_convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    convert.main(["--scale", "8", "--repeats", "1", "--folder", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "| 512M |" in shown
    assert "MB/s" in shown
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_codec(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OOCBFS_GRAPHS", raising=False)
    folder, pages = tmp_path / "folder", tmp_path / "pages.txt"
    folder.mkdir()
    links = [(page, page // 10 * 10 + link) for page in range(400) for link in range(10)]
    pages.write_text("".join(f"{u} {v}\n" for u, v in links))
    monkeypatch.setattr(codec, "timed", timed_here)
    monkeypatch.setattr(codec, "answer", answer_here)
    few = "--scale 8 --size 40K --limits 1M --memory all --sources 2 --repeats 1"
    codec.main([*few.split(), "--graph", str(pages), "--folder", str(folder)])
    shown = capsys.readouterr().out
    assert "| pages.txt, shuffled | communities |" in shown
    assert re.search(r"\npages.txt \d+ times, \d+ MB raw", shown)
    assert "| 1M a second |" in shown
    assert shown.count("| Kronecker 8 |") == 8
    assert not list(folder.iterdir())


@pytest.mark.parametrize("graph", ["--ring 1000 --letters 20", "--scale 8"][: 2 if ALL else 1])
def test_names(tmp_path: Path, capsys: pytest.CaptureFixture[str], graph: str) -> None:
    names.main([*graph.split(), "--folder", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "| names |" in shown
    assert "all names came back" in shown
    assert not list(tmp_path.iterdir())


def test_to_ids(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(generators.rmat(8, seed=1), path, order="degree")
    to_ids.main([str(path), "--scale", "2", "--vertices", "1000", "--runs", "1"])
    shown = capsys.readouterr().out
    assert "1,000 levels on the host" in shown
    assert "| H100 PCIe |" in shown


def test_pairs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(generators.kron(8), path)
    few = ["--pairs", "9", "--table", "20", "--whole", "5", "--peer-pairs", "5"]
    pairs.main(["--graph", str(path), *few])
    shown = capsys.readouterr().out
    assert "| distance(a, b) | 9 |" in shown
    assert "20 pairs in one table" in shown
    pairs.main(["--graph", str(path), "--pairs", "9", "--memory", "2G"])
    shown = capsys.readouterr().out
    assert "| cold |" in shown
    assert "| warm |" in shown


def test_near(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(generators.kron(8), path)
    near.main(["--graph", str(path), "--seeds", "30", "--whole", "20"])
    shown = capsys.readouterr().out
    assert "| 30 |" in shown
    assert "levels of 20 seeds are those of bfs_many" in shown


def timed_here(command: Sequence[object], **_: str) -> Run:
    """Run a command of ours in this process: a new one would take most of its time to start."""
    words = [str(word) for word in command]
    assert words[:3] == [sys.executable, "-m", "oocbfs"]
    if "--memory" in words:  # which is for a whole process, and this one may be larger
        place = words.index("--memory")
        del words[place : place + 2]
    began = time.perf_counter()
    done = call(*words[3:])
    assert done.returncode == 0, done.stderr
    return Run(time.perf_counter() - began, peak_bytes=1 << 20)


def answer_here(*words: object) -> dict[str, Any]:
    """Return what a verb of ours says as JSON, in this process."""
    done = call(*map(str, words), "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_convert_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(convert, "timed", timed_here)
    arguments = ["--tables", "parquet,text,merge,where", "--scale", "8", "--repeats", "1"]
    convert.main([*arguments, "--folder", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "| Parquet |" in shown
    assert "| two columns, --columns dst,src |" in shown
    assert "| graph and text, --order keep |" in shown
    assert "| --where 'day = 41' |" in shown
    assert not list(tmp_path.iterdir())


def test_bfs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    arguments = (
        "--scale 9 --side 12 --graphs kron,uniform,grid2d --peers scipy --sources 3 --rounds 1"
    )
    plot = tmp_path / "ratios.png"
    bfs.main([*arguments.split(), "--plot", str(plot), "--folder", str(tmp_path)])
    shown = capsys.readouterr().out
    assert shown.count("| scipy |") == 3
    assert shown.count("| random reads, 2 threads |") == 3
    assert plot.stat().st_size > 1000
    assert list(tmp_path.iterdir()) == [plot]
    few = "--scale 8 --graphs kron --peers gapbs --sources 2 --rounds 1 --directed"
    bfs.main([*few.split(), "--folder", str(tmp_path)])
    assert "| kron 8 | oocbfs, 2 threads |" in capsys.readouterr().out


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs a C++ compiler")
def test_resident(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    oocbfs.convert(generators.rmat(10, seed=1), tmp_path / "g.ocg")
    graph, kept = str(tmp_path / "g.ocg"), str(tmp_path / "counts.json")
    resident.main([graph, "--ranges", "--sources", "2", "--shares", "0,10"])
    shown = capsys.readouterr().out
    assert "g.ocg: median (worst)" in shown
    assert "| 10 % |" in shown
    arguments = [graph, "--sources", "1", "--shares", "0,100", "--keep", kept]
    resident.main([*arguments, "--forced", "0"])
    assert capsys.readouterr().out.count("| 100 % | auto |") == 1
    resident.main([*arguments, "--ways", "gswitch", "--against", kept])
    assert re.search(r"\| g \| [\d., ]+ \| [\d., ]+ \| 1.00, 1.00 \|", capsys.readouterr().out)


def test_pcie(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib")
    if shutil.which("g++") is None:
        pytest.skip("the emulator needs a C++ compiler")
    arguments = "--scale 11 --vertices 6000 --graphs kron,powerlaw --sources 2 --emulate 2"
    plot = tmp_path / "shares.png"
    pcie.main([*arguments.split(), "--plot", str(plot), "--folder", str(tmp_path)])
    shown = capsys.readouterr().out
    assert shown.count("| powerlaw 6,000 |") == len(pcie.CASES) + 2
    counts = re.findall(r"\| (?:kron|powerlaw) [\d,]+ \| \d+ \| ([\d,]+) \| ([\d,]+) \|", shown)
    assert len(counts) == 4
    assert all(emulated == counted != "0" for emulated, counted in counts)
    assert list(tmp_path.iterdir()) == [plot]
    pcie.main(["--scale", "11", "--graphs", "kron", "--sources", "2", "--policies"])
    shares = re.findall(r"\| kron 11 \| (.+) \| [\d.]+% \| ([\d.]+)%", capsys.readouterr().out)
    worst = {policy: float(share) for policy, share in shares}
    assert set(worst) == {policy.value for policy in pcie.Policy}
    assert 0 < worst[pcie.Policy.HINDSIGHT.value] <= worst[pcie.Policy.COSTS.value]


def test_outofcore(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outofcore.main(
        ["--scale", "10", "--vertices", "2000", "--sources", "2", "--folder", str(tmp_path)]
    )
    shown = capsys.readouterr().out
    assert shown.count("| warm, ratio of the two |") == 2
    assert not list(tmp_path.iterdir())


def test_budgets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(generators.rmat(10, seed=1), path, ids="dense")
    budgets.main([str(path), "--budgets", "all,1G", "--sources", "2"])
    assert "| 1G | cpu |" in capsys.readouterr().out


def test_disk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disk.main(["--megabytes", "2", "--reads", "2", "--threads", "1,2", "--folder", str(tmp_path)])
    assert capsys.readouterr().out.count("| direct |") == 5


def test_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--scale 9 --sources 9 --rounds 2 --peers scipy --peer-sources 3"
    batch.main([*arguments.split(), "--folder", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "| batch, all levels kept |" in shown
    assert "scipy, 9 runs, scaled up from 3" in shown
    assert not list(tmp_path.iterdir())


def test_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--scale 10 --sources 2 --rounds 1 --parts 2 --clusters here"
    cluster.main([*arguments.split(), "--folder", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "| here |" in shown
    assert "of plain bitmaps" in shown


def test_components(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    components.main(["--scale", "9", "--rounds", "2", "--folder", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "| SciPy |" in shown
    assert "tail bytes decoded" in shown
    assert not list(tmp_path.iterdir())


def test_networkx(capsys: pytest.CaptureFixture[str]) -> None:
    networkx.main(["--scale", "7", "--rounds", "1", "--many", "5"])
    shown = capsys.readouterr().out
    assert "| eccentricity of 5 nodes |" in shown
    assert "| to a file |" in shown


@pytest.mark.long
@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs a C++ compiler")
def test_methods(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    arguments = "--scale 7 --side 9 --sources 1 --seeds 1 --threads 2 --graphs kron,grid"
    words = [*arguments.split(), "--folder", str(tmp_path), "--page", str(page)]
    methods.main(words)
    assert capsys.readouterr().out.count("kron: ") > 30
    # Not all graphs of the page are there, and none is run again.
    assert not page.exists()
    methods.main(words)
    assert capsys.readouterr().out == ""
    measured = pickle.loads((tmp_path / "kron.counts").read_bytes())
    filled = methods.fill(methods.TEMPLATE.read_text(), dict.fromkeys(methods.TITLES, measured))
    assert "{" not in filled
    assert filled.count("| `two-phase:filter=mask` |") == len(methods.TITLES)
    assert pieces_follow_each_other(methods.TEMPLATE.read_text(), filled)


def test_the_page_of_methods_was_made_from_its_words() -> None:
    page = methods.PAGE.read_text()
    assert pieces_follow_each_other(methods.TEMPLATE.read_text(), page)
    assert "{" not in page


def pieces_follow_each_other(template: str, page: str) -> bool:
    """Return whether a page is a template in which only figures and tables were put."""
    place = 0
    for piece in re.split(r"\{[^}]*\}", template):
        found = page.find(piece, place)
        if found < 0:
            return False
        place = found + len(piece)
    return True


@pytest.mark.long
@pytest.mark.skipif(not ALL, reason="starts workers of Dask and MPI")
def test_workers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = "--scale 10 --sources 2 --rounds 1 --kills 1"
    workers.main([*arguments.split(), "--folder", str(tmp_path)])
    shown = capsys.readouterr().out
    assert "| dask |" in shown
    assert "| seconds longer if a worker is killed in level 2 |" in shown
    assert not list(tmp_path.iterdir())


def test_earlier_runs_are_tables_of_one_form() -> None:
    runs = sorted((Path(bfs.__file__).parent / "runs").glob("*.csv"))
    assert runs
    for path in runs:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert rows
        for row in rows:
            assert list(row) == ["date", "graph", "who", "what", "unit", "value", "note"], path
            assert float(row["value"].replace(",", "")) > 0, (path, row)


def test_distances(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "directed.ocg"
    oocbfs.convert(generators.kron(7), path, directed=True)
    words = ["--scale", "7", "--side", "6", "--rounds", "1", "--peers", "networkx"]
    distances.main([*words, "--graphs", str(path)])
    shown = capsys.readouterr().out
    assert shown.count("| oocbfs |") == 4
    assert shown.count("| networkx, diameter | ") == 3
    assert "| networkx, diameter | 10 |" in shown  # the grid
    distances.main(["--memory", "2G", "--vertices", "1000"])
    assert "| average distance |" in capsys.readouterr().out
