"""Verbs about a few vertices, a part of a graph or all distances, and what changes a graph."""

from __future__ import annotations

import csv
import gzip
import itertools
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import networkx as nx

import oocbfs
from tests.support.soak.drawing import ORDERS, Command, Drawing, edges_of
from tests.support.soak.plain import PlainGraph
from tests.support.soak.process import End

_FEW_ENGINES = "auto", "cpu", "disk"
# Of more vertices, a plain search from each takes too long.
_MOST_SEARCHES = 200


class Questions(Drawing):
    """Draws commands of these verbs."""

    def _path(self) -> Command:
        (a, b), counts = self._rng.choices(sorted(self._graph.after), k=2), self._rng.random() < 0.5
        words = ["path", "g.ocg", str(a), str(b), "--json", *(["--all", "3"] if counts else [])]
        words += self._engine("g.ocg", *_FEW_ENGINES)

        def check(_: Path, end: End) -> None:
            said, distance = json.loads(end.shown), self._graph.levels([a]).get(b, -1)
            assert said["distance"] == distance, f"{said['distance']} steps, not {distance}"
            paths = said["paths"] if counts else [said["path"]] if said["path"] else []
            for path in paths:
                self._check_path(path, a, b, distance)
            if counts:
                number = _count_paths(self._graph, a, b)
                assert said["count"] == number, f"{said['count']} paths, not {number}"
                assert len(paths) == min(number, 3)
                assert len(set(map(tuple, paths))) == len(paths), "a path twice"

        return Command(words, check)

    def _check_path(self, path: list[Any], a: Any, b: Any, distance: int) -> None:
        after = self._graph.after
        assert (path[0], path[-1], len(path)) == (a, b, distance + 1), f"no path: {path}"
        assert all(v in after[u] for u, v in itertools.pairwise(path)), f"gaps: {path}"

    def _pairs(self) -> Command:
        out, table = self._name(".csv", ".csv.gz"), self._name(".tsv")
        sources = self._vertices(self._rng.choice([1, 30]))
        pairs = [(a, b) for a in sources for b in self._vertices(100)]
        words = ["pairs", "g.ocg", table, "--no-header", "-o", out, *self._shared()]
        words += self._engine("g.ocg", *_FEW_ENGINES)

        def check(folder: Path, _: End) -> None:
            rows = _rows(folder / out)
            found = [(self._id(row["source"]), self._id(row["target"])) for row in rows]
            assert found == pairs, "other pairs"
            levels = {a: self._graph.levels([a]) for a in sources}
            for (a, b), row in zip(pairs, rows, strict=True):
                assert int(row["distance"]) == levels[a].get(b, -1), f"{a}, {b}: {row}"

        text = "".join(f"{a}\t{b}\n" for a, b in pairs)
        return Command(words, check, out, ["--resume"], f"{out}.parts", {table: text})

    def _near(self) -> Command:
        out, seeds = self._name(".csv", ".csv.gz"), self._vertices(5)
        depth, limit = self._rng.randint(1, 4), self._rng.choice([None, None, 1, 10])
        words = ["near", "g.ocg", ",".join(map(str, seeds)), "--depth", str(depth), "-o", out]
        words += [*([] if limit is None else ["--limit", str(limit)]), *self._shared()]
        words += self._engine("g.ocg", *_FEW_ENGINES)

        def check(folder: Path, _: End) -> None:
            found: dict[Any, dict[Any, int]] = defaultdict(dict)
            for row in _rows(folder / out):
                found[self._id(row["seed"])][self._id(row["id"])] = int(row["distance"])
            for seed in seeds:
                near = _within(self._graph, [seed], depth)
                assert found[seed].items() <= near.items(), f"{seed}: others are near"
                distances = sorted(near.values())[:limit]
                assert sorted(found[seed].values()) == distances, f"{seed}: not the nearest"

        return Command(words, check, out)

    def _part(self) -> Command:
        out, seeds, depth = self._name(".tsv", ".ocg"), self._vertices(3), self._rng.randint(1, 4)
        words = ["export", "g.ocg", "-o", out, "--near", ",".join(map(str, seeds))]
        words += ["--depth", str(depth), *self._shared()]

        def check(folder: Path, _: End) -> None:
            near = _within(self._graph, seeds, depth)
            expected = {edge for edge in self._graph.distinct if near.keys() >= set(edge)}
            if out.endswith(".ocg"):
                with oocbfs.open(folder / out) as graph:
                    found = edges_of(graph)
            else:
                lines = (folder / out).read_text().splitlines()
                pairs = [line.split("\t") for line in lines if not line.startswith("#")]
                found = {(self._id(u), self._id(v)) for u, v in pairs}
                found = found if self._graph.directed else {(min(e), max(e)) for e in found}
            assert found == expected, "other edges"

        return Command(words, check, out)

    def _strong(self) -> Command:
        out = self._name(".csv")
        words = ["components", "g.ocg", "--strong", "--labels", out, *self._shared()]

        def check(folder: Path, _: End) -> None:
            after = self._graph.after
            expected = {
                vertex: min(component)
                for component in nx.strongly_connected_components(nx.DiGraph(after))
                for vertex in component
            }
            found = {self._id(r["id"]): self._id(r["component"]) for r in _rows(folder / out)}
            for vertex, label in found.items():
                assert label == expected.get(vertex, vertex), f"{vertex}: {label}"
            assert found.keys() >= after.keys()

        return Command(words, check, out)

    def _distances(self) -> Command:
        out, few = self._name(".csv"), len(self._graph.after) <= _MOST_SEARCHES
        words = ["distances", "g.ocg", "--samples", "all" if few else "9", "--component", "all"]
        words += ["-o", out, *(["--exact", "eccentricities"] if few else ["--exact", "none"])]
        words += self._shared()

        def check(folder: Path, _: End) -> None:
            rows, after = _rows(folder / out), self._graph.after
            if not few:
                assert all(0 <= float(row["low"]) <= float(row["high"]) <= 1 for row in rows)
                return
            found = {self._id(row["id"]): int(row["eccentricity"]) for row in rows}
            for vertex, eccentricity in found.items():
                expected = max(self._graph.levels([vertex]).values()) if vertex in after else 0
                assert eccentricity == expected, f"{vertex}: {eccentricity}, not {expected}"
            assert found.keys() >= after.keys()

        return Command(words, check, out, ["--resume"], keeps=f"{out}.state")

    def _update(self) -> Command:
        old = self._graph
        gone = self._rng.sample(old.edges, k=min(self._rng.choice([0, 3]), len(old.edges) // 3))
        new = list(zip(self._vertices(9), self._vertices(9), strict=False))
        new += [(self._vertices(1)[0], self._new_id(number)) for number in range(2)]
        add, remove = self._name(".tsv"), self._name(".tsv")
        words = ["update", "g.ocg", "--add", add, *(["--remove", remove] if gone else [])]
        words += [*self._some("--order", *ORDERS, "keep"), *self._shared()]
        taken = {frozenset(edge) if not old.directed else edge for edge in gone}
        edges = [
            edge
            for edge in old.edges + new
            if (edge if old.directed else frozenset(edge)) not in taken
        ]

        def check(folder: Path, _: End) -> None:
            self._graph, self.parts = PlainGraph(edges, old.directed), None
            with oocbfs.open(folder / "g.ocg") as graph:
                assert edges_of(graph) == self._graph.distinct, "other edges"

        inputs = {
            add: "".join(f"{u}\t{v}\n" for u, v in new),
            remove: "".join(f"{u}\t{v}\n" for u, v in gone),
        }
        return Command(words, check, inputs=inputs)

    def _new_id(self, number: int) -> Any:
        vertices = list(self._graph.after)
        return f"new-{number}" if self._ids == "names" else max(vertices) + 1 + number


def _rows(path: Path) -> list[dict[str, str]]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt", newline="") as file:
        return list(csv.DictReader(file))


def _within(graph: PlainGraph, sources: list[Any], depth: int) -> dict[Any, int]:
    """Return the levels of all vertices within some steps."""
    return {v: level for v, level in graph.levels(sources).items() if level <= depth}


def _count_paths(graph: PlainGraph, a: Any, b: Any) -> int:
    """Count the shortest paths between two vertices, level by level."""
    levels, counts = graph.levels([a]), Counter({a: 1})
    for u in levels:
        for v in graph.after[u]:
            if levels[v] == levels[u] + 1:
                counts[v] += counts[u]
    return counts[b]
