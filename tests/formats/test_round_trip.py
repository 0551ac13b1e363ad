"""Whole ways: through every writer, reader and order, and every real graph there and back."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import oocbfs
from oocbfs.errors import InputError
from oocbfs.formats.edges import Edges
from oocbfs.formats.output.writers import write_edges
from oocbfs.formats.readers.open import open_edges
from oocbfs.graph.verifier import verify
from tests.support.strategies import Pairs, edge_lists, expected_edges, pair_array, stored_edges

GRAPHS = os.environ.get("OOCBFS_GRAPHS")
SUFFIXES = ("el", "tsv", "csv", "u64", "npy", "el.gz", "tsv.zst", "csv.xz", "tsv.bz2")
# Answers, notes and settings, which are no graphs, and files that are malformed on purpose.
NOT_GRAPHS = (".md", "-BFS", "-WCC", ".properties", "parents.txt", ".v")
MALFORMED = ("empty", "lp_afiro", "lp_afiro_structure", "west0067_noheader")
# WebGraph's formats, which no reader knows.
UNKNOWN = ("cnr-2000.graph", "cnr-2000.graph-txt.gz")


@given(
    edge_lists(),
    st.sampled_from(SUFFIXES),
    st.sampled_from(SUFFIXES),
    st.sampled_from(["natural", "degree", "dbg", "local"]),
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
        oocbfs.convert(source, target, format=form, **settings)

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


def real_graphs() -> list[Path]:
    if GRAPHS is None:
        return []
    files = [p for p in Path(GRAPHS).rglob("*") if p.is_file()]
    return sorted(
        p
        for p in files
        if not p.name.endswith(NOT_GRAPHS)
        and p.stem not in MALFORMED
        and not p.name.startswith("mangled")
        and p.name not in UNKNOWN
    )


def distinct(edges: NDArray[np.uint64], *, directed: bool) -> NDArray[np.uint64]:
    kept = edges[edges[:, 0] != edges[:, 1]]
    return np.unique(kept if directed else np.sort(kept, axis=1), axis=0)


@pytest.mark.skipif(GRAPHS is None, reason="OOCBFS_GRAPHS names no folder of public graphs")
def test_there_are_real_graphs() -> None:
    assert len(real_graphs()) >= 45


@pytest.mark.skipif(GRAPHS is None, reason="OOCBFS_GRAPHS names no folder of public graphs")
@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_formats_are_refused(name: str, tmp_path: Path) -> None:
    (path,) = Path(str(GRAPHS)).rglob(name)
    with pytest.raises(InputError, match=name):
        oocbfs.convert(path, tmp_path / "g.ocg")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("path", real_graphs(), ids=lambda path: path.name)
def test_real_graph_round_trip(path: Path, tmp_path: Path) -> None:
    stream = open_edges([path])
    batches = [np.stack((b.sources, b.targets), axis=1) for b in stream.batches()]
    read = np.concatenate([np.empty((0, 2), np.uint64), *batches])
    directed = bool(stream.declared.directed)
    expected = distinct(read, directed=directed)
    graph = tmp_path / "g.ocg"
    for order in ("auto", "natural", "degree", "dbg", "local"):
        report = oocbfs.convert(path, graph, order=order, force=True)
        assert report.edges == expected.shape[0] * (1 if directed else 2)
        assert report.edges_read == read.shape[0]
        verify(graph)
        with oocbfs.open(graph) as opened:
            stored = [np.stack((b.sources, b.targets), axis=1) for b in opened.edges()]
        np.testing.assert_array_equal(distinct(np.concatenate(stored), directed=directed), expected)
