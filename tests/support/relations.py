"""Relations between the answers for a graph and for a changed one, which need no other program.

Relabelled, with edges inside a level, with every edge split, turned around, and beside another
graph: how each distance changes is known. Graphs are streams, so that they may have any size:
``python -m tests.support.relations --scale 22`` takes 10^8 arcs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import oocbfs
from oocbfs.formats.edges import Declared, Edges, EdgeStream
from oocbfs.generate import generators
from oocbfs.search.graph import Graph, open_file
from tests.support.exhaustive import pairwise

ENGINES = "cpu", "disk", "emulator"
KINDS = "kron", "powerlaw", "uniform", "grid"
_FEW = 1000


class Stream:
    """Edges among vertices 0 … n-1, made anew each time that they are read."""

    name, unit, total, done = "relations", "edge", None, 0

    def __init__(self, num_vertices: int, batches: Callable[[], Iterator[Edges]]) -> None:
        self.declared = Declared(first_id=0, num_vertices=num_vertices)
        self.num_vertices = num_vertices
        self.batches = batches


def generate(kind: str, scale: int, seed: int) -> Stream:
    """Make a graph of 2^scale vertices or a few less; a grid has 2 edges for each, others 16."""
    n, side = 1 << scale, 1 << scale // 2
    made: EdgeStream
    if kind == "kron":
        made = generators.kron(scale, seed=seed)
    elif kind == "powerlaw":
        made = generators.powerlaw(n, min(32, n // 16), n // 4, seed=seed)
    elif kind == "uniform":
        made = generators.uniform(scale, seed=seed)
    else:
        made = generators.grid2d(side, side)
    assert made.declared.num_vertices is not None
    return Stream(made.declared.num_vertices, made.batches)


@dataclass(frozen=True)
class Case:
    """A kind of graph, and how it is stored and searched."""

    kind: str
    scale: int
    engine: Any
    order: Any
    directed: bool
    seed: int = 1

    def stream(self, *, smaller: int = 0, other: int = 0) -> Stream:
        """Make the graph, or one of another seed or scale."""
        return generate(self.kind, self.scale - smaller, self.seed + other)

    def answer(self, edges: Stream, source: int) -> Answer:
        """Convert a stream, and search it."""
        with self.opened(edges) as graph:
            return self.ask(graph, source)

    @contextmanager
    def opened(self, edges: Stream) -> Iterator[Graph]:
        """Convert a stream into a file that is gone afterwards."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "g.ocg")
            oocbfs.convert(edges, path, directed=self.directed, order=self.order, ids="dense")
            with open_file(path) as graph:
                assert graph.num_vertices == edges.num_vertices
                yield graph

    def ask(self, graph: Graph, source: int) -> Answer:
        """Search a graph, and find its components."""
        levels = graph.bfs(source, engine=self.engine).levels
        return Answer(levels, graph.components(engine=self.engine).labels.astype(np.int64))

    def source(self, edges: Stream) -> int:
        """Choose a vertex that has an edge which leads away."""
        return int(next(iter(edges.batches())).sources[0])


class Answer(NamedTuple):
    """Levels and labels of components, by id."""

    levels: NDArray[np.int32]
    labels: NDArray[np.int64]


def same(found: NDArray[Any], expected: NDArray[Any]) -> None:
    """Compare, and name a vertex where it is not the same."""
    wrong = np.flatnonzero(found != expected)
    assert not wrong.size, f"{wrong.size} differ, as {wrong[0]}: {found[wrong[0]]}"


def relabelled(case: Case) -> None:
    """Vertices with other ids have the levels and the components that they had."""
    edges = case.stream()
    ids = np.random.default_rng(case.seed).permutation(edges.num_vertices).astype(np.uint64)

    def batches() -> Iterator[Edges]:
        for batch in edges.batches():
            yield Edges(ids[batch.sources], ids[batch.targets])

    source = case.source(edges)
    before = case.answer(edges, source)
    after = case.answer(Stream(edges.num_vertices, batches), int(ids[source]))
    same(after.levels[ids], before.levels)
    least = np.full(edges.num_vertices, edges.num_vertices)
    np.minimum.at(least, before.labels, ids.astype(np.int64))
    same(after.labels[ids], least[before.labels])


