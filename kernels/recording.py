"""Record what a level did, for the loops that fill records in place, compiled or not.

It is apart from ``kernels.record``, which reports read without loading numba.
"""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import inlined


@inlined
def record_level(
    records, depth, upward, frontier, edges, heads, tail_bytes, disk_bytes, nanoseconds
):
    """Record what a level did; levels beyond the last record are summed up there."""
    record = records[min(depth, records.size - 1)]
    record["direction"] = np.int64(upward)
    record["num_levels"] += 1
    record["frontier"] += frontier
    record["edges"] += edges
    record["heads"] += heads
    record["tail_bytes"] += tail_bytes
    record["disk_bytes"] += disk_bytes
    record["seconds"] += nanoseconds * 1e-9
