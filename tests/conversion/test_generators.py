"""The generators: the same edges whatever the threads, and the graphs they promise."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oocbfs.errors import QueryError
from oocbfs.formats.edges import Edges, EdgeStream
from oocbfs.generate import generators
from oocbfs.generate.generators import GeneratedEdges
from oocbfs.generate.powerlaw import degree_classes
from oocbfs.kernels.convert import generate as kernels


def collect(stream: EdgeStream) -> Edges:
    batches = list(stream.batches())
    assert stream.done == stream.total == sum(b.sources.size for b in batches)
    return Edges(
        np.concatenate([b.sources for b in batches] or [np.empty(0, np.uint64)]),
        np.concatenate([b.targets for b in batches] or [np.empty(0, np.uint64)]),
    )


def degrees_of(edges: Edges, num_vertices: int) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    ends = np.concatenate([edges.sources, edges.targets]).astype(np.int64)
    return np.bincount(ends, minlength=num_vertices)


MAKERS: dict[str, Callable[[int], GeneratedEdges]] = {
    "kron": lambda threads: generators.kron(9, 7, seed=3, threads=threads),
    "rmat": lambda threads: generators.rmat(8, 9, a=0.4, b=0.3, c=0.2, threads=threads),
    "rmat shuffled": lambda threads: generators.rmat(9, 4, shuffle=True, threads=threads),
    "uniform": lambda threads: generators.uniform(vertices=777, edges=3001, threads=threads),
    "grid2d": lambda threads: generators.grid2d(31, 40, threads=threads),
    "grid3d": lambda threads: generators.grid3d(7, 8, 9, wrap=True, threads=threads),
    "powerlaw": lambda threads: generators.powerlaw(500, 6.5, 60, threads=threads),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize(("threads", "batch_edges"), [(1, 1), (3, 64), (2, 997), (1, 1 << 18)])
def test_threads_and_batches_change_nothing(name: str, threads: int, batch_edges: int) -> None:
    expected = collect(MAKERS[name](1))
    stream = MAKERS[name](threads)
    stream._batch_edges = max(batch_edges, stream._num_edges // 300)
    edges = collect(stream)
    assert np.array_equal(edges.sources, expected.sources)
    assert np.array_equal(edges.targets, expected.targets)
    assert stream.declared.num_vertices is not None
    assert max(edges.sources.max(), edges.targets.max()) < stream.declared.num_vertices


def test_seeds_differ() -> None:
    one, two = (collect(generators.uniform(10, seed=seed)) for seed in (1, 2))
    assert not np.array_equal(one.sources, two.sources)


def test_edges_are_pinned() -> None:
    """A published seed must give the same graph in every version."""
    edges = collect(generators.kron(6, 1, seed=1))
    assert edges.sources[:6].tolist() == [14, 14, 19, 42, 21, 37]
    assert edges.targets[:6].tolist() == [18, 5, 36, 57, 30, 46]


def test_an_abandoned_stream_stops() -> None:
    batches = generators.kron(20, 16, threads=2).batches()
    next(batches)
    batches.close()


def test_declarations() -> None:
    assert generators.kron(4).declared.directed is False
    assert generators.rmat(4).declared.directed is None
    assert generators.kron(4).declared.num_vertices == 16
    assert generators.uniform(5).total == 16 * 32
    assert generators.uniform(vertices=10, edges=0).total == 0
    assert not list(generators.uniform(vertices=10, edges=0).batches())


# Permutations


def check_bijection(num_labels: int, seed: int) -> None:
    labels = np.arange(num_labels, dtype=np.uint64)
    kernels.permute(labels, kernels.permutation(num_labels, np.uint64(seed)))
    assert np.array_equal(np.sort(labels), np.arange(num_labels))


def test_small_permutations_are_bijections() -> None:
    for num_labels in range(1, 300):
        check_bijection(num_labels, seed=5)


@given(st.integers(1, 3000), st.integers(0, 2**64 - 1))
def test_permutation_is_a_bijection(num_labels: int, seed: int) -> None:
    check_bijection(num_labels, seed)


def test_permutation_of_a_large_range_stays_inside() -> None:
    num_labels = (1 << 61) + 12345
    labels = np.arange(num_labels - 1000, num_labels, dtype=np.uint64)
    kernels.permute(labels, kernels.permutation(num_labels, np.uint64(9)))
    assert np.unique(labels).size == 1000
    assert labels.max() < num_labels
    # A thousand numbers that were neighbours are spread over the whole range.
    assert np.histogram(labels, bins=4, range=(0, num_labels))[0].min() > 200


def test_permutation_looks_random() -> None:
    """The displacement of labels, in 64 bins, passes a chi-square test."""
    num_labels = 1 << 18
    labels = np.arange(num_labels, dtype=np.uint64)
    kernels.permute(labels, kernels.permutation(num_labels, kernels.stream_key(1, 1)))
    shift = (labels.astype(np.int64) - np.arange(num_labels)) % num_labels
    assert chi_square(np.bincount(shift >> 12), np.full(64, 1 / 64)) < 120


# Random graphs


def chi_square(
    observed: np.ndarray[tuple[int], np.dtype[np.intp]],
    shares: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> float:
    expected = shares * observed.sum()
    return float(((observed - expected) ** 2 / expected).sum())


@pytest.mark.parametrize("scale", [1, 10, 11])
def test_every_quadrant_has_its_share(scale: int) -> None:
    """Each level of the recursion draws its quadrant with the probabilities of Graph500."""
    num_edges = 100_000
    edges = collect(generators.rmat(scale, num_edges >> scale, seed=7))
    shares = np.array([0.57, 0.19, 0.19, 0.05])
    for level in np.arange(scale, dtype=np.uint64):
        source_bit, target_bit = (
            (ids >> level) & np.uint64(1) for ids in (edges.sources, edges.targets)
        )
        quadrants = (source_bit * np.uint64(2) + target_bit).astype(np.int64)
        # 3 degrees of freedom: 25 is exceeded once in 60,000.
        assert chi_square(np.bincount(quadrants, minlength=4), shares) < 25


def test_levels_are_independent() -> None:
    edges = collect(generators.rmat(2, 50_000, a=0.4, b=0.3, c=0.2, seed=5))
    cells = (edges.sources * np.uint64(4) + edges.targets).astype(np.int64)
    quadrant = np.array([[0.4, 0.3], [0.2, 0.1]])
    assert chi_square(np.bincount(cells, minlength=16), np.kron(quadrant, quadrant).ravel()) < 50


def test_extreme_quadrants() -> None:
    diagonal = collect(generators.rmat(8, 4, a=0.5, b=0, c=0))
    assert np.array_equal(diagonal.sources, diagonal.targets)
    corner = collect(generators.rmat(8, 4, a=1, b=0, c=0))
    assert not corner.sources.any()
    assert not corner.targets.any()


def test_kron_is_rmat_with_shuffled_labels() -> None:
    kron, rmat = collect(generators.kron(9)), collect(generators.rmat(9))
    image: dict[int, int] = {}
    for plain, shuffled in ((rmat.sources, kron.sources), (rmat.targets, kron.targets)):
        for label, other in zip(plain.tolist(), shuffled.tolist(), strict=True):
            assert image.setdefault(label, other) == other
    assert len(set(image.values())) == len(image)
    assert any(label != other for label, other in image.items())


@pytest.mark.parametrize("num_vertices", [1, 3, 100])
def test_uniform_is_uniform(num_vertices: int) -> None:
    edges = collect(generators.uniform(vertices=num_vertices, edges=100_000))
    shares = np.full(num_vertices, 1 / num_vertices)
    for ids in (edges.sources, edges.targets):
        counts = np.bincount(ids.astype(np.int64), minlength=num_vertices)
        assert chi_square(counts, shares) < num_vertices + 6 * (2 * num_vertices) ** 0.5


@pytest.mark.parametrize("num_vertices", [1, 2**32 - 1, 2**32 + 5, 3 * 2**40 + 7, 2**62])
def test_uniform_scales_exactly(num_vertices: int) -> None:
    """Both ends equal the upper word of the product in Python's own integers."""
    edges = collect(generators.uniform(vertices=num_vertices, edges=50))
    words = collect(generators.uniform(vertices=2**62, edges=50))
    for ids, top in ((edges.sources, words.sources), (edges.targets, words.targets)):
        for got, bits in zip(ids.tolist(), top.tolist(), strict=True):
            least, most = bits << 2, (bits << 2) | 3
            assert (least * num_vertices) >> 64 <= got <= (most * num_vertices) >> 64


