"""Graphs whose rows lie beyond 2^31 and 2^32 bytes: files with holes, which take no room."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.formats.container.layout import MAX_BLOCK_SHIFT
from tests.support.crafting import spread

BLOCK = 1 << MAX_BLOCK_SHIFT
SOURCE = 7
# One hole belongs to the row of a vertex that nothing leads to, and the other to one of the
# vertices that the source leads to, and that leads nowhere: so nobody decodes them.
UNREACHED, FOUND, SINK = BLOCK - 1, 2 * BLOCK - 1, 3 * BLOCK - 1


def edges() -> Any:
    rng = np.random.default_rng(4)
    found = np.stack((rng.integers(0, SINK, 500_000), rng.zipf(1.4, 500_000) % SINK), 1)
    found = np.concatenate((found, found[:, ::-1]))
    found = found[(found != UNREACHED).all(1) & (found != FOUND).all(1)]
    return np.concatenate((found, [(SOURCE, FOUND), (UNREACHED, SINK)]))


@pytest.fixture(scope="module", params=[2**31 - 50_000, 2**32 - 50_000, 2**33 + 12_345])
def graphs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Return a graph and the same with a hole, after which its rows cross a power of two."""
    folder = tmp_path_factory.mktemp("large")
    for name in ("plain", "spread"):
        oocbfs.convert(edges(), folder / f"{name}.ocg", directed=True, order="natural", codec="raw")
    spread(folder / "spread.ocg", request.param)
    status = os.stat(folder / "spread.ocg")
    assert status.st_size > 2 * request.param
    assert 512 * status.st_blocks < 32 << 20
    return folder / "plain.ocg", folder / "spread.ocg"


@pytest.mark.parametrize("engine", ["cpu", "disk"])
@pytest.mark.parametrize("direction", ["auto", "top-down", "bottom-up"])
def test_searches_read_behind_holes(graphs: Any, engine: Any, direction: Any) -> None:
    options = oocbfs.Settings(direction=direction)
    with oocbfs.open(graphs[0]) as plain, oocbfs.open(graphs[1]) as spread_out:
        results = [
            graph.bfs(SOURCE, engine=engine, threads=2, options=options, parents=True)
            for graph in (plain, spread_out)
        ]
        assert results[0].reached > 2 * BLOCK
        assert results[0].levels[FOUND] == 1
        np.testing.assert_array_equal(results[0].levels, results[1].levels)


def test_single_rows_and_neighbours_are_behind_holes(graphs: Any) -> None:
    with oocbfs.open(graphs[0]) as plain, oocbfs.open(graphs[1]) as spread_out:
        for vertex in (0, BLOCK, BLOCK + 1, 2 * BLOCK, 3 * BLOCK - 9):
            found = spread_out.neighbors(vertex)
            assert sorted(found) == sorted(plain.neighbors(vertex))
        pairs = [(SOURCE, BLOCK + 5), (BLOCK + 99, 3), (SOURCE, 3 * BLOCK - 77)]
        for one, other in pairs:
            assert spread_out.distance(one, other) == plain.distance(one, other)
    with oocbfs.open(graphs[0]) as plain, oocbfs.open(graphs[1], memory="3G") as from_disk:
        for one, other in pairs:
            assert from_disk.distance(one, other) == plain.distance(one, other)


def test_many_sources_read_behind_holes(graphs: Any) -> None:
    with oocbfs.open(graphs[0]) as plain, oocbfs.open(graphs[1]) as spread_out:
        one, other = (
            next(iter(graph.bfs_many([SOURCE], emit="levels"))) for graph in (plain, spread_out)
        )
    assert one.levels is not None
    np.testing.assert_array_equal(one.levels, other.levels)
