"""Run one step on a part of a graph, on some threads."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import types

from oocbfs.kernels.array_types import READ_U32, READ_U64, U32
from oocbfs.kernels.atomics import trailing_zeros
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.compiling import prepare_together
from oocbfs.kernels.gather import BATCH
from oocbfs.kernels.probe import PENDING
from oocbfs.kernels.region import CURSOR, HUB_CURSOR, ONE, TASK, ZERO
from oocbfs.kernels.rows import ROWS, Rows, read_only, rows_at
from oocbfs.kernels.shards import state as words
from oocbfs.kernels.shards.down import down, down_hubs, down_ids
from oocbfs.kernels.shards.state import (
    CONTROL_WORDS,
    DOWN,
    DOWN_HUBS,
    DOWN_IDS,
    MAX_HUBS,
    STATE,
    UP,
    ShardState,
    state_at,
)
from oocbfs.kernels.shards.up import up
from oocbfs.kernels.structs import Struct
from oocbfs.kernels.workers import run_together

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NO_WORDS = np.empty(0, np.uint64)
_NO_IDS = np.empty(0, np.uint32)
_DONE, _PAUSED = range(2)
# Rows that a thread queues at a time: those of a chunk of words.
_QUEUE = 64 * 64


@compiled(types.int64(*[types.int64] * 3), _nrt=False)
def _run(rows, state, thread):
    """Do one thread's part of the step; rows and state are addresses."""
    rows, state = rows_at(rows), state_at(state)
    task = state.control[TASK]
    if task == UP:
        up(rows, state, thread)
    elif task == DOWN:
        down(rows, state, thread)
    elif task == DOWN_HUBS:
        down_hubs(rows, state, thread)
    else:
        down_ids(rows, state, thread)
    return _DONE


@compiled(types.UniTuple(types.int64, 2)(READ_U64, READ_U32))
def weigh_words(frontier, degrees):
    """Count the vertices of an own bitmap, and their edges."""
    size = np.int64(0)
    edges = np.int64(0)
    for w in range(frontier.size):
        bits = frontier[w]
        while bits != ZERO:
            edges += np.int64(degrees[w * 64 + trailing_zeros(bits)])
            size += 1
            bits &= bits - ONE
    return size, edges


@compiled(types.int64(U32, READ_U64, types.int64))
def list_bits(out, bitmap, offset):
    """List the set bits of a bitmap, ascending; numbers begin at ``offset``. Gives how many."""
    size = np.int64(0)
    for w in range(bitmap.size):
        bits = bitmap[w]
        while bits != ZERO:
            out[size] = offset + w * 64 + trailing_zeros(bits)
            size += 1
            bits &= bits - ONE
    return size


class Counts(NamedTuple):
    """What a step looked at, and whether a row was malformed."""

    edges: int
    heads: int
    tested: int
    tail_bytes: int
    malformed: bool


class Stepper:
    """Steps on the rows of one part, and their scratch; one step at a time."""

    def __init__(self, rows_out: Rows, rows_in: Rows, threads: int) -> None:
        self._rows_out = read_only(rows_out)
        self._out = Struct(ROWS, self._rows_out)
        self._in = self._out if rows_in is rows_out else Struct(ROWS, read_only(rows_in))
        self._threads = threads
        self._ids = np.empty((threads, 2 * BATCH), np.uint32)
        self._offsets = np.empty((threads, 3 * PENDING), np.int64)
        self._queues = np.empty((threads, _QUEUE), np.uint32)
        self._hubs = np.empty(MAX_HUBS, np.int64)

    def up(
        self,
        frontier: NDArray[np.uint64],
        visited: NDArray[np.uint64],
        found: NDArray[np.uint64],
        parents: NDArray[np.uint32] | None,
    ) -> Counts:
        """Find the rows that are not visited and have a neighbour in the frontier.

        ``frontier`` is full, the others are own bitmaps; ``found`` is zero. ``parents`` gets a
        neighbour in the frontier for each row that is found.
        """
        state = self._state(frontier, found, visited=visited, parents=parents)
        return self._run(UP, self._in, state)

    def down(self, frontier: NDArray[np.uint64], found: NDArray[np.uint64]) -> Counts:
        """Set the bits of all neighbours of an own frontier in a full bitmap."""
        state = self._state(frontier, found)
        counts = self._run(DOWN, self._out, state)
        if state.control[words.NUM_HUBS] and not counts.malformed:
            counts = self._run(DOWN_HUBS, self._out, state)
        return counts

    def down_ids(
        self, frontier: NDArray[np.uint64], size: int, edges: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], Counts]:
        """List all neighbours of at most MAX_HUBS rows, and the row that each belongs to."""
        rows = np.empty(size, np.uint32)
        list_bits(rows, frontier, 0)
        self._hubs[:size] = rows
        ids, owners = np.empty((2, edges), np.uint32)
        state = self._state(frontier, _NO_WORDS, ids=ids, owners=owners)
        state.control[words.NUM_HUBS] = size
        counts = self._run(DOWN_IDS, self._out, state, threads=1)
        return ids[: counts.edges], owners[: counts.edges], counts

    def _state(
        self,
        frontier: NDArray[np.uint64],
        found: NDArray[np.uint64],
        *,
        visited: NDArray[np.uint64] = _NO_WORDS,
        parents: NDArray[np.uint32] | None = None,
        ids: NDArray[np.uint32] = _NO_IDS,
        owners: NDArray[np.uint32] = _NO_IDS,
    ) -> ShardState:
        return ShardState(
            frontier=frontier,
            visited=visited,
            found=found,
            parents=_NO_IDS if parents is None else parents,
            list_ids=ids,
            list_owners=owners,
            ids=self._ids,
            offsets=self._offsets,
            queues=self._queues,
            hubs=self._hubs,
            control=np.zeros(CONTROL_WORDS, np.int64),
        )

    def _run(
        self, task: int, rows: Struct, state: ShardState, threads: int | None = None
    ) -> Counts:
        control = state.control
        control[TASK] = task
        control[[CURSOR, HUB_CURSOR]] = 0
        struct = Struct(STATE, state)
        run_together(
            _run_structs,
            (rows, struct),
            range(1, self._threads if threads is None else threads),
            control,
            paused=_PAUSED,
            wait=True,
        )
        return Counts(
            edges=int(control[words.EDGES]),
            heads=int(control[words.HEADS]),
            tested=int(control[words.TESTED]),
            tail_bytes=int(control[words.TAIL_BYTES]),
            malformed=bool(control[words.FAILED]),
        )


def _run_structs(rows: Struct, state: Struct, thread: int) -> int:
    """Run the compiled step, whose structs this call keeps alive."""
    outcome: int = _run(rows.address, state.address, thread)
    return outcome


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no step's time includes it."""
    prepare_together(weigh_words, list_bits, _run)
