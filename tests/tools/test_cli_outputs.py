"""Outputs for other programs: tables on standard output, Parquet, graphs in their formats."""

import csv
import gzip
import json
from pathlib import Path

import duckdb
import numpy as np
import polars
import pytest
import scipy.sparse

from oocbfs.generate import generators
from tests.support.command_line import call, said
from tests.support.shared import SharedGraphs
from tests.support.small_graph import convert_small


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return convert_small(tmp_path_factory.mktemp("outputs") / "g.ocg")


LEVELS = [(1, 0), (2, 1), (3, 2), (4, 2), (10, 3), (50, -1), (60, -1)]


def test_levels_go_to_standard_output_and_the_report_does_not(graph: Path) -> None:
    done = call("bfs", graph, "--source", 1, "--levels", "-")
    assert done.returncode == 0
    rows = list(csv.reader(done.stdout.splitlines()))
    assert rows[0] == ["id", "level"]
    assert [tuple(map(int, row)) for row in rows[1:]] == LEVELS
    assert "reached" in done.stderr
    assert "wrote" not in done.stderr


def test_labels_and_parents_go_there_too(graph: Path) -> None:
    labels = call("components", graph, "--labels", "-").stdout.splitlines()
    assert labels == ["id,component", *(f"{i},{1 if i < 50 else 50}" for i, _ in LEVELS)]
    parents = call("bfs", graph, "--source", 1, "--parents", "-").stdout.splitlines()
    assert parents[1:3] == ["1,1", "2,1"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bfs", "--source", 1, "--levels", "-", "--json"), "--levels - and --json both print"),
        (("bfs", "--source", 1, "--levels", "-", "--parents", "-"), "--parents - both print"),
        (("components", "--labels", "-", "--json"), "--labels - and --json both print"),
        (("batch", "--random", 2, "-o", "-", "--json"), "--json and -o - both write"),
        (("batch", "--random", 2, "-o", "-", "--resume"), "cannot be resumed"),
        (("batch", "--random", 2, "-o", "-", "--table", "parquet"), "parquet needs a folder"),
        (("batch", "--random", 2, "-o", "-", "--emit", "levels"), "levels are written to a folder"),
        (("report", "-o", "page.txt"), "name the page .html"),
        (("export", "-o", "g.xyz"), "npz, metis, graph, sg"),
        (("export", "-o", "g.sg.gz"), "sg is not written compressed"),
    ],
)
def test_refusals_are_one_line(
    graph: Path, tmp_path: Path, arguments: tuple[object, ...], message: str
) -> None:
    done = call(arguments[0], graph, *arguments[1:], cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    (line,) = said(done)
    assert message in line
    assert not list(tmp_path.iterdir())


def test_parquet_says_what_it_is_about(graph: Path, tmp_path: Path) -> None:
    names = {name: tmp_path / f"{name}.parquet" for name in ("levels", "parents", "labels")}
    done = call(
        *("bfs", graph, "--source", 1),
        *("--levels", names["levels"], "--parents", names["parents"]),
    )
    assert done.returncode == 0, done.stderr
    assert call("components", graph, "--labels", names["labels"]).returncode == 0
    assert polars.read_parquet(names["levels"]).rows() == LEVELS
    joined = duckdb.execute(
        f"select id, level, parent, component from '{names['levels']}' "
        f"join '{names['parents']}' using (id) join '{names['labels']}' using (id) order by id"
    ).fetchall()
    assert joined[:3] == [(1, 0, 1, 1), (2, 1, 1, 1), (3, 2, 2, 1)]
    assert joined[-1] == (60, -1, -1, 50)
    about = polars.read_parquet_metadata(names["levels"])
    assert about["oocbfs.graph"] == "g.ocg"
    assert json.loads(about["oocbfs.sources"]) == [1]
    assert (about["oocbfs.vertices"], about["oocbfs.directed"]) == ("7", "false")
    assert polars.read_parquet_metadata(names["labels"])["oocbfs.components"] == "2"


@pytest.mark.parametrize("form", ["csv", "tsv", "jsonl", "csv.gz", "jsonl.zst", "parquet"])
def test_batch_tables_hold_the_same(graph: Path, tmp_path: Path, form: str) -> None:
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("1,10\n50,60\n1,60\n")
    for name, what in (("summary", ("--random", 7)), ("pairs", ("--emit", "pairs", pairs))):
        for table in ("csv", form):
            folder = tmp_path / f"{name}-{table}"
            if not folder.exists():
                done = call("batch", graph, *what, "--table", table, "-o", folder)
                assert done.returncode == 0, done.stderr
        expected = polars.read_csv(tmp_path / f"{name}-csv" / f"{name}.csv")
        path = tmp_path / f"{name}-{form}" / f"{name}.{form}"
        if form.startswith("jsonl"):
            found = polars.from_pandas(duckdb.execute(f"from read_json_auto('{path}')").df())
        elif form == "parquet":
            found = polars.read_parquet(path)
            assert polars.read_parquet_metadata(path)["oocbfs.emit"] == name
        else:
            found = polars.read_csv(path, separator="\t" if form[0] == "t" else ",")
        assert found.columns == expected.columns
        for column in found.columns:
            values = found[column].to_list()
            if column == "level_sizes" and not isinstance(values[0], str):
                values = [" ".join(map(str, sizes)) for sizes in values]
            assert values == expected[column].to_list(), column


def test_batch_prints_rows(graph: Path, tmp_path: Path) -> None:
    call("batch", graph, "--random", 7, "-o", tmp_path / "a")
    done = call("batch", graph, "--random", 7, "-o", "-")
    assert done.returncode == 0
    assert done.stdout == (tmp_path / "a" / "summary.csv").read_text()
    assert "searched" in done.stderr
    (tmp_path / "pairs.csv").write_text("1,10\n50,60\n1,60\n")
    pairs = call(
        *("batch", graph, "--emit", "pairs", tmp_path / "pairs.csv"), *("-o", "-", "--table", "tsv")
    )
    assert pairs.stdout == "source\ttarget\tdistance\n1\t10\t3\n50\t60\t1\n1\t60\t-1\n"


def test_edges_as_parquet(graph: Path, tmp_path: Path) -> None:
    assert call("export", graph, "-o", tmp_path / "e.parquet").returncode == 0
    assert sorted(polars.read_parquet(tmp_path / "e.parquet").rows()) == [
        *((1, 2), (2, 3), (2, 4), (3, 10), (50, 60)),
    ]
    assert duckdb.execute(f"select max(target) from '{tmp_path}/e.parquet'").fetchall() == [(60,)]
    assert polars.read_parquet_metadata(tmp_path / "e.parquet")["oocbfs.edges"] == "5"
    made = call("generate", "kron", "--scale", 8, "-o", tmp_path / "k.parquet")
    assert made.returncode == 0, made.stderr
    text = call("generate", "kron", "--scale", 8, "-o", "-").stdout.splitlines()
    rows = polars.read_parquet(tmp_path / "k.parquet").rows()
    assert [f"{u} {v}" for u, v in rows] == [line for line in text if line[0] != "#"]


def test_exports_for_other_programs_say_what_becomes_of_ids(graph: Path, tmp_path: Path) -> None:
    done = call("export", graph, "-o", tmp_path / "g.npz")
    assert "which are in the array ids" in done.stderr
    loaded = scipy.sparse.load_npz(tmp_path / "g.npz")
    assert loaded.shape == (7, 7)
    assert np.load(tmp_path / "g.npz")["ids"].tolist() == [i for i, _ in LEVELS]
    done = call("export", graph, "-o", tmp_path / "g.metis.gz")
    assert "numbered from 1" in done.stderr
    assert gzip.decompress((tmp_path / "g.metis.gz").read_bytes()).startswith(b"7 5\n2\n")
    found = json.loads(call("export", graph, "-o", tmp_path / "g.sg", "--json").stdout)
    assert found["edges"] == 5


def test_scipy_finds_the_same_components(shared_graphs: SharedGraphs, tmp_path: Path) -> None:
    path = shared_graphs.make("outputs-kron12", lambda: generators.kron(12))
    assert call("export", path, "-o", tmp_path / "g.npz").returncode == 0
    loaded = scipy.sparse.load_npz(tmp_path / "g.npz")
    count, _ = scipy.sparse.csgraph.connected_components(loaded, directed=False)
    assert count == json.loads(call("components", path, "--json").stdout)["components"]