def inside_a_level(case: Case) -> None:
    """Edges between vertices of one level change no level, nor do those that lead back."""
    edges = case.stream()
    source = case.source(edges)
    before = case.answer(edges, source)
    rng = np.random.default_rng(case.seed)
    by_level = np.argsort(before.levels, kind="stable")
    by_level = by_level[np.searchsorted(before.levels[by_level], 0) :]
    places = rng.integers(0, by_level.size - 1, _FEW)
    added = np.sort(by_level[np.stack([places, places + 1])].astype(np.uint64), axis=0)
    added = added[:, before.levels[added[0]] == before.levels[added[1]]]
    # Whichever way an arc leads between two levels, it changes nothing where it leads back.
    back = by_level[np.sort(rng.integers(0, by_level.size, (2, _FEW)), axis=0)[::-1]]
    if case.directed:
        added = np.concatenate([added, back.astype(np.uint64)], axis=1)
    assert added.size

    def batches() -> Iterator[Edges]:
        yield from edges.batches()
        yield Edges(*added.copy())

    same(case.answer(Stream(edges.num_vertices, batches), source).levels, before.levels)


def split(case: Case) -> None:
    """With a vertex in the middle of every edge, distances are twice what they were.

    A middle is one step behind the nearer of its ends; of an arc, behind its tail.
    """
    edges = case.stream(smaller=2)
    n = edges.num_vertices
    num_edges = sum(batch.sources.size for batch in edges.batches())

    def halves() -> Iterator[tuple[Edges, NDArray[np.uint64]]]:
        first = n
        for batch in edges.batches():
            yield batch, np.arange(first, first + batch.sources.size, dtype=np.uint64)
            first += batch.sources.size

    def batches() -> Iterator[Edges]:
        for batch, middles in halves():
            yield Edges(batch.sources, middles)
            yield Edges(middles, batch.targets)

    source = case.source(edges)
    before = case.answer(edges, source)
    after = case.answer(Stream(n + num_edges, batches), source)
    same(after.levels[:n], np.where(before.levels < 0, -1, 2 * before.levels))
    far = np.iinfo(np.int32).max
    steps = np.where(before.levels < 0, far, 2 * before.levels + 1)
    for batch, middles in halves():
        near = steps[batch.sources]
        if not case.directed:
            near = np.minimum(near, steps[batch.targets])
        same(after.levels[middles], np.where(near == far, -1, near))
        same(after.labels[middles], before.labels[batch.sources])


def turned_around(case: Case) -> None:
    """The way from s to t is as long as that from t to s with every arc turned."""
    edges = case.stream()

    def batches() -> Iterator[Edges]:
        for batch in edges.batches():
            yield Edges(batch.targets, batch.sources)

    source = case.source(edges)
    with (
        case.opened(edges) as graph,
        graph.reversed() as turned,
        case.opened(Stream(edges.num_vertices, batches)) as rewritten,
    ):
        there = case.ask(graph, source)
        same(case.ask(rewritten, source).labels, there.labels)
        same(case.ask(rewritten, source).levels, case.ask(turned, source).levels)
        rng = np.random.default_rng(case.seed)
        for target in rng.integers(0, edges.num_vertices, 4).tolist():
            back = rewritten.bfs(target, engine=case.engine).levels
            assert back[source] == there.levels[target], (source, target)


def united(case: Case) -> None:
    """Beside another graph, levels and components are what they were, and the other is not reached.

    The components are those of both.
    """
    edges, others = case.stream(), case.stream(other=1)
    n = edges.num_vertices
    shift = np.uint64(n)

    def batches() -> Iterator[Edges]:
        yield from edges.batches()
        for batch in others.batches():
            yield Edges(batch.sources + shift, batch.targets + shift)

    source, second = case.source(edges), case.source(others)
    one, other = case.answer(edges, source), case.answer(others, second)
    nothing = np.full_like(other.levels, -1)
    with case.opened(Stream(n + others.num_vertices, batches)) as graph:
        both = case.ask(graph, source)
        same(both.levels, np.concatenate([one.levels, nothing]))
        same(both.labels, np.concatenate([one.labels, other.labels + n]))
        same(graph.bfs(n + second, engine=case.engine).levels[n:], other.levels)


RELATIONS = (relabelled, inside_a_level, split, turned_around, united)


def main() -> int:
    """Check relations of large graphs, each on an engine and in an order that take turns."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.relations")
    parser.add_argument("--scale", type=int, default=18)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    options = parser.parse_args()
    names = {relation.__name__: relation for relation in RELATIONS}
    failed = 0
    for kind, engine, order, directed, name in pairwise(
        options.kinds, ENGINES[:2], ("natural", "degree"), (False, True), tuple(names)
    ):
        case = Case(kind, options.scale, engine, order, directed, options.seed)
        began = time.perf_counter()
        try:
            names[name](case)
            said = "holds"
        except AssertionError as error:
            failed += 1
            said = f"IS BROKEN: {error}"
        print(f"{name:15} {case}: {said} ({time.perf_counter() - began:.0f} s)", flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