# Lattices


def lattice_edges(shape: tuple[int, ...], wrap: bool) -> list[tuple[int, int]]:
    """Every pair of neighbours once, by rolling an array of ids along each axis."""
    ids = np.arange(np.prod(shape)).reshape(shape)
    pairs: set[tuple[int, int]] = set()
    for axis, side in enumerate(shape):
        after = np.roll(ids, -1, axis)
        keep = slice(None) if wrap and side > 2 else slice(0, side - 1)
        here = (slice(None),) * axis + (keep,)
        ends = np.sort(np.stack([ids[here].ravel(), after[here].ravel()], 1), 1)
        pairs.update(map(tuple, ends.tolist()))
    return sorted(pairs)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", list(itertools.product([1, 2, 3, 5], repeat=2)))
def test_grid2d(shape: tuple[int, int], wrap: bool) -> None:
    edges = collect(generators.grid2d(*shape, wrap=wrap))
    assert sorted_pairs(edges) == lattice_edges(shape, wrap)


@pytest.mark.parametrize("wrap", [False, True])
@pytest.mark.parametrize("shape", list(itertools.product([1, 2, 4], [1, 2, 3], [1, 2, 5])))
def test_grid3d(shape: tuple[int, int, int], wrap: bool) -> None:
    edges = collect(generators.grid3d(*shape, wrap=wrap))
    assert sorted_pairs(edges) == lattice_edges(shape, wrap)


