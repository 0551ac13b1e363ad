"""Run a compiled step on threads that read from disk, and explain how it failed."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, wait

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.formats.io.direct import DirectFile
from oocbfs.kernels.disk import state as words


def run_step(
    pool: Executor,
    threads: int,
    file: DirectFile,
    control: NDArray[np.int64],
    step: Callable[..., int | None],
    *arguments: object,
) -> int | None:
    """Run a step, whose last argument is its thread's number; give what the first thread returned.

    Raises
    ------
    FormatError
        If a row is damaged or the file cannot be read.
    """
    control[words.CURSOR] = 0
    if threads == 1:
        returned = step(*arguments, 0)
    else:
        try:
            futures = [pool.submit(step, *arguments, thread) for thread in range(threads)]
            wait(futures)
        except BaseException:
            # Ctrl-C, maybe before all had begun: those that have stop soon, and the pool's end awaits them.
            control[words.FAILED] = words.READ_FAILED
            raise
        returned, *_ = [future.result() for future in futures]
    if control[words.FAILED] == words.MALFORMED:
        raise FormatError(f"{file.path}: a row is damaged: run 'oocbfs verify'")
    if control[words.FAILED]:
        raise file.explain(int(control[words.SYSTEM_ERROR]))
    return returned
