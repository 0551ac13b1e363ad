"""Connected components with the tails on disk: the driver's part."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
from numpy.typing import NDArray

from oocbfs.disk.step import run_step
from oocbfs.formats.io.direct import page_aligned
from oocbfs.graph.disk_rows import DiskRows
from oocbfs.kernels.components.connect import COMPRESS, LINK_HEADS, POINT_TO_HEADS, Step, Work
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.components import State, stream
from oocbfs.kernels.disk.large_level import CHUNK_BYTES
from oocbfs.kernels.disk.read import Disk
from oocbfs.kernels.rows import Rows, one_row, read_only
from oocbfs.plan.disk import BUFFER_BYTES, READERS


def connect(
    rows: DiskRows, labels: NDArray[np.uint32], *, both: bool, threads: int
) -> tuple[list[Step], int]:
    """Label stored vertices as ``kernels.components.connect`` does; give the steps and the bytes read.

    There is no sample of the tails: it would read a page for each row, and the tails are to be read but once.
    """
    work = Work(rows.out_rows, rows.in_rows if both else None, labels, threads)
    work.run("heads", POINT_TO_HEADS, LINK_HEADS)
    giant, _ = work.find_giant()
    buffers = page_aligned(READERS * BUFFER_BYTES).reshape(READERS, BUFFER_BYTES)
    state = State(labels, buffers, np.zeros(words.CONTROL_WORDS, np.int64))
    start = time.perf_counter()
    _read_tails(rows, rows.out_rows, rows.out_disk, state, giant)
    if both:
        _read_tails(rows, rows.in_rows, rows.in_disk, state, giant)
    edges, num_bytes, moved = (
        int(state.control[word]) for word in (words.EDGES, words.TAIL_BYTES, words.DISK_BYTES)
    )
    work.steps.append(Step("tails", edges, num_bytes, time.perf_counter() - start))
    work.run("compress", COMPRESS)
    return work.steps, moved


def _read_tails(file_rows: DiskRows, rows: Rows, disk: Disk, state: State, giant: int) -> None:
    """Join what the tails of one direction join."""
    readers = min(READERS, disk.tail_bytes // CHUNK_BYTES + 1)
    with ThreadPoolExecutor(readers) as pool:
        run_step(
            pool,
            readers,
            file_rows.file,
            state.control,
            stream,
            *(rows, disk, state, giant),
        )


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no run's time includes it."""
    num_bytes = np.zeros(1, np.uint8)
    rows = read_only(one_row())
    state = State(
        np.zeros(1, np.uint32), num_bytes.reshape(1, 1), np.zeros(words.CONTROL_WORDS, np.int64)
    )
    stream(rows, Disk(0, 0, 0), state, 0, 0)