def sorted_pairs(edges: Edges) -> list[tuple[int, int]]:
    """All edges, repeated ones too, each with its smaller end first."""
    ends = np.sort(np.stack([edges.sources, edges.targets], 1), 1)
    return sorted((int(low), int(high)) for low, high in ends)


# Power laws


@given(st.integers(2, 400), st.floats(1, 50), st.integers(1, 200), st.integers(1, 20))
def test_degree_classes_are_exact_or_refused(
    num_vertices: int, mean_degree: float, max_degree: int, min_degree: int
) -> None:
    least = (num_vertices - 1) * min_degree + max_degree
    most = max_degree + (num_vertices - 1) * (min_degree + max_degree) / 2
    num_stubs = 2 * round(num_vertices * mean_degree / 2)
    possible = min_degree <= max_degree < num_vertices
    if not possible or not least <= num_stubs <= most:
        with pytest.raises(QueryError):
            degree_classes(num_vertices, mean_degree, max_degree, min_degree)
        return
    classes = degree_classes(num_vertices, mean_degree, max_degree, min_degree)
    assert classes.counts.sum() == num_vertices
    assert classes.num_stubs == num_stubs
    assert classes.counts.min() >= 1
    assert classes.degrees.min() >= min_degree
    assert classes.degrees.max() == max_degree
    assert classes.exponent >= 0


def test_powerlaw_degrees_are_exact() -> None:
    num_vertices, mean_degree, max_degree = 20_000, 12.5, 700
    stream = generators.powerlaw(num_vertices, mean_degree, max_degree, seed=4)
    degrees = degrees_of(collect(stream), num_vertices)
    classes = degree_classes(num_vertices, mean_degree, max_degree)
    expected = np.repeat(classes.degrees, classes.counts.astype(np.int64))
    assert np.array_equal(np.sort(degrees), expected)
    assert degrees.mean() == mean_degree
    assert degrees.max() == max_degree
    # Labels are shuffled: the hubs are not the last ids.
    assert abs(np.corrcoef(np.arange(num_vertices), degrees)[0, 1]) < 0.05


