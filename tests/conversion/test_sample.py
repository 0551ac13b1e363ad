"""A sample is the graph of the edges that a hash chooses, wherever and however they are read."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.conversion.plan import ConvertPlan, MemoryWatch
from oocbfs.errors import QueryError
from oocbfs.kernels.convert.generate import stream_key
from tests.support.command_line import call
from tests.support.strategies import name_edges

_WORD = (1 << 64) - 1
EDGES = np.random.default_rng(1).integers(0, 500, (5000, 2)).astype(np.uint64)


def draw(key: int, counter: int) -> int:
    """Draw a number of SplitMix64, in plain Python."""
    z = (key + counter * 0x9E3779B97F4A7C15) & _WORD
    return mix(z)


def mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
    return z ^ (z >> 31)


def in_sample(edge: Any, *, edges: float = 1, vertices: float = 1, seed: int = 1) -> bool:
    key = int(stream_key(seed, 100))
    ends = [draw(key, int(end)) for end in edge]
    both = mix(sum(ends) & _WORD)
    return max(ends) < vertices * 2**64 and both < edges * 2**64


def convert(inputs: Any, path: Path, **settings: Any) -> Any:
    return oocbfs.convert(inputs, path, force=True, **{"threads": 2, **settings})


WISHES: list[dict[str, Any]] = [
    {"sample": "10%"},
    {"sample": 0.3, "seed": 7},
    {"sample_vertices": "50%"},
    {"sample": "50%", "sample_vertices": "50%", "seed": 2**64 - 1},
    {"sample": "100%"},
]


@pytest.mark.parametrize("wish", WISHES, ids=str)
@pytest.mark.parametrize("directed", [False, True])
def test_a_sample_is_the_graph_of_what_is_chosen(
    tmp_path: Path, wish: dict[str, Any], directed: bool
) -> None:
    shares = {
        name: float(share.rstrip("%")) / 100 if isinstance(share, str) else share
        for name, share in (
            ("edges", wish.get("sample", 1)),
            ("vertices", wish.get("sample_vertices", 1)),
        )
    }
    chosen = [edge for edge in EDGES if in_sample(edge, **shares, seed=wish.get("seed", 1))]
    assert 0 < len(chosen) <= len(EDGES)
    plain, found = tmp_path / "plain.ocg", tmp_path / "found.ocg"
    convert(np.array(chosen), plain, directed=directed)
    for threads, edges in ((1, EDGES), (3, EDGES[::-1].copy())):
        report = convert(edges, found, directed=directed, threads=threads, **wish)
        assert report.edges_read == len(chosen)
        assert found.read_bytes() == plain.read_bytes()
    text = tmp_path / "edges.txt"
    np.savetxt(text, EDGES, "%d")
    convert([text, EDGES[:100]], found, directed=directed, **wish)
    with oocbfs.open(found) as graph, oocbfs.open(plain) as other:
        assert pairs(graph) == pairs(other)


def pairs(graph: Any) -> set[tuple[Any, Any]]:
    return {
        (u, v)
        for edges in graph.edges()
        for u, v in zip(edges.sources.tolist(), edges.targets.tolist(), strict=True)
    }


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("order", ["natural", "degree"])
def test_of_a_graph_the_same_is_chosen_as_of_its_edges(
    tmp_path: Path, order: Any, named: bool
) -> None:
    ids: dict[str, Any] = {"ids": "names"} if named else {}
    # A loop names its vertex, but no graph has any.
    proper = EDGES[EDGES[:, 0] != EDGES[:, 1]]
    edges: Any = name_edges(proper.tolist()) if named else proper
    graph, one, other = (tmp_path / f"{name}.ocg" for name in ("graph", "one", "other"))
    convert(edges, graph, order=order, **ids)
    for wish in ({"sample": "20%"}, {"sample_vertices": "30%"}):
        convert(edges, one, **wish, **ids)
        report = convert([graph, edges[:10]], other, **wish)
        with oocbfs.open(one) as first, oocbfs.open(other) as second:
            assert first.ids().tolist() == second.ids().tolist()
            assert pairs(first) == pairs(second)
            assert 0 < second.num_edges == report.edges < 2000
        # What is chosen once is chosen again.
        convert(one, other, **wish)
        assert pairs_of(one) == pairs_of(other)


def pairs_of(path: Path) -> set[tuple[Any, Any]]:
    with oocbfs.open(path) as graph:
        return pairs(graph)


def test_a_larger_share_holds_the_smaller_one(tmp_path: Path) -> None:
    found = []
    for share in ("5%", "20%", "80%", "100%"):
        convert(EDGES, tmp_path / "g.ocg", sample=share)
        found.append(pairs_of(tmp_path / "g.ocg"))
    assert all(one < other for one, other in pairwise(found))
    convert(EDGES, tmp_path / "g.ocg", sample="5%", seed=2)
    assert pairs_of(tmp_path / "g.ocg") != found[0]


def test_a_sample_in_little_memory_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    edges = rng.integers(0, 50_021, (1_500_000, 2)).astype(np.uint64)
    one, other = tmp_path / "one.ocg", tmp_path / "other.ocg"
    convert(edges, one, sample="60%")
    monkeypatch.setattr(
        "oocbfs.conversion.converter.make_plan", lambda *_: ConvertPlan(2, 4 << 20, MemoryWatch())
    )
    assert convert(edges, other, sample="60%").spilled_bytes > 0
    assert other.read_bytes() == one.read_bytes()


def test_vertices_that_an_input_names_are_sampled_with_the_others(tmp_path: Path) -> None:
    matrix, found = tmp_path / "g.mtx", tmp_path / "g.ocg"
    matrix.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n1000 1000 2\n2 1\n3 1\n")
    every = [v for v in range(1, 1001) if in_sample((v, v), vertices=0.2)]
    convert(matrix, found, sample_vertices="20%", allow_empty=True)
    with oocbfs.open(found) as graph:
        assert graph.ids().tolist() == every
    convert(matrix, found, sample="20%", allow_empty=True)
    with oocbfs.open(found) as graph:
        assert graph.ids().tolist() == list(range(1, 1001))


def test_what_is_removed_is_sampled_too(tmp_path: Path) -> None:
    """What the sample leaves out is not missed when it is to be removed."""
    gone = EDGES[:1000]
    report = convert(EDGES, tmp_path / "g.ocg", sample="30%", remove=gone)
    rest = {tuple(sorted(edge)) for edge in EDGES.tolist()}
    rest -= {tuple(sorted(edge)) for edge in gone.tolist()}
    wanted = {edge for edge in rest if in_sample(edge, edges=0.3) and edge[0] != edge[1]}
    loops = [edge for edge in gone if edge[0] == edge[1] and in_sample(edge, edges=0.3)]
    with oocbfs.open(tmp_path / "g.ocg") as graph:
        assert {tuple(sorted(edge)) for edge in pairs(graph)} == wanted
    assert report.missing_edges == len(loops)


@pytest.mark.parametrize("share", ["0%", "101%", "1", "x%", "nan%", -0.5, 0, 2, True, float("nan")])
def test_shares_that_are_none_are_refused(tmp_path: Path, share: Any) -> None:
    for name in ("sample", "sample_vertices"):
        with pytest.raises(QueryError, match="is not a share of all: write it as 1%"):
            convert(EDGES, tmp_path / "g.ocg", **{name: share})


def test_a_sample_is_another_graph(tmp_path: Path) -> None:
    graph = tmp_path / "g.ocg"
    convert(EDGES, graph)
    with pytest.raises(QueryError, match="sample makes another graph"):
        convert(graph, tmp_path / "h.ocg", sample="1%", order="keep")
    with pytest.raises(QueryError, match="sample makes another graph"):
        oocbfs.update(graph, EDGES, sample="1%")
    with pytest.raises(QueryError, match="seed cannot be -1"):
        convert(graph, tmp_path / "h.ocg", sample="1%", seed=-1)


def test_the_command_line_says_what_was_taken(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "edges.txt", EDGES, "%d")
    out, other = tmp_path / "g.ocg", tmp_path / "h.ocg"
    done = call("convert", tmp_path / "edges.txt", "-o", out, "--sample", "10%", "--seed", 5)
    assert "sample        10% of the edges, seed 5\n" in done.stdout
    done = call("convert", out, "-o", other, "--sample-vertices", "2.5%", "--json", "--allow-empty")
    assert json.loads(done.stdout)["sample"] == "2.5% of the vertices, seed 1"
    done = call("convert", out, "-o", other, "--force", "--sample", "10")
    assert done.returncode == 2
    assert "'10' is not a share of all: write it as 1%" in done.stderr
