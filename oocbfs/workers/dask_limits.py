"""What a Dask worker may take, as a task that runs there sees it.

Dask counts the pages of mapped files as memory of the worker, which our budgets do not, because a
kernel can take them back. So here they count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from oocbfs.memory import parse_size

if TYPE_CHECKING:
    from distributed import Worker

# A worker that takes more is killed by its nanny, whatever it is configured to pause at.
_MOST_SHARE = 0.9


def allowed_bytes(worker: Worker) -> int | None:
    """Return how much a worker may take before Dask pauses or kills it; None is no limit."""
    manager = worker.memory_manager
    if not manager.memory_limit:
        return None
    return int(manager.memory_limit * min(manager.memory_pause_fraction or 1, _MOST_SHARE))


def budget_bytes(worker: Worker, file_bytes: int, asked: str | int | None) -> int | None:
    """Return the budget of the only task of a worker; None if there is none to keep.

    A file that is mapped is taken off; one for which that would leave too little is read instead:
    its budget is smaller than the file.
    """
    allowed = allowed_bytes(worker)
    wanted = None if asked is None else parse_size(asked)
    if allowed is None:
        return wanted
    rest = allowed - file_bytes if 2 * file_bytes <= allowed else min(allowed, file_bytes - 1)
    return rest if wanted is None else min(rest, wanted)
