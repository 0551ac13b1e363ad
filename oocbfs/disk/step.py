"""What the drivers of all engines on disk share: readers, their buffers, and what reading costs.

There are many more readers than cores: each waits for one read at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.reader import damaged_frame
from oocbfs.formats.io.direct import DirectFile, page_aligned
from oocbfs.formats.io.zstd_library import make_scratch
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.disk.read import PAGE_BYTES
from oocbfs.kernels.disk.stream import BUFFER_BYTES, STORED_BYTES
from oocbfs.kernels.threads import Pool

_SECTIONS = {words.DAMAGED: Kind.TAILS, words.DAMAGED_IN: Kind.IN_TAILS}
_Counts = TypeVar("_Counts", np.int64, NDArray[np.int64])

# From so many bytes a vertex on, reading the frontier's rows costs more than the heads pass.
HEADS_WORTH = 1.0
# A read costs as much as so many bytes more of one that is under way.
_READ_BYTES = 16 << 10


def make_buffers(num_threads: int, *, framed: bool = False) -> NDArray[np.uint8]:
    """Return a buffer for each thread, for what it reads, and scratch for frames behind it."""
    if framed:
        return make_scratch(num_threads, STORED_BYTES, buffer_bytes=BUFFER_BYTES)
    return page_aligned(num_threads * BUFFER_BYTES).reshape(num_threads, BUFFER_BYTES)


def read_cost(pages: _Counts, reads: _Counts) -> _Counts:
    """Return what reading so many pages in so many reads costs, in bytes."""
    return pages * PAGE_BYTES + reads * _READ_BYTES


class Readers:
    """Threads that run one compiled step after the other, and read from a file."""

    def __init__(self, file: DirectFile, control: NDArray[np.int64], num_threads: int) -> None:
        self._file = file
        self._control = control
        self._pool = Pool(num_threads)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._pool.close()

    def run(self, num_threads: int, step: Callable[..., int | None], *arguments: object) -> int:
        """Run a step on so many threads; return what the first one returned.

        A step's last argument is the number of its thread.

        Raises
        ------
        FormatError
            If a row is damaged or the file cannot be read.
        """
        control = self._control
        control[words.CURSOR] = 0
        if num_threads == 1:
            returned = step(*arguments, 0)
        else:
            try:
                tasks = [
                    self._pool.submit(step, *arguments, thread) for thread in range(num_threads)
                ]
                returned, *_ = [task.result() for task in tasks]
            except BaseException:
                # Ctrl-C, maybe before all had begun: those that have stop soon, and the pool's end
                # waits for them.
                control[words.FAILED] = words.READ_FAILED
                raise
        check_read(self._file, control)
        return returned or 0


def check_read(file: DirectFile, control: NDArray[np.int64]) -> None:
    """Raise why a step failed, if it did."""
    failed = int(control[words.FAILED])
    if failed == words.MALFORMED:
        raise FormatError(f"{file.path}: a row is damaged: run 'oocbfs verify'")
    if failed in _SECTIONS:
        problem = damaged_frame(_SECTIONS[failed], int(control[words.FRAME]))
        raise FormatError(f"{file.path}: {problem}")
    if failed:
        raise file.explain(int(control[words.SYSTEM_ERROR]))
