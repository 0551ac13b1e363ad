"""What a conversion may hold in memory, divided before it begins.

    budget = what the process occupies when its kernels are loaded
           + moving    what is on its way between threads, in the phase that takes most: text and
                       the ids in it, batches to scatter, buckets to sort and encode
           + held      what waits: edges, keys, tables of vertices, the row of a hub; and while the
                       input is read, the windows of its compression, long lines and lists of ids

The allocator keeps freed arrays, because new pages are expensive. So the plan counts what is in
use, and a `MemoryWatch` gives the rest back to the system when the budget is short.
"""

from __future__ import annotations

from dataclasses import dataclass

from oocbfs import memory
from oocbfs.errors import BudgetError
from oocbfs.formats.io.limits import LINE_COPIES, LINE_LIMIT_BYTES, InputLimits

# In flight for any number of threads, and for each of them. tests/conversion/test_convert_budget.py
# checks both.
_MOVING_BYTES = 40 << 20
_THREAD_BYTES = 20 << 20
_MIN_HELD_BYTES = 24 << 20
# Ids that an input lists are held as they are, with a table, beside all tables of vertices.
LISTED_BYTES = 10
VERTEX_BYTES = {False: 20, True: 24}  # undirected, directed


class MemoryWatch:
    """Keeps the process below a limit by giving back what the allocator keeps for later."""

    def __init__(self, limit_bytes: int | None = None) -> None:
        self._limit_bytes = limit_bytes

    def is_over(self) -> bool:
        """Return whether the process is above its limit even after free memory was given back."""
        if self._limit_bytes is None or memory.resident_bytes() <= self._limit_bytes:
            return False
        memory.give_back()
        return memory.resident_bytes() > self._limit_bytes


@dataclass(frozen=True)
class ConvertPlan:
    """The threads that fit, the bytes that may be held, and a watch over the whole process."""

    threads: int
    held_bytes: int
    watch: MemoryWatch

    def limits(self, folder: str) -> InputLimits:
        """Limit the memory of reading, besides edges in flight."""
        share = self.held_bytes // 5
        return InputLimits(
            window_bytes=share + (8 << 20),
            line_bytes=min(LINE_LIMIT_BYTES, max(1 << 20, share // LINE_COPIES)),
            num_ids=self.held_bytes // (VERTEX_BYTES[False] + LISTED_BYTES),
            folder=folder,
        )


def least_budget(num_vertices: int, *, directed: bool) -> int:
    """Return about the least budget within which so many vertices, numbered densely, convert."""
    held_bytes = max(_MIN_HELD_BYTES, VERTEX_BYTES[directed] * num_vertices * 4 // 3)
    return memory.used_bytes() + _MOVING_BYTES + _THREAD_BYTES + held_bytes


def make_plan(budget_bytes: int, threads: int) -> ConvertPlan:
    """Divide a budget for the whole process, with fewer threads if it is short.

    Raises
    ------
    BudgetError
        If it is too little for one thread.
    """
    memory.give_back()
    memory.expect_addresses(budget_bytes - memory.resident_bytes())
    free_bytes = budget_bytes - memory.resident_bytes() - _MOVING_BYTES - _MIN_HELD_BYTES
    threads = min(threads, free_bytes // _THREAD_BYTES)
    if threads < 1:
        needed_bytes = budget_bytes - free_bytes + _THREAD_BYTES
        raise BudgetError(
            f"a conversion needs at least {memory.format_size(needed_bytes)} of memory and may "
            f"take {memory.format_size(budget_bytes)}: allow more with --memory"
        )
    moving_bytes = _MOVING_BYTES + _THREAD_BYTES * threads
    held_bytes = free_bytes + _MIN_HELD_BYTES - _THREAD_BYTES * threads
    watch = MemoryWatch(budget_bytes - moving_bytes // 2)
    return ConvertPlan(threads=threads, held_bytes=held_bytes, watch=watch)
