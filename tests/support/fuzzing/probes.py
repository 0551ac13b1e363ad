"""What is asked of a damaged graph, and what is no answer: garbage, a traceback, many lines."""

from __future__ import annotations

import contextlib
import io
import itertools
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import oocbfs
from oocbfs.cli import main
from oocbfs.errors import OocbfsError
from oocbfs.graph.verifier import verify
from oocbfs.plan.many import DiskShare, ManyPlan
from oocbfs.search.graph import open_file
from oocbfs.search.many import Searches
from oocbfs.settings import Strategy
from tests.support.fuzzing.plain import PlainGraph
from tests.support.keywords import keywords


class Case:
    """A file, what it says as a plain reader reads it, and dice."""

    def __init__(self, path: Path, plain: PlainGraph, rng: random.Random) -> None:
        self.path = path
        self.plain = plain
        self.rng = rng
        self.ids = plain.ids or [0]
        self.values = plain.values or [0]

    @contextlib.contextmanager
    def graph(self) -> Iterator[oocbfs.Graph]:
        """Open the graph."""
        with open_file(self.path) as graph:
            yield graph

    def pick(self, count: int = 1) -> list[Any]:
        """Choose some ids."""
        return [self.rng.choice(self.ids) for _ in range(count)]

    def check_levels(
        self, sources: list[Any], levels: Any, sizes: Any, deepest: int | None = None
    ) -> None:
        """Levels are levels, and those that the file says, if it says anything."""
        plain = self.plain
        n = plain.num_vertices
        levels = np.asarray(levels)
        assert levels.shape == (n,), levels.shape
        assert levels.min() >= -1, levels
        assert levels.max() < n, levels
        assert np.array_equal(np.bincount(levels[levels >= 0]), sizes), (levels, sizes)
        assert sorted(plain.order or []) == list(range(n)), "an order that is no permutation"
        assert (levels == 0).sum() <= len(set(sources)), "more than the sources on level 0"
        if plain.has_names:
            places = [self.ids.index(source) for source in sources]
            assert set(np.flatnonzero(levels == 0)) == set(places), "level 0 is not the sources"
        if plain.neighbours is not None:
            expected = np.array(plain.levels(places))
            if deepest is not None:
                expected[expected > deepest] = -1
            assert np.array_equal(levels, expected), (levels.tolist(), expected.tolist())

    def check_parents(self, levels: Any, parents: Any) -> None:
        """Parents are ids, one level nearer, and neighbours if the file says anything."""
        plain = self.plain
        assert np.array_equal(parents < 0, levels < 0), parents
        assert parents.min() >= -1, parents
        assert set(parents[levels >= 0].tolist()) <= set(self.values), "parents that are no ids"
        if plain.neighbours is None:
            return
        places = {vertex: place for place, vertex in enumerate(self.values)}
        for v, (level, parent) in enumerate(zip(levels.tolist(), parents.tolist(), strict=True)):
            if level == 0:
                assert parent == self.values[v]
            elif level > 0:
                u = places[parent]
                assert levels[u] == level - 1, (u, v)
                assert v in plain.neighbours[u], (u, v)


def _bfs(**options: Any) -> Callable[[Case], None]:
    """Search, perhaps from several sources, to a depth or a target, with parents and checks."""

    def probe(case: Case) -> None:
        rng = case.rng
        sources = case.pick(rng.choice((1, 1, 1, 3)))
        depth = rng.choice((None, None, None, 0, 1, 2))
        parents = rng.random() < 0.3
        with case.graph() as graph:
            found = graph.bfs(
                sources,
                max_depth=depth,
                parents=parents,
                validate=rng.random() < 0.2,
                **keywords(options),
            )
            case.check_levels(sources, found.levels, found.level_sizes, depth)
            if parents:
                case.check_parents(found.levels, found.parents)
            repr(found.summary())

    return probe


def _target(case: Case) -> None:
    source, target = case.pick(2)
    with case.graph() as graph:
        engine = case.rng.choice(("cpu", "disk"))
        found = graph.bfs(source, target=target, engine=engine)  # type: ignore[arg-type]
        assert found.levels.min() >= -1
        assert found.levels.max() < graph.num_vertices
        if case.plain.neighbours is not None:
            expected = case.plain.levels([case.ids.index(source)])
            assert found.level_of(target) == expected[case.ids.index(target)]


