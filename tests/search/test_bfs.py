"""Searches against SciPy and published answers."""

import itertools
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import oocbfs
from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.container.layout import Kind
from oocbfs.generate import generators
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import Settings
from tests.support.answers import scipy_levels
from tests.support.crafting import rewrite
from tests.support.strategies import DIRECTIONS, ORDERS, Pairs, edge_lists, pair_array


def expected_levels(graph: Graph, source: int) -> NDArray[np.int64]:
    return scipy_levels(graph.to_scipy(), graph._stored.position(source), directed=graph.directed)


@pytest.mark.parametrize("engine", ["cpu", "disk"])
@given(
    edges=edge_lists(),
    directed=st.booleans(),
    order=st.sampled_from(ORDERS),
    direction=st.sampled_from(DIRECTIONS),
    threads=st.sampled_from([1, 2, 4, 20]),
    data=st.data(),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_any_graph(
    tmp_path: Path,
    engine: Any,
    edges: Pairs,
    directed: bool,
    order: Any,
    direction: Any,
    threads: int,
    data: st.DataObject,
) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(pair_array(edges), path, directed=directed, order=order, force=True)
    with open_file(path) as graph:
        if graph.num_vertices == 0:
            return
        ids = graph.ids()
        source = int(data.draw(st.sampled_from(ids.tolist())))
        small = graph._stored.largest_id < 2**63
        result = graph.bfs(
            source,
            engine=engine,
            threads=threads,
            validate=True,
            parents=small,
            options=Settings(direction=direction),
        )
        assert result.stats.engine == engine
        expected = expected_levels(graph, source)
        np.testing.assert_array_equal(result.levels, expected)
        assert result.level_sizes.tolist() == np.bincount(expected[expected >= 0]).tolist()
        assert result.reached == np.count_nonzero(expected >= 0)
        assert result.depth == expected.max()
        if small:
            check_parents(graph, result.levels, result.parents, source)
        farthest = int(ids[int(np.argmax(expected))])
        path_found = result.path_to(farthest)
        assert (path_found[0], path_found[-1]) == (source, farthest)
        assert len(path_found) == expected.max() + 1
        for u, v in itertools.pairwise(path_found):
            assert v in graph.neighbors(u)


def check_parents(
    graph: Graph, levels: NDArray[np.int32], parents: NDArray[np.int64], source: int
) -> None:
    """The four assertions, in plain numpy."""
    reached = np.flatnonzero(levels >= 0)
    assert parents[graph._stored.position(source)] == source
    assert (parents[levels < 0] == -1).all()
    others = reached[levels[reached] > 0]
    above = graph.positions(parents[others].astype(np.uint64)) if others.size else others
    assert (levels[above] == levels[others] - 1).all()
    matrix = graph.to_scipy()
    assert all(matrix[u, v] == 1 for u, v in zip(above, others, strict=True))


@given(edge_lists(), st.booleans(), st.integers(1, 5), st.sampled_from(DIRECTIONS))
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=50
)
def test_several_sources(
    tmp_path: Path, edges: Pairs, directed: bool, count: int, direction: Any
) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(pair_array(edges), path, directed=directed, force=True)
    with open_file(path) as graph:
        sources = [int(i) for i in graph.ids()[::7][:count]]
        if not sources:
            return
        result = graph.bfs(sources, validate=True, options=Settings(direction=direction))
        single = np.array([expected_levels(graph, source) for source in sources])
        nearest = np.where(single < 0, 2**31, single).min(axis=0)
        np.testing.assert_array_equal(result.levels, np.where(nearest == 2**31, -1, nearest))


