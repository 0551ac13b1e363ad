"""What several machines would send each other: the formulas, and the levels they are fed with."""

from __future__ import annotations

import json
from math import comb, log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import oocbfs
from oocbfs.errors import QueryError
from oocbfs.plan.messages import (
    CODED_BITS,
    Frontier,
    Machines,
    bottom_up_bytes,
    coordinator_bytes,
    grid_bytes,
    parse_bandwidth,
    plan_messages,
    read_frontiers,
    scaled,
    set_bytes,
    top_down_bytes,
    uniform_frontiers,
)
from oocbfs.search.sharded import ShardedGraph
from tests.benchmarks.cluster import packed_search
from tests.support.command_line import call, said

TEN_GBIT = Machines(workers=4, bandwidth=1.25e9)


def test_formulas_by_hand() -> None:
    """Figures worked out on paper, for 2^20 vertices."""
    n = 1 << 20
    # A bitmap has 131,072 bytes, of which a machine has a quarter itself.
    assert bottom_up_bytes(n, n / 2, 4) == top_down_bytes(n, 4 * n, 4) == 98_304
    # 1,024 vertices: ten low bits and one more each, and 1,024 high parts.
    assert bottom_up_bytes(n, 1024, 4) == 0.75 * (1024 * 11 + 1024) / 8
    # 4,096 edges, a quarter of them on each machine, three quarters of what they lead to sent away.
    assert top_down_bytes(n, 4096, 4) == bottom_up_bytes(n, 1024, 4)
    assert coordinator_bytes(n, 4) == 6 * 131_072
    assert grid_bytes(n, 16) == 2 * 131_072 / 4
    assert bottom_up_bytes(n, 5, 1) == top_down_bytes(n, 5, 1) == bottom_up_bytes(n, 0, 4) == 0


