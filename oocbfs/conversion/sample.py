"""A part of all edges, chosen by a hash of their ids: the same part wherever they are read from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.ids import all_ids, declared_ids
from oocbfs.formats.edges import Declared, Edges, Ids, NamedEdges
from oocbfs.kernels.convert import choose
from oocbfs.kernels.convert.generate import stream_key
from oocbfs.kernels.names.words import hash_names
from oocbfs.options import read_share
from oocbfs.settings import check_whole

# Of all random streams of a seed, those of generators come first.
_PURPOSE = 100


@dataclass(frozen=True)
class Sample:
    """Which share of the edges, and which share of the vertices, with the edges among them."""

    edges: float
    vertices: float
    seed: int

    def __str__(self) -> str:
        shares = (("edges", self.edges), ("vertices", self.vertices))
        said = [f"{100 * share:g}% of the {what}" for what, share in shares if share < 1]
        return f"{' and '.join(said) or 'everything'}, seed {self.seed}"

    def of(self, stream: Any) -> Any:
        """Return the stream of what is chosen of another."""
        return _Sampled(stream, self)


def make_sample(
    edges: str | float | None, vertices: str | float | None, seed: int
) -> Sample | None:
    """Check what a user asked for; None is everything."""
    check_whole("seed", seed, range(1 << 64))
    if edges is None and vertices is None:
        return None
    shares = [1.0 if share is None else read_share(share) for share in (edges, vertices)]
    return Sample(shares[0], shares[1], seed)


class _Sampled:
    """The chosen edges of a stream of numbers or names."""

    def __init__(self, stream: Any, sample: Sample) -> None:
        self._stream = stream
        self._key = stream_key(sample.seed, _PURPOSE)
        self._edge_limit, self._vertex_limit = _limit(sample.edges), _limit(sample.vertices)
        self._has_all_vertices = sample.vertices == 1
        self.name, self.unit, self.total = stream.name, stream.unit, stream.total
        self.declared: Declared = stream.declared

    @property
    def done(self) -> int:
        """How much was read, chosen or not."""
        return int(self._stream.done)

    def batches(self) -> Iterator[Edges]:
        """Yield the chosen edges in order."""
        for edges in self._stream.batches():
            chosen = self._chosen(edges.sources, edges.targets)
            yield Edges(edges.sources[chosen], edges.targets[chosen])
        self._choose_declared()

    def named_batches(self) -> Iterator[NamedEdges]:
        """Yield the chosen edges in order, where ids are names."""
        for edges in self._stream.named_batches():
            hashes = np.empty(edges.starts.size, np.uint64)
            hash_names(hashes, edges.text, edges.starts, edges.lengths, self._key)
            chosen = np.repeat(self._chosen(hashes[0::2], hashes[1::2]), 2)
            yield NamedEdges(edges.text, edges.starts[chosen], edges.lengths[chosen])

    def _chosen(self, sources: Ids, targets: Ids) -> NDArray[np.bool_]:
        """Return which edges are chosen."""
        chosen = np.empty(sources.size, np.bool_)
        ends = self._hashes(sources), self._hashes(targets)
        choose.mark_chosen(chosen, *ends, self._edge_limit, self._vertex_limit)
        return chosen

    def _hashes(self, ids: Ids) -> Ids:
        hashes = np.empty(ids.size, np.uint64)
        choose.hash_ids(hashes, np.ascontiguousarray(ids), self._key)
        return hashes

    def _choose_declared(self) -> None:
        """Leave out the vertices that an input names and that are not chosen."""
        named = declared_ids(self.declared)
        if named is None or self._has_all_vertices:
            return
        pieces = [ids[self._hashes(ids) <= self._vertex_limit] for ids in all_ids(named)]
        listed = np.concatenate([np.empty(0, np.uint64), *pieces])
        self.declared = replace(self.declared, first_id=0, num_vertices=None, vertex_ids=listed)


def _limit(share: float) -> np.uint64:
    """Return the largest of that share of all hashes."""
    return np.uint64(min(max(int(share * 2.0**64), 1), 2**64) - 1)
