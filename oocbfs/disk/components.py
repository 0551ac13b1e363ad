"""Connected components with the tails on disk: the driver's part."""

from __future__ import annotations

import time
from functools import cache

import numpy as np
from numpy.typing import NDArray

from oocbfs.disk.step import Readers, make_buffers
from oocbfs.graph.disk_rows import DiskRows
from oocbfs.kernels.compiling import Code
from oocbfs.kernels.components.connect import (
    COMPRESS,
    LINK_HEADS,
    POINT_TO_HEADS,
    ComponentStep,
    Work,
)
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.components import DiskForestState, link_tails
from oocbfs.kernels.disk.read import NO_TAILS, Disk
from oocbfs.kernels.disk.stream import CHUNK_BYTES
from oocbfs.kernels.rows import Rows, one_row, read_only
from oocbfs.plan.disk import READERS


def connect(
    rows: DiskRows, labels: NDArray[np.uint32], *, both: bool, threads: int
) -> tuple[list[ComponentStep], int]:
    """Label stored vertices as ``kernels.components.connect`` does; return steps and bytes read.

    There is no sample of the tails: it would read a page for each row, and the tails are to be read
    only once.
    """
    work = Work(rows.out_rows, rows.in_rows if both else None, labels, threads)
    work.run("heads", POINT_TO_HEADS, LINK_HEADS)
    state = _make_state(labels, READERS, framed=rows.is_framed)
    control = state.control
    control[words.LARGEST], _ = work.find_largest()
    start = time.perf_counter()
    _read_tails(rows, rows.out_rows, rows.out_disk, state)
    if both:
        _read_tails(rows, rows.in_rows, rows.in_disk, state)
    work.steps.append(
        ComponentStep(
            name="tails",
            edges=int(control[words.EDGES]),
            tail_bytes=int(control[words.TAIL_BYTES]),
            seconds=time.perf_counter() - start,
        )
    )
    work.run("compress", COMPRESS)
    return work.steps, int(control[words.DISK_BYTES])


def _read_tails(file_rows: DiskRows, rows: Rows, disk: Disk, state: DiskForestState) -> None:
    """Join what the tails of one direction join."""
    num_readers = min(READERS, disk.tail_bytes // CHUNK_BYTES + 1)
    with Readers(file_rows.file, state.control, num_readers) as readers:
        readers.run(num_readers, link_tails, rows, disk, state)


def _make_state(
    labels: NDArray[np.uint32], num_threads: int, *, framed: bool = False
) -> DiskForestState:
    return DiskForestState(
        labels=labels,
        buffers=make_buffers(num_threads, framed=framed),
        control=np.zeros(words.CONTROL_WORDS, np.int64),
    )


CODE = (Code(link_tails, __name__, "load"),)


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no run's time includes it."""
    link_tails(read_only(one_row()), NO_TAILS, _make_state(np.zeros(1, np.uint32), 1), 0)
