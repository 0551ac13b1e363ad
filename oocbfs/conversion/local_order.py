"""The local order of a graph's vertices, made in bounded memory.

Clusters grow along a file of neighbours that is mapped, and its pages are given back from time to
time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.neighbours import Neighbours
from oocbfs.kernels.convert import cluster

# Vertices in a cluster; 256 to 4,096 make no difference to a search.
_CLUSTER = 512
# Rows after which pages are given back; the kernel maps up to 16 pages around one.
_ROWS_PER_RELEASE = 1024


def local_order(neighbours: Neighbours) -> NDArray[np.uint32]:
    """Return the position of each vertex in the local order; lengths become ends of rows."""
    ends = neighbours.lengths
    np.cumsum(ends, out=ends)
    stored_at = np.full(ends.size, cluster.NOWHERE, np.uint32)
    placed = np.empty_like(stored_at)
    progress = np.zeros(cluster.PROGRESS_WORDS, np.int64)
    with neighbours.mapped() as (columns, release):
        while progress[cluster.COUNT] < stored_at.size:
            cluster.grow(stored_at, placed, progress, columns, ends, _CLUSTER, _ROWS_PER_RELEASE)
            release()
    return stored_at
