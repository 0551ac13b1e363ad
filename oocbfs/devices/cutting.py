"""The rows of one shard of a graph, cut out of a graph in one file: bytes are copied."""

from __future__ import annotations

import numpy as np

from oocbfs.conversion.row_writer import choose_block_shift
from oocbfs.formats.container.cut import Cut
from oocbfs.formats.io.direct import page_aligned
from oocbfs.kernels.constants import SLACK_BYTES
from oocbfs.kernels.rows import Rows, freeze
from oocbfs.kernels.shards.copying import copy_ranges


def cut_rows(rows: Rows, cut: Cut, shard: int) -> Rows:
    """Return the rows of a shard's words of 64 vertices; their heads and tails stay as they are."""
    own = cut.vertex_of(shard, np.arange(cut.rows_of(shard)))
    begins, ends = (
        rows.bases[number >> rows.shift] + rows.starts[number] for number in (own, own + 1)
    )
    offsets = np.zeros(own.size + 1, np.uint64)
    np.cumsum(ends - begins, out=offsets[1:])
    degrees = rows.degrees[own]
    shift = choose_block_shift(degrees)
    numbers = np.arange(own.size + 1)
    bases = offsets[:: 1 << shift][: (own.size >> shift) + 1].copy()
    # Where every word of the whole graph begins.
    firsts = np.append(np.arange(0, cut.num_vertices, 64), cut.num_vertices)
    bounds = rows.bases[firsts >> rows.shift] + rows.starts[firsts]
    size = int(offsets[-1])
    # On a page, so that it can be pinned as it is, with what decoders read ahead.
    memory = page_aligned(size + SLACK_BYTES)
    memory[size:] = 0
    copy_ranges(
        memory, freeze(rows.tails, np.uint8), freeze(bounds, np.uint64), shard, cut.num_shards
    )
    return Rows(
        heads=rows.heads[own],
        bases=bases,
        starts=(offsets - bases[numbers >> shift]).astype(np.uint32),
        tails=memory[:size],
        degrees=degrees,
        shift=shift,
        num_arcs=int(degrees.sum(dtype=np.int64)),
        max_degree=int(degrees.max(initial=0)),
        num_ids=cut.num_vertices,
    )
