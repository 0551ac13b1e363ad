"""Orders: by communities, and which one is chosen by what a file would take."""

import logging
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import oocbfs
from oocbfs.conversion import community_order
from oocbfs.conversion.plan import ConvertPlan, MemoryWatch
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.reader import Container
from oocbfs.generate import generators
from oocbfs.graph.verifier import verify
from oocbfs.kernels.convert import communities
from tests.support.strategies import edge_lists, pair_array

Vector = NDArray[np.uint32]


def cliques(count: int, size: int, *, shuffled: bool) -> NDArray[np.int64]:
    """Return the edges of cliques in a ring, and some between others."""
    rng = np.random.default_rng(4)
    one, other = np.triu_indices(size, 1)
    first = size * np.arange(count)[:, None]
    inside = np.stack(((first + one).ravel(), (first + other).ravel()), axis=1)
    between = rng.integers(0, count * size, (count * size // 4, 2))
    edges = np.concatenate((inside, between))
    return rng.permutation(count * size)[edges] if shuffled else edges


def stored_order(path: Path) -> NDArray[Any]:
    with oocbfs.open(path) as graph:
        assert graph._stored.order is not None
        return np.array(graph._stored.order)


@given(n=st.integers(0, 3000))
def test_scattered_numbers_are_a_permutation(n: int) -> None:
    numbers = np.empty(n, np.uint32)
    communities.scatter(numbers)
    assert sorted(numbers.tolist()) == list(range(n))


def chosen_plainly(u: int, labels: Vector, row: list[int], layer: int) -> int:
    """Return the label that a vertex chooses, as the module's first lines say it."""
    votes = [int(labels[v]) for v in row]

    def rating(label: int) -> tuple[int, bool, int]:
        members = int((labels == label).sum()) - int(labels[u] == label)
        strangers = max(0, members - votes.count(label))
        return (votes.count(label) << layer) - strangers, label == labels[u], -label

    return max(set(votes), key=rating) if votes else int(labels[u])


@given(
    edges=edge_lists(), layer=st.sampled_from(community_order.LAYERS), seed=st.integers(0, 2**32)
)
def test_choosing_labels_is_what_is_written(edges: Any, layer: int, seed: int) -> None:
    pairs = pair_array(edges)
    ids, ends = np.unique(pairs, return_inverse=True)
    ends = ends.reshape(-1, 2)
    n = ids.size
    rows: list[list[int]] = [[] for _ in range(n)]
    for u, v in {tuple(sorted(pair)) for pair in ends.tolist()}:
        if u != v:
            rows[u].append(v)
            rows[v].append(u)
    labels = np.random.default_rng(seed).integers(0, max(1, n), n).astype(np.uint32)
    sizes = np.bincount(labels, minlength=n).astype(np.uint32)
    degrees = np.array([len(row) for row in rows], np.uint32)
    neighbours = np.array([v for row in rows for v in row], np.uint32)
    table = np.zeros(communities.TABLE_WORDS, np.uint32)
    chosen = np.empty(n, np.uint32)
    changed = communities.choose_labels(chosen, labels, sizes, degrees, neighbours, 0, table, layer)
    assert chosen.tolist() == [chosen_plainly(u, labels, rows[u], layer) for u in range(n)]
    assert changed == (chosen != labels).sum()
    assert not table[table.size // 2 :].any()


@given(st.lists(st.integers(0, 19), min_size=20, max_size=20), st.permutations(range(20)))
def test_members_come_together_in_the_order_before(given_labels: list[int], before: Any) -> None:
    labels, placed = np.array(given_labels, np.uint32), np.array(before, np.uint32)
    sizes = np.bincount(labels, minlength=20).astype(np.uint32)
    places = labels.copy()
    communities.gather(placed, places, sizes, np.zeros(3, np.uint8))
    seen = list(dict.fromkeys(given_labels[v] for v in before))
    expected = [v for label in seen for v in before if given_labels[v] == label]
    assert placed.tolist() == expected
    assert places[placed].tolist() == list(range(20))


@given(edges=edge_lists(), directed=st.booleans(), threads=st.integers(2, 4))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=30
)
def test_threads_do_not_change_a_byte(
    tmp_path: Path, edges: Any, directed: bool, threads: int
) -> None:
    one, many = tmp_path / "one.ocg", tmp_path / "many.ocg"
    settled: dict[str, Any] = {"order": "communities", "directed": directed, "force": True}
    report = oocbfs.convert(pair_array(edges), one, threads=1, ids="compact", **settled)
    oocbfs.convert(pair_array(edges), many, threads=threads, ids="compact", **settled)
    assert one.read_bytes() == many.read_bytes()
    assert report.order == "communities"
    assert sorted(stored_order(one).tolist()) == list(range(report.vertices))
    verify(one, threads=1)


@pytest.mark.parametrize("directed", [False, True])
def test_communities_depend_on_neither_memory_nor_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, directed: bool
) -> None:
    plain, spilled = tmp_path / "plain.ocg", tmp_path / "spilled.ocg"
    graph = generators.kron(13)
    oocbfs.convert(graph, plain, order="communities", directed=directed, threads=1)
    monkeypatch.setattr(
        "oocbfs.conversion.converter.make_plan", lambda *_: ConvertPlan(3, 2 << 20, MemoryWatch())
    )
    monkeypatch.setattr(community_order, "_MIN_PIECE", 100)
    report = oocbfs.convert(graph, spilled, order="communities", directed=directed, threads=3)
    assert report.spilled_bytes > 4 * report.arcs
    assert plain.read_bytes() == spilled.read_bytes()


def test_members_of_cliques_are_stored_together(tmp_path: Path) -> None:
    path = tmp_path / "g.ocg"
    edges = cliques(200, 30, shuffled=True)
    inside = edges[: 200 * 435]
    oocbfs.convert(edges, path, order="communities")
    order = stored_order(path)
    place = np.empty_like(order)
    place[order] = np.arange(order.size)
    apart = np.abs(place[inside[:, 0]].astype(np.int64) - place[inside[:, 1]])
    assert np.mean(apart < 30) > 0.9


def test_hubs_and_loose_vertices(tmp_path: Path) -> None:
    """A row longer than the votes of one, and vertices that nobody votes for."""
    num_leaves = 3 * communities.MOST_VOTES + 5
    star = np.stack((np.full(num_leaves, 7), 10 + 2 * np.arange(num_leaves)), axis=1)
    report = oocbfs.convert(star, tmp_path / "g.ocg", order="communities", ids="dense")
    assert sorted(stored_order(tmp_path / "g.ocg").tolist()) == list(range(report.vertices))
    verify(tmp_path / "g.ocg")


def test_files_by_communities_are_of_a_version_of_their_own(tmp_path: Path) -> None:
    """Who knows no such order knows no such version, and says so."""
    edges = cliques(3, 4, shuffled=True)
    oocbfs.convert(edges, tmp_path / "g.ocg", order="communities", codec="raw")
    with Container(tmp_path / "g.ocg") as container:
        assert container.version == 3


def test_auto_takes_communities_where_ids_say_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    edges = cliques(300, 30, shuffled=True)
    with caplog.at_level(logging.INFO, "oocbfs"):
        report = oocbfs.convert(edges, tmp_path / "auto.ocg")
    assert report.order == "communities"
    assert re.search(r"reads all edges 20 times: about \d+ s", caplog.text)
    sizes = {
        order: oocbfs.convert(edges, tmp_path / f"{order}.ocg", order=order).file_bytes
        for order in ("natural", "degree", "dbg")
    }
    assert report.file_bytes < 0.85 * min(sizes.values())


@pytest.mark.parametrize(
    ("edges", "options", "order"),
    [
        (cliques(300, 30, shuffled=False), {}, "natural"),
        (cliques(300, 30, shuffled=True), {"codec": "raw"}, "natural"),
        (generators.kron(14), {}, "degree"),
        (generators.uniform(14), {}, "natural"),
    ],
    ids=["ids that tell", "raw", "kron", "uniform"],
)
def test_auto_does_not_look_for_communities_elsewhere(
    tmp_path: Path, edges: Any, options: Any, order: str
) -> None:
    report = oocbfs.convert(edges, tmp_path / "g.ocg", **options)
    assert (report.order, "communities" in report.seconds_by_phase) == (order, False)


@pytest.mark.parametrize("codec", ["zstd", "auto"])
@pytest.mark.parametrize("order", ["natural", "degree", "dbg"])
@pytest.mark.parametrize("directed", [False, True])
def test_sample_is_about_what_the_file_takes(
    tmp_path: Path, order: Any, directed: bool, codec: Any
) -> None:
    """Of a file that maps as it is, the heads and tails of rows that have any."""
    edges = generators.kron(16)
    options: dict[str, Any] = {"directed": directed, "codec": codec}
    auto = oocbfs.convert(edges, tmp_path / "auto.ocg", **options)
    forced = oocbfs.convert(edges, tmp_path / "forced.ocg", order=order, **options)
    bits = forced.bits_per_arc
    if forced.codec == "raw":
        with Container(tmp_path / "forced.ocg") as container:
            num_bytes = container.raw_bytes(Kind.TAILS)
            for kind in (Kind.DEGREES, Kind.IN_DEGREES)[: 1 + directed]:
                num_bytes += 4 * int(np.count_nonzero(container.section(kind)))
        bits = 8 * num_bytes / (forced.arcs * (1 + directed))
    found = re.search(rf"{order} ([\d.]+)", auto.order_why)
    assert found
    assert float(found[1]) == pytest.approx(bits, rel=0.1)
