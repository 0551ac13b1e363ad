"""Find the components of a graph in parts: a forest of each part, united here."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.budget import result_arrays
from oocbfs.cluster.shard import Bitmap, full_bitmap
from oocbfs.formats.container.cut import Cut
from oocbfs.formats.io.ordered import available_threads, over_ranges
from oocbfs.kernels.compiling import clock, compile_seconds
from oocbfs.kernels.components.connect import Step, guess_giant, sample_vertices
from oocbfs.kernels.shards.forest import compress_range, link_heads, link_pairs
from oocbfs.results.components import ComponentsResult, ComponentsStats
from oocbfs.results.naming import name_components
from oocbfs.results.validation import validate_components
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.cluster.stored_parts import StoredParts


def components(graph: StoredParts, settings: Settings) -> ComponentsResult:
    """Find the components; see ``AnyGraph.components``."""
    start, compiled = clock(), compile_seconds()
    settings.check()
    exchange = graph.exchange(settings)
    threads = available_threads(settings.threads)
    arrays = result_arrays(graph, parents=False, settings=settings)
    began = clock()
    cut = graph.shape.cut
    labels = np.arange(graph.num_vertices, dtype=np.uint32)
    for part, heads in exchange.heads():
        over_ranges(link_heads, heads.size, threads, labels, heads, (part, cut.parts))
    over_ranges(compress_range, labels.size, threads, labels)
    by_heads = clock()
    giant = _giant(labels, graph.stored_degrees, cut)
    edges = tail_bytes = 0
    for forest in exchange.forests(giant):
        over_ranges(
            link_pairs, forest.vertices.size, threads, labels, forest.vertices, forest.roots
        )
        edges, tail_bytes = edges + forest.work.edges, tail_bytes + forest.work.tail_bytes
    over_ranges(compress_range, labels.size, threads, labels)
    found = clock()
    named, counts = name_components(graph, labels, arrays, threads)
    end = clock()
    if settings.checks:
        validate_components(graph, named, counts, bounded=settings.memory is not None)
    stats = ComponentsStats(
        engine=exchange.name,
        threads=threads,
        seconds=end - start,
        load_seconds=began - start,
        compile_seconds=compile_seconds() - compiled,
        traversal_seconds=found - began,
        naming_seconds=end - found,
        steps=[
            Step("heads", 0, 0, by_heads - began),
            Step("forests", edges, tail_bytes, found - by_heads),
        ],
        tail_bytes=graph.tail_bytes,
    )
    return ComponentsResult(graph, named, stats, counts)


def _giant(labels: NDArray[np.uint32], degrees: NDArray[np.uint32], cut: Cut) -> Bitmap:
    """Make a full bitmap of the vertices whose tails need not be looked at."""
    picked = sample_vertices(labels.size)
    root, _ = guess_giant(labels[picked[degrees[picked] > 0]])
    members = full_bitmap(cut)
    piece = 1 << 20
    as_bytes = members.view(np.uint8)
    for first in range(0, labels.size, piece):
        bits = np.packbits(labels[first : first + piece] == root, bitorder="little")
        as_bytes[first // 8 : first // 8 + bits.size] = bits
    return members