@pytest.fixture(scope="module")
def kron(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bfs") / "kron.ocg"
    oocbfs.convert(generators.kron(15), path)
    return path


@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_kron_in_every_way(kron: Path, threads: int, direction: Any) -> None:
    with open_file(kron) as graph:
        for source in np.random.default_rng(threads).integers(0, graph.num_vertices, 3):
            result = graph.bfs(
                int(source),
                threads=threads,
                parents=True,
                validate=True,
                options=Settings(direction=direction),
            )
            np.testing.assert_array_equal(result.levels, expected_levels(graph, int(source)))


def test_results_that_nobody_holds_are_used_again(kron: Path) -> None:
    """Neither the kept memory of searches nor a worker that spins may hold on to them."""
    with open_file(kron) as graph:
        graph.bfs(oocbfs.LARGEST_COMPONENT, threads=2, parents=True)
        places = set()
        for number in range(40):
            result = graph.bfs(oocbfs.LARGEST_COMPONENT, threads=2, parents=number % 2 == 0)
            places.add(result.levels.ctypes.data)
            del result
            time.sleep(0.0003 * (number % 4))
        assert len(places) == 1


def test_direction_is_optimized(kron: Path) -> None:
    with open_file(kron) as graph:
        hub = int(graph._stored.ids_of(np.array([0]))[0])
        result = graph.bfs(hub)
        directions = {level.direction for level in result.stats.levels}
        assert directions == {"top-down", "bottom-up"}
        forced = graph.bfs(hub, options=Settings(direction="top-down"))
        examined = sum(level.edges_examined or 0 for level in result.stats.levels)
        assert examined < sum(level.edges_examined or 0 for level in forced.stats.levels) / 4
        assert sum(level.heads_answered for level in result.stats.levels) > 0


def test_long_thin_graph(tmp_path: Path) -> None:
    n = 100_000
    oocbfs.convert((np.arange(n - 1), np.arange(1, n)), tmp_path / "path.ocg")
    with open_file(tmp_path / "path.ocg") as graph:
        result = graph.bfs(0, parents=True, validate=True)
        np.testing.assert_array_equal(result.levels, np.arange(n))
        assert result.depth == n - 1
        assert result.level_sizes.tolist() == [1] * n
        np.testing.assert_array_equal(result.parents, [0, *range(n - 1)])


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_depth_and_target(tmp_path: Path, direction: Any) -> None:
    oocbfs.convert(generators.grid2d(30, 40), tmp_path / "grid.ocg")
    with open_file(tmp_path / "grid.ocg") as graph:
        whole = graph.bfs(0).levels
        for depth in (0, 1, 7, 68, 69, 1000):
            result = graph.bfs(
                0, max_depth=depth, validate=True, options=Settings(direction=direction)
            )
            np.testing.assert_array_equal(result.levels, np.where(whole <= depth, whole, -1))
        result = graph.bfs(0, target=45, validate=True, options=Settings(direction=direction))
        assert result.level_of(45) == 6
        assert result.depth == 6
        assert len(result.path_to(45)) == 7
        assert graph.bfs(0, target=0, options=Settings(direction=direction)).reached == 1
        with pytest.raises(QueryError, match="max_depth cannot be -1"):
            graph.bfs(0, max_depth=-1)


def test_edges_of_the_api(tmp_path: Path) -> None:
    edges = np.array([[5, 6], [6, 7], [9, 9]])
    oocbfs.convert(edges, tmp_path / "g.ocg", directed=True)
    with open_file(tmp_path / "g.ocg") as graph:
        isolated = graph.bfs(9, parents=True, validate=True)
        assert (isolated.reached, isolated.depth) == (1, 0)
        assert isolated.parents.tolist() == [-1] * 9 + [9]
        result = graph.bfs(5)
        assert result.levels.tolist() == [-1] * 5 + [0, 1, 2, -1, -1]
        assert result.parents.tolist() == [-1] * 5 + [5, 5, 6, -1, -1]
        with pytest.raises(QueryError, match="not reached"):
            result.path_to(9)
        with pytest.raises(QueryError, match=r"no vertex 10; its ids are 0 to 9"):
            graph.bfs(10)
        with pytest.raises(QueryError, match="no vertex -1"):
            graph.bfs(-1)
        with pytest.raises(QueryError, match="at least one source"):
            graph.bfs([])
    oocbfs.convert(np.empty((0, 2), int), tmp_path / "empty.ocg")
    with open_file(tmp_path / "empty.ocg") as graph, pytest.raises(QueryError, match="none"):
        graph.bfs(0)


def test_huge_ids(tmp_path: Path) -> None:
    edges = np.array([[2**64 - 1, 3], [3, 2**63]], np.uint64)
    oocbfs.convert(edges, tmp_path / "g.ocg")
    with open_file(tmp_path / "g.ocg") as graph:
        result = graph.bfs(2**64 - 1)
        assert result.levels.tolist() == [1, 2, 0]
        assert result.path_to(2**63) == [2**64 - 1, 3, 2**63]
        with pytest.raises(QueryError, match="cannot be given as numbers"):
            _ = result.parents


@pytest.mark.parametrize("engine", ["cpu", "disk"])
def test_consecutive_ids_that_need_64_bits(tmp_path: Path, engine: Any) -> None:
    first = 2**63
    edges = np.array([[first, first + 1], [first + 1, first + 2]], np.uint64)
    oocbfs.convert(edges, tmp_path / "g.ocg")
    with open_file(tmp_path / "g.ocg") as graph:
        assert graph.bfs(first, engine=engine, validate=True).levels.tolist() == [0, 1, 2]
        found = graph.components(engine=engine)
        assert found.labels.tolist() == [first] * 3


def test_concurrent_searches_of_one_graph(kron: Path) -> None:
    with open_file(kron) as graph:
        sources = [int(i) for i in np.random.default_rng(1).integers(0, graph.num_vertices, 12)]
        expected = {source: graph.bfs(source, threads=1).levels for source in sources}
        wrong: list[int] = []

        def work(source: int) -> None:
            found = [graph.bfs(source, threads=2).levels for _ in range(5)]
            wrong.extend(source for f in found if not np.array_equal(f, expected[source]))

        threads = [threading.Thread(target=work, args=(source,)) for source in sources]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not wrong


def test_validation_finds_every_kind_of_mistake(kron: Path) -> None:
    from oocbfs.results.validation import Levels, validate

    with open_file(kron) as graph:
        result = graph.bfs(0, parents=True)
        levels, parents = result.levels, result.parents
        right = Levels(levels, parents, result.level_sizes, result.depth + 1)

        def attempt(**changed: Any) -> None:
            validate(graph._stored, np.array([0], np.uint64), right._replace(**changed), threads=2)

        attempt()
        attempt(parents=None)
        second = int(np.flatnonzero(levels == 2)[0])
        isolated = int(np.flatnonzero(levels < 0)[0])
        for place, value in (
            (0, 1),
            (second, 0),
            (second, 1),
            (second, 3),
            (second, -1),
            (isolated, 4),
        ):
            broken = levels.copy()
            broken[place] = value
            with pytest.raises(QueryError, match="validation failed"):
                attempt(levels=broken, parents=None)
        for place, value in ((0, 5), (second, second), (second, 0), (isolated, 0)):
            tree = parents.copy()
            tree[place] = value
            with pytest.raises(QueryError, match="validation failed"):
                attempt(parents=tree)
        with pytest.raises(QueryError, match="validation failed: the sizes of levels"):
            attempt(sizes=right.sizes + 1)


def test_damaged_tails_are_an_error_not_a_crash(kron: Path, tmp_path: Path) -> None:
    original = kron.read_bytes()
    path = tmp_path / "g.ocg"
    rng = np.random.default_rng(2)
    errors = 0
    for index in rng.integers(0, 200_000, 40):
        path.write_bytes(original)
        rewrite(path, Kind.TAILS, int(index), 255)
        with open_file(path) as graph:
            for direction in DIRECTIONS:
                try:
                    graph.bfs(
                        int(graph._stored.ids_of(np.array([0]))[0]),
                        parents=True,
                        options=Settings(direction=direction),
                    )
                except FormatError:
                    errors += 1
    assert errors > 0


def test_parts_that_find_the_same_vertices(tmp_path: Path) -> None:
    """Layers joined completely: on each level all threads find the same vertices at the same time.

    The queue then fills with repetitions and must start anew without losing or inventing any.
    """
    layers, width = 900, 60
    inside = np.arange(width)
    u, v = np.meshgrid(inside, inside + width)
    steps = width * np.arange(layers - 1)[:, None]
    edges = (u.ravel() + steps).ravel(), (v.ravel() + steps).ravel()
    oocbfs.convert(edges, tmp_path / "g.ocg")
    with open_file(tmp_path / "g.ocg") as graph:
        for threads in (1, 2, 4):
            result = graph.bfs(0, threads=threads, parents=True, validate=True)
            # The source's own layer is two steps away, over the next one.
            assert result.level_sizes.tolist() == [1, width, 2 * width - 1] + [width] * (layers - 3)
            assert [level.frontier for level in result.stats.levels] == result.level_sizes.tolist()
