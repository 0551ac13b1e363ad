"""The threads that help a compiled level loop, kept from one traversal to the next."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

from oocbfs.kernels.bfs_state import FINISH, GATE

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

# Threads that help at the same time, over all traversals.
_MOST_HELPERS = 1024


@cache
def _crew(process: int) -> ThreadPoolExecutor:
    """Threads that wait to help; a process that was forked has none of its parent's."""
    return ThreadPoolExecutor(_MOST_HELPERS, f"oocbfs-{process}")


def run_together(
    run: Callable[..., int],
    arguments: tuple[Any, ...],
    threads: int,
    control: NDArray[np.int64],
    *,
    paused: int,
    wait: bool,
) -> int:
    """Call run(*arguments, 0) until it gives something else than paused, with helpers 1, 2, … .

    Helpers leave when the gate says so: one that sleeps or has no core holds up nobody to the end,
    unless the caller is to wait for them because it will open the gate again.
    """
    crew = _crew(os.getpid())
    helpers = [crew.submit(run, *arguments, thread) for thread in range(1, threads)]
    try:
        while (outcome := run(*arguments, 0)) == paused:
            pass
    finally:
        control[GATE] = FINISH
        for helper in helpers:
            if not helper.cancel() and wait:
                helper.result()
    return outcome
