"""Rows for other programs: SciPy, METIS and GAP get the graph back, and so do our own readers."""

from __future__ import annotations

import gzip
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import oocbfs
from oocbfs.errors import OutputError
from oocbfs.formats.output.row_files import keeps_ids, write_rows
from oocbfs.generate import generators
from oocbfs.search.graph import Graph, open_file
from tests.support.shared import SharedGraphs
from tests.support.strategies import ORDERS, Pairs, edge_lists, pair_array

FORMS = ("npz", "sg", "metis", "graph", "metis.gz", "graph.zst")


def matrix(graph: Graph) -> NDArray[np.int8]:
    """Neighbours by position, from what each vertex says of itself."""
    dense = np.zeros((graph.num_vertices, graph.num_vertices), np.int8)
    for position, vertex in enumerate(graph.ids().tolist()):
        dense[position, graph.positions(graph.neighbors(vertex))] = 1
    return dense


@settings(max_examples=60)
@given(
    form=st.sampled_from(FORMS),
    edges=edge_lists(),
    order=st.sampled_from(ORDERS),
    directed=st.booleans(),
    codec=st.sampled_from(["raw", "zstd"]),
)
def test_graphs_come_back(
    tmp_path_factory: pytest.TempPathFactory,
    form: str,
    edges: Pairs,
    order: Any,
    directed: bool,
    codec: Any,
) -> None:
    folder = tmp_path_factory.mktemp("rows")
    oocbfs.convert(
        pair_array(edges),
        folder / "g.ocg",
        ids="compact",
        order=order,
        directed=directed,
        codec=codec,
    )
    path = folder / f"back.{form}"
    with open_file(folder / "g.ocg") as graph:
        expected = matrix(graph)
        if directed and form.startswith(("metis", "graph")):
            with pytest.raises(OutputError, match="METIS knows no directed graphs"):
                write_rows(graph._stored, path)
            assert not path.exists()
            return
        seen: list[int] = []
        assert write_rows(graph._stored, path, progress=seen.append) == expected.sum() // (
            2 - directed
        )
        assert sum(seen) == expected.sum() * (2 if form == "sg" and directed else 1)
        ids = graph.ids()
        if form == "npz":
            loaded = scipy.sparse.load_npz(path)
            assert loaded.has_sorted_indices
            np.testing.assert_array_equal(loaded.toarray(), expected)
            if not keeps_ids("npz", graph._stored):
                np.testing.assert_array_equal(np.load(path)["ids"], ids)
    if not len(ids):
        return
    # Where the format does not say, the direction has to be said; vertices without edges count.
    oocbfs.convert(path, folder / "again.ocg", directed=directed if form == "npz" else None)
    with open_file(folder / "again.ocg") as again:
        assert again.directed == directed
        first = 1 if "metis" in form or "graph" in form else 0
        assert again.ids().tolist() == list(range(first, first + len(ids)))
        np.testing.assert_array_equal(matrix(again), expected)


def test_the_same_graph_makes_the_same_bytes(tmp_path: Path) -> None:
    orders: tuple[Any, ...] = ("natural", "degree")
    for number, order in enumerate(orders):
        oocbfs.convert(generators.kron(8), tmp_path / f"{number}.ocg", order=order)
        with open_file(tmp_path / f"{number}.ocg") as graph:
            for form in FORMS:
                write_rows(graph._stored, tmp_path / f"{number}.{form}", threads=1 + number)
    for form in FORMS[:-1]:  # zstd with several threads cuts its blocks elsewhere
        assert (tmp_path / f"0.{form}").read_bytes() == (tmp_path / f"1.{form}").read_bytes()


def test_metis_is_what_its_manual_says(tmp_path: Path) -> None:
    oocbfs.convert(np.array([[1, 2], [2, 3], [1, 5]]), tmp_path / "g.ocg", ids="compact")
    with open_file(tmp_path / "g.ocg") as graph:
        assert not keeps_ids("metis", graph._stored)
        write_rows(graph._stored, tmp_path / "g.metis.gz")
    text = gzip.decompress((tmp_path / "g.metis.gz").read_bytes()).decode()
    assert text == "4 3\n2 4\n1 3\n2\n1\n"


@pytest.mark.parametrize("form", ["npz", "sg", "metis"])
def test_memory_does_not_grow_with_the_graph(
    shared_graphs: SharedGraphs, tmp_path: Path, form: str
) -> None:
    """The neighbours alone are more than all that is held at a time."""
    path = shared_graphs.make("rows-kron17", lambda: generators.kron(17), order="degree")
    with open_file(path) as graph:
        # What 4 bytes for each vertex are for, and kernels, come before.
        assert graph._stored.stored_at.size == graph.num_vertices
        next(iter(graph._stored.natural_rows()))
        tracemalloc.start()
        try:
            write_rows(graph._stored, tmp_path / f"g.{form}", threads=1)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        neighbours_bytes = 8 * graph.num_arcs
    assert peak < 0.8 * neighbours_bytes, (peak, neighbours_bytes)


def test_what_is_no_form_of_rows_is_refused(tmp_path: Path) -> None:
    oocbfs.convert(np.array([[1, 2]]), tmp_path / "g.ocg")
    with open_file(tmp_path / "g.ocg") as graph:
        for name, message in (("a.npz.gz", "not written compressed"), ("a.txt", "name it .npz")):
            with pytest.raises(OutputError, match=message):
                write_rows(graph._stored, tmp_path / name)
        write_rows(graph._stored, tmp_path / "a.sg")
        with pytest.raises(OutputError, match="already exists"):
            write_rows(graph._stored, tmp_path / "a.sg")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.sg", "g.ocg"]


def test_full_disks_leave_nothing(tmp_path: Path) -> None:
    oocbfs.convert(generators.kron(8), tmp_path / "g.ocg")
    with open_file(tmp_path / "g.ocg") as graph:
        for form in ("npz", "sg", "metis"):
            link = tmp_path / f"full.{form}"
            link.symlink_to("/dev/full")
            with pytest.raises(OutputError, match="cannot be written: No space left"):
                write_rows(graph._stored, link, force=True)
