"""What a device counted while it traversed: one flat table of names and numbers.

The same names for every method and for the default engine. What a device cannot count is absent,
as sectors are on a GPU.

========================  =======================================================================
launches                  kernels started
read_backs                copies to the host that it waited for, and their ``read_back_bytes``
edges_examined            neighbours that were looked at
claims_won                times a thread took a vertex for its own and wrote its level
claims_lost               times another thread was faster
queue_writes              vertices written to queues; ``edge_queue_writes``: edges
duplicates                claims won beyond the vertices that were found
atomics                   atomic operations; ``atomics.levels`` and so on by array
hottest_word              most atomics on one word in one level
pcie_sectors              of 32 bytes, read from host memory; ``device_sectors`` from the device's
loads, lanes_loaded       load instructions of warps, and lanes that took part in them
lanes_used                lanes that took part in a load, on average
busiest_warp, mean_warp   memory accesses of the busiest warp and of all on average, summed over
                          launches; ``warp_imbalance`` is their ratio
========================  =======================================================================
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Counts = dict[str, float]

# Of these the largest counts; all others are added up.
_LARGEST = ("hottest_word",)
_RATIOS = {
    "lanes_used": ("lanes_loaded", "loads"),
    "warp_imbalance": ("busiest_warp", "mean_warp"),
}


def add_counts(parts: Iterable[Mapping[str, float]]) -> Counts:
    """Sum up what was counted in several parts, and derive the ratios anew."""
    total: Counts = {}
    for part in parts:
        for name, value in part.items():
            if name in _LARGEST:
                total[name] = max(total.get(name, 0), value)
            elif name not in _RATIOS:
                total[name] = total.get(name, 0) + value
    for name, (above, below) in _RATIOS.items():
        if total.get(below):
            total[name] = total[above] / total[below]
    return total