def _path(case: Case) -> None:
    source, target = case.pick(2)
    with case.graph() as graph:
        found = graph.bfs(source, threads=1)
        path = found.path_to(target)
        assert path[0] == source
        assert path[-1] == target
        assert len(path) == found.level_of(target) + 1
        if case.plain.neighbours is not None:
            places = [case.ids.index(vertex) for vertex in path]
            for u, v in itertools.pairwise(places):
                assert v in case.plain.neighbours[u]


def _many(plan: Callable[[], ManyPlan]) -> Callable[[Case], None]:
    """Search from many sources, and take summaries, levels or pairs."""

    def probe(case: Case) -> None:
        emit: Any = case.rng.choice(("summary", "levels", "pairs"))
        sources = case.pick(case.rng.choice((1, 3, 9)))
        with case.graph() as graph, Searches(graph._stored, emit, plan()) as work:
            wanted = case.pick(4)
            targets = [graph._stored.stored(wanted)] * len(sources) if emit == "pairs" else None
            for source, found in zip(sources, work.run(sources, targets), strict=True):
                _check_source(case, source, found, wanted)

    return probe


def _check_source(case: Case, source: Any, found: Any, wanted: list[Any]) -> None:
    plain = case.plain
    assert found.source == source
    assert found.level_sizes[0] == 1
    assert (found.level_sizes > 0).all()
    assert found.reached <= plain.num_vertices, found.level_sizes
    if found.levels is not None:
        case.check_levels([source], found.levels, found.level_sizes)
    if plain.neighbours is None:
        return
    expected = plain.levels([case.ids.index(source)])
    assert found.level_sizes.tolist() == np.bincount([x for x in expected if x >= 0]).tolist()
    if found.distances is not None:
        assert found.distances.tolist() == [expected[case.ids.index(v)] for v in wanted]


def _components(**options: Any) -> Callable[[Case], None]:
    def probe(case: Case) -> None:
        plain = case.plain
        with case.graph() as graph:
            found = graph.components(**options)
            assert found.sizes.sum() == plain.num_vertices, found.sizes
            assert set(found.labels.tolist()) <= set(case.values), "labels that are no ids"
            if plain.neighbours is not None:
                assert found.labels.tolist() == [case.values[p] for p in plain.components()]
            repr(found.summary()), found.largest(3), found.largest_edges

    return probe


def _verify(case: Case) -> None:
    verify(case.path, threads=1)
    assert case.plain.is_well_formed, "verify accepts what is not as FORMAT.md says"


def _rows(case: Case) -> None:
    (vertex,) = case.pick()
    with case.graph() as graph:
        lists = graph.neighbors(vertex), graph.in_neighbors(vertex)
        assert graph.degree(vertex) == lists[0].size
        plain = case.plain
        if plain.has_names and plain.stored_rows is not None and plain.order is not None:
            stored = plain.order.index(case.ids.index(vertex))
            for rows, found in zip(plain.stored_rows, lists, strict=True):
                expected = sorted(case.ids[plain.order[v]] for v in rows[stored])
                assert found.tolist() == expected


def _names(case: Case) -> None:
    with case.graph() as graph:
        if graph.names is None:
            return
        known = list(graph.names)
        assert case.plain.ids in (None, known)
        column = graph.names.take(np.array([3, -1, 1], np.int64)).tolist()
        assert column == [known[3], None, known[1]]
        if case.plain.has_names:
            assert graph.names.find(known).tolist() == list(range(len(known)))


def _edges(case: Case) -> None:
    with case.graph() as graph:
        found = [
            np.stack((part.sources, part.targets), axis=1) for part in graph._stored.id_edges()
        ]
        matrix = graph.to_scipy()
    plain = case.plain
    if plain.neighbours is not None:
        arcs = {(u, v) for u, row in enumerate(plain.neighbours) for v in row}
        assert set(zip(*map(np.ndarray.tolist, matrix.nonzero()), strict=True)) == arcs
        named = {(case.values[u], case.values[v]) for u, v in arcs if plain.directed or u < v}
        assert {(u, v) for part in found for u, v in part.tolist()} == named


