"""Whole ways: through every writer, reader and order, and every real graph there and back."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import oocbfs
from oocbfs.formats.edges import Edges
from oocbfs.formats.output.writers import write_edges
from oocbfs.formats.readers.open import open_edges
from oocbfs.graph.verifier import verify
from tests.support.exhaustive import ALL
from tests.support.real_graphs import needs_graphs, order_of, real_graphs
from tests.support.shared import SharedGraphs
from tests.support.strategies import (
    ORDERS,
    Pairs,
    edge_lists,
    expected_edges,
    pair_array,
    stored_edges,
)

SUFFIXES = ("el", "tsv", "csv", "u64", "npy", "el.gz", "tsv.zst", "csv.xz", "tsv.bz2")


@given(
    edge_lists(),
    st.sampled_from(SUFFIXES),
    st.sampled_from(SUFFIXES),
    st.sampled_from(ORDERS),
    st.booleans(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_graph_through_any_pair_of_forms(
    tmp_path: Path, edges: Pairs, first: str, second: str, order: str, directed: bool
) -> None:
    array = pair_array(edges)
    given_file, graph = tmp_path / f"given.{first}", tmp_path / "g.ocg"
    back, again = tmp_path / f"back.{second}", tmp_path / "again.ocg"
    settings: dict[str, Any] = {"order": order, "directed": directed, "force": True, "threads": 1}

    def convert(source: Path, target: Path) -> None:
        form = "u64" if source.suffix == ".u64" else None
        oocbfs.convert(source, target, format=form, allow_empty=True, **settings)

    write_edges(
        [Edges(*np.ascontiguousarray(array.T))],
        given_file,
        header_comment="Nodes: ? Edges: ?",
        threads=1,
        force=True,
    )
    convert(given_file, graph)
    with oocbfs.open(graph) as opened:
        write_edges(opened.edges(), back, header_comment="Nodes: ? Edges: ?", threads=1, force=True)
    convert(back, again)
    assert stored_edges(graph) == stored_edges(again) == expected_edges(edges, directed=directed)


@needs_graphs
def test_there_are_real_graphs() -> None:
    assert len(real_graphs()) >= 45


def distinct(batches: Iterable[Edges], *, directed: bool) -> NDArray[np.uint64]:
    """Distinct edges without loops as sorted numbers, the first id in their upper 32 bits."""
    pairs = [np.stack((batch.sources, batch.targets)) for batch in batches]
    u, v = np.concatenate([np.empty((2, 0), np.uint64), *pairs], axis=1)
    assert max(u.max(initial=0), v.max(initial=0)) < 2**32
    first, second = (u, v) if directed else (np.minimum(u, v), np.maximum(u, v))
    return np.unique((first << np.uint64(32) | second)[u != v])


@pytest.mark.long
@pytest.mark.parametrize("path", real_graphs(), ids=lambda path: path.name)
def test_real_graph_round_trip(path: Path, shared_graphs: SharedGraphs) -> None:
    """In every order; graphs of over a million edges in one of them, or with --all in every one."""
    stream = open_edges([path])
    batches = list(stream.batches())
    directed = bool(stream.declared.directed)
    expected = distinct(batches, directed=directed)
    orders = ("auto", *ORDERS)
    if expected.size > 1_000_000 and not ALL:
        orders = (order_of(path),)
    for order in orders:
        graph = shared_graphs.convert(path, order=order)
        report = shared_graphs.report(graph)
        assert (report.edges, report.arcs) == (
            expected.size,
            expected.size * (1 if directed else 2),
        )
        assert report.edges_read == sum(batch.sources.size for batch in batches)
        verify(graph)
        with oocbfs.open(graph) as opened:
            stored = distinct(opened.edges(), directed=directed)
        np.testing.assert_array_equal(stored, expected)
