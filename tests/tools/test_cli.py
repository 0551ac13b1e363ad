"""The command line as a person or a script uses it."""

import json
from pathlib import Path

import numpy as np
import pytest

from oocbfs import __version__
from oocbfs.cli import VERBS, main
from tests.support import children
from tests.support.command_line import call, run, said


@pytest.fixture
def edges(tmp_path: Path) -> Path:
    path = tmp_path / "edges.txt"
    path.write_text("# a triangle, a tail, a loop and a duplicate\n1 2\n2 3\n3 1\n3 9\n9 9\n2 1\n")
    return path


def test_help_imports_nothing_heavy() -> None:
    """numba, numpy and tqdm alone take longer than help may; what is not imported costs no time."""
    code = (
        "import sys; from oocbfs.cli import build_parser; build_parser().format_help();"
        "print(sorted({'numpy', 'numba', 'tqdm', 'zstandard', 'cupy'} & set(sys.modules)))"
    )
    done = children.run_python(code)
    assert done.stdout.strip() == "[]"


def test_version_and_help() -> None:
    assert run("--version").stdout == f"oocbfs {__version__}\n"
    shown = run("--help").stdout
    assert all(verb in shown for verb in VERBS)
    for verb in VERBS:
        assert call(verb, "--help").returncode == 0


def test_usage_errors_exit_with_2() -> None:
    assert run().returncode == 2
    assert call("convert").returncode == 2
    assert call("convert", "x", "-o", "y", "--order", "none").returncode == 2
    assert call("generate", "kron", "-o", "y").returncode == 2


def test_options_may_stand_between_operands(tmp_path: Path, edges: Path) -> None:
    more, graph = tmp_path / "more.txt", tmp_path / "g.ocg"
    more.write_text("9 4\n")
    report = call("convert", edges, "--json", more, "--threads", 1, "-o", graph)
    assert json.loads(report.stdout)["edges"] == 5
    near = "near", graph, "--depth", 1, "-o", "-"
    assert call(*near, "1,9").stdout == call("near", graph, "1,9", *near[2:]).stdout != ""
    assert "unrecognized arguments: 3\n" in call(*near, "1", 3).stderr
    # Behind "--" nothing is an option.
    assert "unrecognized arguments" in call(*near, "--", "1", "--json").stderr


def test_convert_info_verify_export(tmp_path: Path, edges: Path) -> None:
    graph = tmp_path / "g.ocg"
    done = run("convert", edges, "-o", graph, "--json")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["vertices"], report["edges"], report["arcs"]) == (10, 4, 8)
    assert (report["edges_read"], report["loops"], report["duplicates"]) == (6, 1, 1)
    assert report["vertices_in_input"] == 4

    info = json.loads(run("info", graph, "--json").stdout)
    for key in ("vertices", "edges", "arcs", "directed", "order", "max_degree"):
        assert info[key] == report[key]
    assert info["bits_per_arc"] == report["bits_per_arc"] == 8 * graph.stat().st_size / 8
    assert info["file_bytes"] == graph.stat().st_size
    assert info["format_version"] == 1

    assert "sound" in run("verify", graph).stdout
    out = tmp_path / "back.csv"
    assert run("export", graph, "-o", out).returncode == 0
    rows = [line for line in out.read_text().splitlines() if not line.startswith("#")]
    assert sorted(rows) == ["1,2", "1,3", "2,3", "3,9"]


def test_tables_for_people(tmp_path: Path, edges: Path) -> None:
    graph = tmp_path / "g.ocg"
    shown = call("convert", edges, "-o", graph, "--directed", "--ids", "compact").stdout
    for text in ("directed, with its transpose", "1 dropped", "bits per arc", "peak memory"):
        assert text in shown
    assert "in_tails" in call("info", graph).stdout


def test_standard_input_and_output(tmp_path: Path) -> None:
    graph = tmp_path / "g.ocg"
    done = run("convert", "-", "-o", graph, input="0 1\n1 2\n")
    assert done.returncode == 0, done.stderr
    shown = run("export", graph, "-o", "-").stdout.splitlines()
    assert [line for line in shown if not line.startswith("#")] == ["0 1", "1 2"]


@pytest.mark.parametrize(
    ("model", "parameters", "vertices"),
    [
        ("kron", ["--scale", "8"], 256),
        ("rmat", ["--scale", "8", "--a", "0.4", "--shuffle"], 256),
        ("uniform", ["--vertices", "300", "--edges", "1000"], 300),
        ("grid2d", ["--rows", "12", "--columns", "30"], 360),
        ("grid3d", ["--x", "4", "--y", "5", "--z", "6", "--wrap"], 120),
        ("powerlaw", ["--vertices", "500", "--mean-degree", "8", "--max-degree", "90"], 500),
    ],
)
def test_generate_text_and_graph_agree(
    tmp_path: Path, model: str, parameters: list[str], vertices: int
) -> None:
    graph, text, again = tmp_path / "g.ocg", tmp_path / "g.txt.zst", tmp_path / "again.ocg"
    assert main(["generate", model, *parameters, "-o", str(graph)]) == 0
    assert main(["generate", model, *parameters, "-o", str(text)]) == 0
    assert main(["convert", str(text), "-o", str(again), "--ids", "dense"]) == 0
    from tests.support.strategies import stored_edges

    assert stored_edges(graph) == stored_edges(again)
    from oocbfs.search.graph import open as open_graph

    with open_graph(graph) as opened:
        assert opened.num_vertices == vertices


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["info", "none.ocg"], "none.ocg: cannot be opened"),
        (["info", "edges.txt"], "oocbfs convert edges.txt -o edges.ocg"),
        (["convert", "none.txt", "-o", "g.ocg"], "none.txt"),
        (["convert", "bad.txt", "-o", "g.ocg"], "bad.txt:2"),
        (["convert", "edges.txt", "-o", "none/g.ocg"], "there is no folder"),
        (["convert", "edges.txt", "-o", "bad.txt"], "--force"),
        (["convert", "edges.txt", "-o", "g.ocg", "--memory", "1M"], "needs at least"),
        (["generate", "kron", "--scale", "0", "-o", "g.txt"], "scale"),
    ],
)
def test_refusals_are_one_line_and_leave_nothing(
    tmp_path: Path, edges: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "bad.txt").write_text("1 2\n3 x\n")
    before = sorted(tmp_path.iterdir())
    done = call(*arguments, cwd=tmp_path)
    assert done.returncode == 1
    assert len(said(done)) == 1, done.stderr
    assert message in said(done)[0]
    assert "Traceback" not in done.stderr
    assert sorted(tmp_path.iterdir()) == before


def test_info_needs_no_kernels() -> None:
    program = (
        "import sys; from oocbfs.cli import main; main(['info', sys.argv[1]]); "
        "assert 'numba' not in sys.modules"
    )
    graph = Path(__file__).parents[1] / "golden" / "worked.ocg"
    children.run_python(program, graph)


def test_empty_input_is_an_empty_graph(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("# nothing\n")
    graph = tmp_path / "g.ocg"
    assert call("convert", tmp_path / "empty.txt", "-o", graph, "--allow-empty").returncode == 0
    info = json.loads(call("info", graph, "--json").stdout)
    assert (info["vertices"], info["edges"]) == (0, 0)
    assert "sound" in call("verify", graph).stdout


def test_npy_input(tmp_path: Path) -> None:
    np.save(tmp_path / "edges.npy", np.array([[0, 1], [1, 2]], np.uint32))
    done = call("convert", tmp_path / "edges.npy", "-o", tmp_path / "g.ocg", "--json")
    assert json.loads(done.stdout)["edges"] == 2