def _command(*arguments: str, outputs: tuple[str, ...] = ()) -> Callable[[Case], None]:
    """Run the command line, which ends with 0 or with one line and 1."""

    def probe(case: Case) -> None:
        verb, *rest = arguments
        filled = [word.format(source=case.pick()[0], other=case.pick()[0]) for word in rest]
        with tempfile.TemporaryDirectory() as folder:
            for name in outputs:
                filled += [name.split()[0], str(Path(folder) / name.split()[1])]
            said = io.StringIO()
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
                code = main([verb, str(case.path), *filled])
        assert code in (0, 1), code
        errors = [line for line in said.getvalue().splitlines() if line.startswith("oocbfs: ")]
        assert code == 0 or errors, said.getvalue()
        assert code == 0 or said.getvalue().splitlines()[-1] == errors[-1], said.getvalue()

    return probe


def _info(case: Case) -> None:
    with case.graph() as graph:
        repr(graph.info())


def _disk(strategy: Strategy, width: int) -> Callable[[], ManyPlan]:
    share = DiskShare(width, 1 << 32)
    return lambda: ManyPlan(strategy, 2, disk=share)


# With how often each is asked.
PROBES: dict[str, tuple[int, Callable[[Case], None]]] = {
    "info": (1, _info),
    "verify": (2, _verify),
    "rows": (2, _rows),
    "edges": (2, _edges),
    "names": (2, _names),
    "path": (2, _path),
    "target": (2, _target),
    **{
        f"bfs {direction} {threads}": (
            3,
            _bfs(engine="cpu", direction=direction, threads=threads),
        )
        for direction in ("auto", "top-down", "bottom-up")
        for threads in (1, 2)
    },
    "bfs auto": (2, _bfs()),
    "bfs budget": (1, _bfs(memory="8G")),
    **{
        f"disk {direction}": (1, _bfs(engine="disk", direction=direction))
        for direction in ("auto", "top-down", "bottom-up")
    },
    "together 1": (2, _many(lambda: ManyPlan("together", 1))),
    "together 2": (2, _many(lambda: ManyPlan("together", 2))),
    "together in parts": (1, _many(lambda: ManyPlan("together", 2, rows_at_once=2))),
    "one-per-core": (2, _many(lambda: ManyPlan("one-per-core", 2))),
    "disk together": (1, _many(_disk("together", 64))),
    "disk eight together": (1, _many(_disk("together", 8))),
    "disk one-by-one": (1, _many(_disk("one-per-core", 8))),
    "components 1": (2, _components(engine="cpu", threads=1)),
    "components 2": (1, _components(engine="cpu", threads=2)),
    "disk components": (1, _components(engine="disk")),
    "plan command": (1, _command("plan", "--samples", "2", "--vram", "1M", "--json")),
    "bfs command": (
        1,
        _command("bfs", "--source", "{source}", outputs=("--levels l.csv", "--parents p.npy")),
    ),
    "target command": (1, _command("bfs", "--source", "{source}", "--target", "{other}")),
    "components command": (1, _command("components", outputs=("--labels l.csv",))),
    "batch command": (
        1,
        _command("batch", "--random", "3", "--emit", "levels", outputs=("-o results",)),
    ),
    "export command": (1, _command("export", outputs=("-o edges.csv",))),
    "verify command": (1, _command("verify")),
    "info command": (1, _command("info", "--json")),
}
if shutil.which("g++") is not None:
    PROBES |= {
        "emulator": (2, _bfs(engine="emulator")),
        "emulator with tails": (1, _bfs(engine="emulator", vram="64M")),
        "emulator together": (1, _many(lambda: ManyPlan("together", 1, engine="emulator"))),
        "emulator components": (1, _components(engine="emulator")),
    }


def ask(case: Case, name: str) -> str | None:
    """Run one probe; return the error it ended with, which must be one line that explains."""
    try:
        PROBES[name][1](case)
    except OocbfsError as error:
        message = str(error)
        assert len(message.splitlines()) == 1, message
        return message
    return None