@given(st.integers(100, 3000), st.data())
def test_codes_are_nearly_the_shortest(n: int, data: st.DataObject) -> None:
    """No code can be shorter than the logarithm of the number of sets; ours is, by a bit each."""
    f = data.draw(st.integers(1, n // CODED_BITS))
    least = log2(comb(n, f)) / 8
    assert least <= set_bytes(n, f, CODED_BITS) <= least + (log2(f) + f) / 8 + 1
    assert set_bytes(n, f, CODED_BITS) <= -(-n // 8) == set_bytes(n, n // 2)
    assert set_bytes(n, n - f, CODED_BITS) == set_bytes(n, f, CODED_BITS)


def test_depths_of_other_sources(tmp_path: Path) -> None:
    """The farthest vertex is between half as far and twice as far from any other source."""
    graph, parts = tmp_path / "grid.ocg", tmp_path / "parts"
    assert call("generate", "grid2d", "--rows", 40, "--columns", 30, "-o", graph).returncode == 0
    assert call("shard", graph, "-o", parts, "--parts", 2).returncode == 0
    found = json.loads(call("plan", parts, "--workers", 2, "--json").stdout)
    least, most = found["depths"]
    depth = len(found["levels"]) - 1
    assert (least, most) == (-(-depth // 2), 2 * depth)
    with oocbfs.open(graph) as opened:
        for source in opened.ids().tolist()[::97]:
            assert least <= opened.bfs(source).depth <= most
    shown = call("plan", parts, "--workers", 2).stdout
    assert f"depth: {depth} from the sampled source; {least} to {most} from any other" in shown


@pytest.mark.parametrize(
    ("text", "rate"),
    [("25G", 25e9 / 8), ("100M", 12.5e6), ("10 Gbit/s", 1.25e9), ("800", 100), ("1.6T", 2e11)],
)
def test_rates_are_bits_as_links_are_sold(text: str, rate: float) -> None:
    assert parse_bandwidth(text) == rate


@pytest.mark.parametrize("text", ["", "0", "-1G", "fast", "25GB", "1e9", "9" * 40])
def test_rates_that_are_none(text: str) -> None:
    with pytest.raises(QueryError, match="write it as 25G"):
        parse_bandwidth(text)


def test_levels_of_a_random_graph(tmp_path: Path) -> None:
    """What is guessed from two numbers is what a random graph has."""
    path = tmp_path / "uniform.ocg"
    arguments = ("--vertices", 1 << 15, "--edges", 1 << 18, "-o", path)
    assert call("generate", "uniform", *arguments).returncode == 0
    with oocbfs.open(path) as graph:
        guessed = [one.vertices for one in uniform_frontiers(graph.num_vertices, graph.num_arcs)]
        sizes = graph.bfs(int(graph.ids()[0])).level_sizes
    assert abs(len(guessed) - len(sizes)) <= 1
    # The source has its own number of neighbours; the large levels hold nearly all vertices.
    large = np.sort(sizes)[-2:]
    assert np.sort(guessed)[-2:] == pytest.approx(large, rel=0.25)
    assert sum(guessed) == pytest.approx(sizes.sum(), rel=0.01)


def test_directions_follow_the_edges() -> None:
    frontiers = [
        Frontier(1, 50),
        Frontier(50, 2500),
        Frontier(2500, 9000),
        Frontier(6000, 80_000),
        Frontier(700, 8000),
        Frontier(30, 60),
    ]
    found = plan_messages(10_000, 100_000, frontiers, TEN_GBIT)
    directions = [level.direction for level in found.levels]
    assert directions == ["top-down", "top-down", "bottom-up", "bottom-up", "bottom-up", "top-down"]
    sent = [
        level.bottom_up_bytes if level.direction == "bottom-up" else level.top_down_bytes
        for level in found.levels
    ]
    assert found.exchanges[0].num_bytes == sum(sent)
    waits = 6 * TEN_GBIT.latency
    assert found.exchanges[0].seconds == pytest.approx(waits + sum(sent) / 1.25e9)
    assert found.exchanges[1].num_bytes == 6 * coordinator_bytes(10_000, 4)
    assert not found.warnings


def test_deep_graphs_are_announced() -> None:
    """A thousand levels of 22 ms are nothing but waiting; MPI needs many more to be slow."""
    thin = [Frontier(10, 30)] * 1000
    warnings = plan_messages(10_000, 30_000, thin, TEN_GBIT).warnings
    assert len(warnings) == 1
    assert warnings[0].startswith("deep: 1,000 levels of 22 ms each wait 22 s for messages (Dask")
    assert not plan_messages(10_000, 30_000, thin[:100], TEN_GBIT).warnings
    assert len(plan_messages(10_000, 30_000, thin * 60, TEN_GBIT).warnings) == 2


def test_a_star_that_cannot_be_meant() -> None:
    machines = Machines(workers=128, bandwidth=parse_bandwidth("25G"))
    n, m = 4 * 10**9, 10**12
    warnings = plan_messages(n, m, uniform_frontiers(n, m), machines).warnings
    assert "a coordinator is out of reach: each level takes 20.8 s" in warnings[0]
    assert "a 2-D cut would send less" in warnings[1]


@pytest.fixture
def searched(tmp_path: Path) -> tuple[Path, Path, dict[str, Any]]:
    """A graph, and what a search of it printed."""
    graph, result = tmp_path / "kron.ocg", tmp_path / "result.json"
    assert call("generate", "kron", "--scale", 12, "-o", graph).returncode == 0
    done = call("bfs", graph, "--source", "@largest", "--json")
    result.write_text(done.stdout)
    return graph, result, json.loads(done.stdout)


def test_levels_of_a_result(searched: tuple[Path, Path, dict[str, Any]]) -> None:
    _, result, printed = searched
    vertices, arcs, frontiers = read_frontiers(str(result))
    assert (vertices, arcs) == (printed["vertices"], printed["arcs"])
    assert [one.vertices for one in frontiers] == printed["level_sizes"]
    grown = scaled(frontiers, 1000, 2000)
    assert grown[0].vertices == 1
    assert grown[2].vertices == 1000 * frontiers[2].vertices
    assert grown[2].edges == 2000 * frontiers[2].edges


def test_command_line(searched: tuple[Path, Path, dict[str, Any]]) -> None:
    graph, result, printed = searched
    for arguments in ((graph,), (graph, "--result", result), ("--result", result)):
        done = call("plan", *arguments, "--workers", 4, "--bandwidth", "25G", "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["vertices"] == printed["vertices"]
        assert found["machines"]["bandwidth"] == 25e9 / 8
        sent = sum(
            level[f"{level['direction'].replace('-', '_')}_bytes"] for level in found["levels"]
        )
        assert found["exchanges"][0]["num_bytes"] == sent > 0
        shown = call("plan", *arguments, "--workers", 4, "--latency", 5000).stdout
        assert "warning: deep: " in shown
        assert "Predictions, not measurements" in shown
    described = ("--vertices", 65_600_000, "--arcs", 3_606_466_792)
    shown = call("plan", "--workers", 4, *described).stdout
    assert "levels of a random graph of this size" in shown
    larger = call("plan", "--workers", 4, *described, "--result", result, "--json")
    assert len(json.loads(larger.stdout)["levels"]) == len(printed["level_sizes"])


def test_a_sharded_graph(tmp_path: Path, searched: tuple[Path, Path, dict[str, Any]]) -> None:
    """It is planned as the file it was cut from, and goes up where its own search does."""
    graph, _, printed = searched
    parts = tmp_path / "parts"
    assert call("shard", graph, "-o", parts, "--parts", 2).returncode == 0
    done = call("plan", parts, "--workers", 2, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["vertices"], found["arcs"]) == (printed["vertices"], printed["arcs"])
    assert {level["direction"] for level in found["levels"]} == {"bottom-up", "top-down"}
    refused = call("plan", parts)
    assert refused.returncode == 1
    assert "plan it with --workers" in said(refused)[-1]


@pytest.mark.parametrize("parts", [2, 4])
def test_a_star_sends_less_than_its_formula(
    tmp_path: Path, searched: tuple[Path, Path, dict[str, Any]], parts: int
) -> None:
    """Messages of a sharded search, packed as they would travel, beside plain bitmaps."""
    folder = tmp_path / "parts"
    assert call("shard", searched[0], "-o", folder, "--parts", parts).returncode == 0
    with oocbfs.open(folder, cluster=None) as graph:
        assert isinstance(graph, ShardedGraph)
        n = graph.num_vertices
        outcome = packed_search(graph, int(searched[2]["source"]))
    assert {level.direction for level in outcome.levels} == {"top-down", "bottom-up"}
    for level in outcome.levels:
        assert level.exchange is not None
        if level.direction == "bottom-up":
            assert level.exchange["plain"] == coordinator_bytes(n, parts)
        assert level.slow_bytes["messages"] <= coordinator_bytes(n, parts) + 48 * parts


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "required: GRAPH.ocg"),
        (("g.ocg", "--result", "r.json"), "--result is for --workers"),
        (("g.ocg", "--workers", 0), "not from 1"),
        (("--workers", 4), "give GRAPH.ocg"),
        (("--workers", 4, "--vertices", 5), "belong together"),
        (("--vertices", 5), "belong together"),
        (("--vertices", 5, "--edges", 5, "--arcs", 5), "--edges or --arcs, not both"),
        (("--vertices", 5, "--arcs", 5, "--directed"), "--directed is for --edges"),
        (("g.ocg", "--vertices", 5, "--edges", 5), "not both"),
        (("--vertices", 5, "--edges", 5, "--vram", "4G"), "is for a graph that is there"),
        (("--vertices", "5.5", "--edges", 5), "'5.5' is not a whole number"),
        (("--vertices", "1.55e1", "--edges", 5), "is not a whole number"),
        (("--vertices", "2e12", "--edges", 5), "is not from 0 to"),
        (("g.ocg", "--workers", 4, "--vertices", 5, "--arcs", 5), "not both"),
        (("g.ocg", "--workers", 4, "--vram", "4G"), "--vram is for one machine"),
        (("g.ocg", "--workers", 4, "--bandwidth", "25GB"), "write it as 25G"),
        (("g.ocg", "--workers", 4, "--latency", 0), "above 0"),
    ],
)
def test_what_makes_no_sense(arguments: tuple[object, ...], words: str) -> None:
    done = call("plan", *arguments)
    assert done.returncode == 2
    assert words in said(done)[-1]


def test_results_that_are_none(tmp_path: Path, searched: tuple[Path, Path, dict[str, Any]]) -> None:
    graph, result, _ = searched
    other = tmp_path / "other.json"
    for text, words in (
        ("", "is not what"),
        ("[]", "is not what"),
        (result.read_text().replace('"levels"', '"layers"'), "is not what"),
        (result.read_text().replace('"vertices": ', '"vertices": 1'), "of another graph"),
    ):
        other.write_text(text)
        done = call("plan", graph, "--workers", 2, "--result", other)
        assert done.returncode == 1
        assert words in said(done)[-1]
    assert call("plan", "--workers", 2, "--result", tmp_path / "none").returncode == 1
