"""The components of a sharded graph: a forest of each shard, united here."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.exchange import Exchange
from oocbfs.cluster.shard import Bitmap, full_bitmap
from oocbfs.formats.container.cut import Cut
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.kernels.compiling import clock
from oocbfs.kernels.components.connect import ComponentStep, guess_largest, sample_vertices
from oocbfs.kernels.shards.forest import compress_range, link_heads, link_pairs


def connect(
    exchange: Exchange,
    cut: Cut,
    degrees: NDArray[np.uint32],
    labels: NDArray[np.uint32],
    threads: int,
) -> list[ComponentStep]:
    """Label every stored vertex with one of its component; return what was done."""
    start = clock()
    labels[:] = np.arange(labels.size)
    for shard, heads in exchange.heads():
        over_ranges(link_heads, heads.size, threads, labels, heads, (shard, cut.num_shards))
    over_ranges(compress_range, labels.size, threads, labels)
    by_heads = clock()
    largest = _largest(labels, degrees, cut)
    edges = tail_bytes = 0
    for forest in exchange.forests(largest):
        over_ranges(
            link_pairs, forest.vertices.size, threads, labels, forest.vertices, forest.roots
        )
        edges, tail_bytes = edges + forest.work.edges, tail_bytes + forest.work.tail_bytes
    over_ranges(compress_range, labels.size, threads, labels)
    return [
        ComponentStep("heads", 0, 0, by_heads - start),
        ComponentStep("forests", edges, tail_bytes, clock() - by_heads),
    ]


def _largest(labels: NDArray[np.uint32], degrees: NDArray[np.uint32], cut: Cut) -> Bitmap:
    """Make a full bitmap of the vertices whose tails need not be looked at."""
    picked = sample_vertices(labels.size)
    root, _ = guess_largest(labels[picked[degrees[picked] > 0]])
    members = full_bitmap(cut)
    piece = 1 << 20
    as_bytes = members.view(np.uint8)
    for first in range(0, labels.size, piece):
        bits = np.packbits(labels[first : first + piece] == root, bitorder="little")
        as_bytes[first // 8 : first // 8 + bits.size] = bits
    return members
