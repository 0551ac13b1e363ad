"""Edges that wait as sorted runs of ids give the file that edges in memory give."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import oocbfs
from oocbfs.conversion.plan import ConvertPlan, MemoryWatch
from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges

Pairs = NDArray[np.uint64]

RNG = np.random.default_rng(7)
SIZE = 150_000


def edges_between(low: int, high: int, size: int = SIZE) -> Pairs:
    """Edges with loops and duplicates among them."""
    edges = RNG.integers(low, high, (size, 2), dtype=np.uint64)
    edges[::7, 0] = edges[::7, 1]
    edges[::5] = edges[0]
    return edges


class Stream:
    """Edges in batches; says what it is told to, before the first of them or behind the last."""

    unit, total, name = "edge", None, "stream"

    def __init__(self, edges: Pairs, directed: bool | None = None, *, late: bool = False) -> None:
        self._edges, self._directed, self._late = edges, directed, late
        self.declared = Declared()
        self.done = 0

    def batches(self) -> Iterator[Edges]:
        if not self._late:
            self.declared.directed = self._directed
        for first in range(0, len(self._edges), 30_000):
            some = self._edges[first : first + 20_000]
            self.done += len(some)
            yield Edges(*np.ascontiguousarray(some.T))
        self.declared.directed = self._directed


def little_memory(monkeypatch: pytest.MonkeyPatch, held_bytes: int = 2 << 20) -> None:
    plan = ConvertPlan(2, held_bytes, MemoryWatch())
    monkeypatch.setattr("oocbfs.conversion.converter.make_plan", lambda *_: plan)


def check(monkeypatch: pytest.MonkeyPatch, folder: Path, make: Any, **settings: Any) -> None:
    """Convert in memory and with runs."""
    plain, spilled = folder / "plain.ocg", folder / "spilled.ocg"
    first = oocbfs.convert(make(), plain, **settings)
    little_memory(monkeypatch)
    second = oocbfs.convert(make(), spilled, **settings)
    assert first.spilled_bytes < second.spilled_bytes
    for name in ("edges_read", "duplicates", "loops", "vertices_in_input", "directed"):
        assert getattr(first, name) == getattr(second, name)
    assert plain.read_bytes() == spilled.read_bytes()


KINDS: dict[str, Pairs] = {
    "from 0": edges_between(0, 20_000),
    "from 10^6": edges_between(10**6, 10**6 + 20_000),
    "sorted": np.sort(edges_between(0, 20_000), axis=0),
    "gaps": edges_between(0, 20_000) * np.uint64(7919),
    "some wide": np.concatenate([edges_between(0, 20_000), edges_between(2**40, 2**40 + 99, 90)]),
    "loops only": np.repeat(RNG.integers(0, 20_000, SIZE, dtype=np.uint64)[:, None], 2, axis=1),
    "one edge": np.full((SIZE, 2), (3, 5), np.uint64),
    "star": np.stack((np.full(SIZE, 7), RNG.permutation(SIZE)), axis=1).astype(np.uint64) % 20_000,
}


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("directed", [False, True])
def test_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, directed: bool
) -> None:
    check(monkeypatch, tmp_path, lambda: Stream(KINDS[name], directed))


@pytest.mark.parametrize("first", [None, False])
@pytest.mark.parametrize("second", [None, False, True])
def test_inputs_that_follow_may_say_whether_it_is_directed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first: bool | None, second: bool | None
) -> None:
    one, other = KINDS["from 0"], KINDS["sorted"]
    asked: Any = {"directed": True} if first is False and second else {}
    check(monkeypatch, tmp_path, lambda: [Stream(one, first), Stream(other, second)], **asked)


def test_a_direction_that_comes_too_late_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little_memory(monkeypatch)
    stream = Stream(KINDS["from 0"], True, late=True)
    with pytest.raises(InputError, match="after its first edges: add directed=True"):
        oocbfs.convert(stream, tmp_path / "g.ocg")
    assert not list(tmp_path.iterdir())


def test_what_waits_on_disk_is_small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    little_memory(monkeypatch)
    edges = RNG.integers(0, 60_000, (1 << 20, 2), dtype=np.uint64)
    text = sum(len(f"{u} {v}\n") for u, v in edges[:1000].tolist()) * len(edges) / 1000
    assert oocbfs.convert(edges, tmp_path / "g.ocg").spilled_bytes < 0.8 * text
