"""What each verb is asked at random, and how its answer is checked."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import oocbfs
from tests.support.soak.drawing import BUDGETS, ORDERS, Command, edges_of
from tests.support.soak.plain import PlainGraph
from tests.support.soak.process import End
from tests.support.soak.questions import Questions

ENGINES = "auto", "cpu", "disk", "emulator"
_NO_LEVEL = -1


class Asker(Questions):
    """Draws commands about one graph; ``parts`` are there once it was cut."""

    def commands(self) -> Iterator[Command]:
        """Yield the conversion, then a few questions."""
        yield self._convert()
        verbs = [
            self._bfs, self._bfs, self._batch, self._components, self._export, self._shard,
            self._verify, self._plan, self._info, self._unknown, self._update, self._path,
            self._pairs, self._near, self._part, self._strong, self._distances,
        ]  # fmt: skip
        for verb in self._rng.choices(verbs, k=self._rng.randint(1, 6)):
            yield verb()

    def _where(self) -> str:
        return self.parts if self.parts and self._rng.random() < 0.5 else "g.ocg"

    def _convert(self) -> Command:
        words = ["convert", "edges.tsv", "-o", "g.ocg", "--ids", self._ids, "--allow-empty"]
        words += ["--directed" if self._graph.directed else "--undirected"]
        words += [*self._some("--order", *ORDERS), *self._shared()]

        def check(folder: Path, _: End) -> None:
            with oocbfs.open(folder / "g.ocg") as graph:
                assert edges_of(graph) == self._graph.distinct, "other edges"

        return Command(words, check, "g.ocg")

    def _bfs(self) -> Command:
        where, levels = self._where(), self._name(".npy", ".csv")
        sources = self._rng.choices(sorted(self._graph.after), k=self._rng.choice([1, 1, 1, 2]))
        words = ["bfs", where, "--source", ",".join(map(str, sources)), "--levels", levels]
        words += [*self._engine(where, *ENGINES), *self._shared()]
        words += self._some("--direction", "auto", "top-down", "bottom-up")
        depth = self._rng.randrange(6) if self._rng.random() < 0.2 else None
        words += [] if depth is None else ["--max-depth", str(depth)]
        words += ["--validate"] if self._rng.random() < 0.3 else []

        def check(folder: Path, _: End) -> None:
            expected = self._graph.levels(sources)
            if depth is not None:
                expected = {v: level for v, level in expected.items() if level <= depth}
            _compare(_values(folder, levels), self._graph, lambda v: expected.get(v, _NO_LEVEL))

        return Command(words, check, levels)

    def _batch(self) -> Command:
        where, out = self._where(), self._name("-batch")
        words = ["batch", where, "--random", str(self._rng.choice([1, 3, 70, 150])), "-o", out]
        words += ["--seed", str(self._rng.randrange(100)), *self._shared()]
        emits_levels = self._rng.random() < 0.4
        words += ["--emit", "levels"] if emits_levels else []
        if where == "g.ocg":
            words += self._some("--strategy", "auto", "together", "one-per-core")

        def check(folder: Path, _: End) -> None:
            with (folder / out / "summary.csv").open(newline="") as file:
                rows = list(csv.DictReader(file))
            assert rows, "no source"
            for row in rows:
                source = row["source"] if self._ids == "names" else int(row["source"])
                found = self._graph.levels([source])
                answer = int(row["reached"]), int(row["depth"])
                assert answer == (len(found), max(found.values())), f"{source}: {answer}"

        return Command(words, check, out, ["--resume"])

    def _components(self) -> Command:
        where, labels = self._where(), self._name(".npy", ".csv")
        words = ["components", where, "--labels", labels]
        words += [*self._engine(where, *ENGINES), *self._shared()]

        def check(folder: Path, _: End) -> None:
            expected = self._graph.labels
            found = _values(folder, labels)
            if self._ids == "names" and labels.endswith(".npy"):
                with oocbfs.open(folder / "g.ocg") as graph:
                    names = graph.ids()
                    found = {vertex: names[int(label)] for vertex, label in found.items()}
            _compare(found, self._graph, lambda v: expected.get(v, v))

        return Command(words, check, labels)

    def _export(self) -> Command:
        where, out = self._where(), self._name(".tsv", ".csv", ".tsv.gz")
        words = ["export", where, "-o", out, *self._some("--threads", 1, 2, 8)]

        def check(folder: Path, _: End) -> None:
            options: Any = {"ids": "names"} if self._ids == "names" else {}
            again = folder / "again.ocg"
            directed = self._graph.directed
            oocbfs.convert(folder / out, again, directed=directed, allow_empty=True, **options)
            with oocbfs.open(again) as graph:
                assert edges_of(graph) == self._graph.distinct, "other edges"
            again.unlink()

        return Command(words, check, out)

    def _shard(self) -> Command:
        out = self._name("-parts")

        def check(folder: Path, _: End) -> None:
            self.parts = out
            with oocbfs.open(folder / out, cluster=None) as graph:
                assert edges_of(graph) == self._graph.distinct, "other edges"

        return Command(["shard", "g.ocg", "-o", out, "--parts", "3"], check, out)

    def _verify(self) -> Command:
        return Command(["verify", self._where(), *self._some("--threads", 1, 8)], _nothing)

    def _plan(self) -> Command:
        return Command(["plan", "g.ocg", *self._some("--memory", *BUDGETS)], _nothing)

    def _info(self) -> Command:
        def check(_: Path, end: End) -> None:
            said = json.loads(end.shown)
            arcs = len(self._graph.distinct) * (1 if self._graph.directed else 2)
            assert said["arcs"] == arcs, f"{said['arcs']} arcs"

        return Command(["info", self._where(), "--json"], check)

    def _unknown(self) -> Command:
        """Ask from a vertex that there is not: one line, and nothing is written."""
        out = self._name(".npy")
        source = "nobody" if self._ids == "names" else str(2**63 - 1)

        def check(_: Path, end: End) -> None:
            raise AssertionError(f"found something, from nowhere: {end.shown}")

        return Command(["bfs", "g.ocg", "--source", source, "--levels", out], check, out)


def _nothing(_: Path, __: End) -> None:
    """Expect nothing but a good end."""


def _values(folder: Path, name: str) -> dict[Any, Any]:
    """Return the value of each vertex in a file of ours."""
    with oocbfs.open(folder / "g.ocg") as graph:
        ids, named = graph.ids().tolist(), graph.names is not None
    if name.endswith(".npy"):
        return dict(zip(ids, np.load(folder / name).tolist(), strict=True))
    with (folder / name).open(newline="") as file:
        rows = list(csv.reader(file))[1:]
    values = [row[1] if named and not row[1].lstrip("-").isdigit() else int(row[1]) for row in rows]
    return dict(zip([row[0] if named else int(row[0]) for row in rows], values, strict=True))


def _compare(found: dict[Any, Any], graph: PlainGraph, expected: Callable[[Any], Any]) -> None:
    missing = set(graph.after) - set(found)
    assert not missing, f"{len(missing)} vertices are missing, as {min(missing)}"
    for vertex, value in found.items():
        assert value == expected(vertex), f"{vertex}: {value}, not {expected(vertex)}"
