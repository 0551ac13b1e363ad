"""Predict how long results take from a device to the host, in the order of ids.

Nothing in this module is a measurement of a GPU. What the host takes for a vertex is rounded from
``scripts/bench to_ids`` on a busy machine and a random order, which is the worst: see the page of
benchmarks. Looking ids up was not measured.
"""

from __future__ import annotations

from typing import NamedTuple

from oocbfs.plan.rates import Rates

# Of one thread, for one vertex: widening a byte to a level, looking the id of a parent up, and
# writing a level, or a parent as an id, to a random place.
_WIDEN_SECONDS = 1e-9
_LOOK_UP_SECONDS = 3e-9
_ORDER_SECONDS = 40e-9


class ToIdsForecast(NamedTuple):
    """Seconds by step: the device brings a piece to ids and copies it, the host takes it.

    The host is busy with one piece while the device works on the next. ``order_seconds`` follow, if
    the host has to bring results into order.
    """

    device_seconds: float
    copy_seconds: float
    host_seconds: float
    order_seconds: float

    def __str__(self) -> str:
        """Write milliseconds by step, those that there are."""
        names = ("brought to ids", "copied", "written meanwhile", "brought into order by the host")
        parts = zip(names, self, strict=True)
        return ", ".join(f"{name} {1000 * seconds:.3f} ms" for name, seconds in parts if seconds)

    @property
    def seconds(self) -> float:
        """Seconds from the last level to the results."""
        return max(self.device_seconds + self.copy_seconds, self.host_seconds) + self.order_seconds


def predict_to_ids(
    rates: Rates, num_vertices: int, *, on_device: bool, with_parents: bool, threads: int
) -> ToIdsForecast:
    """Predict how long results take; ``on_device``: whether it has the order, or needs none."""
    # A byte for each level; four for the position of each parent.
    result_bytes = (5 if with_parents else 1) * num_vertices
    arrays = 2 if with_parents else 1
    read_bytes = result_bytes + (4 * arrays * num_vertices if on_device else 0)
    # Of each array, a sector at random for a vertex. Parents are few: their places are cached.
    sectors = arrays * num_vertices if on_device else 0
    to_write = _WIDEN_SECONDS + (_LOOK_UP_SECONDS if with_parents else 0)
    to_order = 0 if on_device else arrays * _ORDER_SECONDS
    return ToIdsForecast(
        device_seconds=(read_bytes + result_bytes) / rates.device_bandwidth
        + sectors / rates.device_sectors,
        copy_seconds=result_bytes / rates.copy_bandwidth,
        host_seconds=to_write * num_vertices / threads,
        order_seconds=to_order * num_vertices / threads,
    )
