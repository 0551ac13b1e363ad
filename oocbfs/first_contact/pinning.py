"""Find out how host memory can be pinned for a GPU: by which route, how fast, and how much."""

from __future__ import annotations

import time
from typing import NamedTuple

from oocbfs.formats.io.direct import page_aligned
from oocbfs.gpu.cuda_device import CudaDevice
from oocbfs.gpu.device import Device
from oocbfs.gpu.pinned import PinError
from oocbfs.memory import available_bytes
from oocbfs.progress import Phases
from oocbfs.search.graph import Graph

# The first attempt, and the last: no more than a share of what is free.
_FIRST_BYTES = 64 << 20
_MOST_BYTES = 16 << 30
_SHARE = 4
# After the first refusal, what is between it and the last success is halved so many times.
_HALVINGS = 3
_TIMED_BYTES = 256 << 20


class Pinning(NamedTuple):
    """How tails of a file were pinned, seconds for a byte, and the largest piece.

    ``refused_bytes`` is the smallest piece that was refused, None if none was.
    """

    route: str
    seconds: float
    largest_bytes: int
    refused_bytes: int | None


def look_at_pinning(
    device: CudaDevice, graph: Graph, phases: Phases, free_bytes: int | None = None
) -> Pinning:
    """Pin the tails of a graph, some memory of ours, then more and more; all is given back."""
    free_bytes = available_bytes() if free_bytes is None else free_bytes
    with device.map_host(graph._stored.rows.tails):
        route = device.routes[-1].value
    memory = page_aligned(max(1 << 20, min(_TIMED_BYTES, free_bytes // _SHARE)))
    memory[:] = 1
    start = time.perf_counter()
    with device.map_host(memory):
        seconds = (time.perf_counter() - start) / memory.size
    del memory
    return Pinning(
        route, seconds, *_largest(device, min(_MOST_BYTES, free_bytes // _SHARE), phases)
    )


def _largest(device: Device, most_bytes: int, phases: Phases) -> tuple[int, int | None]:
    """Grow until the driver refuses; return what it gave, and what it did not."""
    given, refused = 0, None
    size = min(_FIRST_BYTES, most_bytes)
    with phases("pin", None, "attempt") as bar:
        while size > given:
            if _is_given(device, size):
                given, size = size, min(2 * size, most_bytes)
            else:
                refused = size
                break
            bar.update(1)
        for _ in range(_HALVINGS if refused is not None else 0):
            assert refused is not None
            middle = (given + refused) // 2
            if _is_given(device, middle):
                given = middle
            else:
                refused = middle
            bar.update(1)
    return given, refused


def _is_given(device: Device, size: int) -> bool:
    try:
        with device.allocate_host(size):
            return True
    except PinError:
        return False