def test_powerlaw_without_small_degrees() -> None:
    stream = generators.powerlaw(20_000, 55, 5214, 20)
    degrees = degrees_of(collect(stream), 20_000)
    assert degrees.min() == 20
    assert degrees.max() == 5214
    assert degrees.mean() == 55
    assert degree_classes(1_000_000, 55, 5214, 20).exponent == pytest.approx(2.5, abs=0.01)


def test_powerlaw_has_few_loops_and_repeated_edges() -> None:
    stream = generators.powerlaw(50_000, 8, 300, seed=2)
    edges = collect(stream)
    ends = np.sort(np.stack([edges.sources, edges.targets], 1), 1)
    assert np.count_nonzero(ends[:, 0] == ends[:, 1]) < 0.001 * len(ends)
    assert len(np.unique(ends, axis=0)) > 0.99 * len(ends)


@pytest.mark.parametrize("num_vertices", [1_000_000, 65_600_000])
def test_friendster_like_degrees(num_vertices: int) -> None:
    classes = degree_classes(num_vertices, 55, 5214)
    assert classes.num_stubs == 55 * num_vertices
    assert classes.counts.sum() == num_vertices
    assert classes.degrees.max() == 5214
    # On a log-log scale the counts of the small degrees lie on a line with the slope of the law.
    small = slice(0, 50)
    x, y = np.log(classes.degrees[small]), np.log(classes.counts[small])
    assert np.polyfit(x, y, 1)[0] == pytest.approx(-classes.exponent, abs=0.01)


def test_friendster_like_stubs_are_each_used_once() -> None:
    classes = degree_classes(100_000, 55, 5214)
    stream = generators.powerlaw(100_000, 55, 5214)
    degrees = degrees_of(collect(stream), 100_000)
    assert np.array_equal(
        np.unique(degrees, return_counts=True)[1], classes.counts.astype(np.int64)
    )


# Refusals

REFUSED: dict[str, Callable[[], object]] = {
    "scale must be": lambda: generators.kron(0),
    "kron scale=63": lambda: generators.kron(63),
    "at most 2^62 edges": lambda: generators.kron(60),
    "edge factor": lambda: generators.kron(5, 0),
    "add up": lambda: generators.rmat(5, a=0.6, b=0.3, c=0.2),
    "not be negative": lambda: generators.rmat(5, a=-0.1),
    "a, b and c": lambda: generators.rmat(5, a=float("nan")),
    "seed must be": lambda: generators.kron(5, seed=-1),
    "either a scale or vertices": lambda: generators.uniform(),
    "give either": lambda: generators.uniform(5, vertices=5),
    "at least 1 vertex": lambda: generators.uniform(vertices=0),
    "cannot be negative": lambda: generators.uniform(vertices=5, edges=-1),
    "at most 2^62 vertices": lambda: generators.uniform(vertices=2**63, edges=1),
    "scale must be 0": lambda: generators.uniform(-1),
    "every side": lambda: generators.grid2d(0, 5),
    "grid3d": lambda: generators.grid3d(2**21, 2**21, 2**21),
    "needs more than": lambda: generators.powerlaw(10, 2, 10),
    "even sum": lambda: generators.powerlaw(100, 0.5, 10),
    "from 109 to": lambda: generators.powerlaw(100, 30, 10),
    "must be a number": lambda: generators.powerlaw(100, float("nan"), 10),
    "maximum degree": lambda: generators.powerlaw(100, 2, 0),
    "minimum degree": lambda: generators.powerlaw(100, 5, 10, 11),
}


@pytest.mark.parametrize("message", REFUSED)
def test_refusals(message: str) -> None:
    with pytest.raises(QueryError) as caught:
        REFUSED[message]()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
