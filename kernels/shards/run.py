"""Run steps on the shards that a process holds, with threads that stay between steps."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from numba import types

from oocbfs.kernels.array_types import READ_U32, READ_U64, U32
from oocbfs.kernels.atomics import kernel, trailing_zeros
from oocbfs.kernels.bottom_up.probe import PROBE_WORDS
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.compiling import prepare_together
from oocbfs.kernels.constants import ONE, ZERO
from oocbfs.kernels.gather import BATCH
from oocbfs.kernels.region import STARTED, TASK, make_region, run_together
from oocbfs.kernels.rows import Rows, read_only, rows_at
from oocbfs.kernels.shards import state as words
from oocbfs.kernels.shards.bottom_up import bottom_up
from oocbfs.kernels.shards.messages import count_bits
from oocbfs.kernels.shards.state import (
    BOTTOM_UP,
    CLEAR,
    CONTROL_WORDS,
    COUNTS,
    MAX_HUBS,
    SMALL,
    TAKE,
    TOP_DOWN,
    TOP_DOWN_HUBS,
    TOP_DOWN_IDS,
    Bitmaps,
    TeamState,
    state_at,
)
from oocbfs.kernels.shards.take import clear, take
from oocbfs.kernels.shards.to_ids import run_to_ids
from oocbfs.kernels.shards.top_down import small, top_down, top_down_hubs, top_down_ids
from oocbfs.kernels.structs import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

Result = TypeVar("Result")

_NO_IDS = np.empty(0, np.uint32)
_DONE, _PAUSED = range(2)
# More vertices than there can be.
_ALL = 1 << 62
# Rows that a thread queues at a time: those of a chunk of words.
_QUEUE = 64 * 64
# Fewer words are not worth sharing.
_SHARED_WORDS = 1024
_ALONE = (SMALL, TOP_DOWN_IDS)
# So many threads have marks of their own; more share one bitmap, by atomic operations.
_OWN_MARKS = 4


@kernel
def _work(even, odd, state, thread):
    """Do one thread's part of a step on all shards that are held, one after the other."""
    now = state_at(even if state.control[words.TURN] == 0 else odd)
    shards, task = now.shards, now.control[TASK]
    if task == TOP_DOWN_HUBS:
        top_down_hubs(now, thread)
        return
    if task == CLEAR:
        clear(now)
        return
    for shard in range(shards.shape[0]):
        rows_out = rows_at(shards[shard, words.OUT])
        if task == BOTTOM_UP:
            bottom_up(rows_at(shards[shard, words.IN]), rows_out.degrees, now, shard, thread)
        elif task == TOP_DOWN:
            top_down(rows_out, now, shard, thread)
        elif task == TAKE:
            take(rows_out.degrees, now, shard)
        elif task == SMALL:
            small(rows_out, now, shard, thread)
        else:
            top_down_ids(rows_out, now, thread)


_run_region, _worker_loop = make_region(_work)


@compiled(types.int64(*[types.int64] * 5), _nrt=False)
def _run(even, odd, task, shared, thread):
    """Take a step on thread 0; others take part in steps until there are no more.

    ``even`` and ``odd`` are addresses of states, which take turns from level to level.
    """
    state = state_at(even)
    if thread != 0:
        _worker_loop(even, odd, state, thread)
        return _DONE
    counts, control = state.counts, state.control
    if task == TOP_DOWN:
        control[words.NUM_HUBS] = 0
    counts[:, words.WORD_CURSOR] = 0
    _run_region(even, odd, state, task, shared != 0)
    if task == TOP_DOWN and control[words.NUM_HUBS] != 0:
        _run_region(even, odd, state, TOP_DOWN_HUBS, shared != 0)
    return _DONE


@compiled(types.UniTuple(types.int64, 2)(READ_U64, READ_U32))
def sum_word_degrees(frontier, degrees):
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
    """List the set bits of a bitmap, ascending; numbers begin at ``offset``. Returns how many."""
    size = np.int64(0)
    for w in range(bitmap.size):
        bits = bitmap[w]
        while bits != ZERO:
            out[size] = offset + w * 64 + trailing_zeros(bits)
            size += 1
            bits &= bits - ONE
    return size


def list_vertices(bitmap: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """List the set bits of a bitmap, ascending."""
    out = np.empty(count_bits(bitmap), np.uint32)
    list_bits(out, bitmap, 0)
    return out


class HeldShard(NamedTuple):
    """A shard that a process holds: its number, its words, and its rows of both directions."""

    number: int
    num_words: int
    rows_out: Rows
    rows_in: Rows


class Team:
    """The shards of a graph that a process holds, and the threads that take steps on them.

    ``num_shards`` counts those of the graph. Where all of them are held, placed arrays have their
    words in the order of the graph's, otherwise one shard after the other. One search at a time.
    """

    def __init__(self, held: Sequence[HeldShard], num_shards: int, threads: int) -> None:
        load()
        self._threads = threads
        self._kept: list[Struct] = []
        self._shards = np.zeros((len(held), 8), np.int64)
        self.has_all = len(held) == num_shards
        place = 0
        for row, one in zip(self._shards, held, strict=True):
            rows = Struct(read_only(one.rows_out))
            rows_in = rows
            if one.rows_in is not one.rows_out:
                rows_in = Struct(read_only(one.rows_in))
            self._kept += rows, rows_in
            first = one.number if self.has_all else place
            row[:5] = rows.address, rows_in.address, one.number, first, one.num_words
            place += one.num_words
        # Words of a placed array.
        self.num_words = place
        # Sums of the last step, a row a shard.
        self.counts = np.zeros((len(held), COUNTS), np.int64)
        self._scratch = {
            "ids": np.empty((threads, 2 * BATCH), np.uint32),
            "probing": np.empty((threads, PROBE_WORDS), np.int64),
            "queues": np.empty((threads, _QUEUE), np.uint32),
            "hubs": np.empty((MAX_HUBS, 2), np.int64),
            "num_shards": num_shards,
            "stride": num_shards if self.has_all else 1,
        }
        self._shared = threads > 1 and place >= _SHARED_WORDS
        self.control = np.zeros(CONTROL_WORDS, np.int64)
        self._turns: tuple[Struct, Struct] | None = None

    def make_marks(self, num_words: int) -> NDArray[np.uint64]:
        """Make marks for so many words: bitmaps for some threads, or one that they share."""
        rows = self._threads if self._threads <= _OWN_MARKS else 1
        return np.zeros((rows, num_words), np.uint64)

    @property
    def malformed(self) -> int | None:
        """Which of the shards has what no converter wrote, if a step came across that."""
        return int(self.control[words.FAILED]) - 1 if self.control[words.FAILED] else None

    def lead(
        self,
        even: Bitmaps,
        odd: Bitmaps,
        body: Callable[[], Result],
        *,
        ids: NDArray[np.uint32] = _NO_IDS,
        owners: NDArray[np.uint32] = _NO_IDS,
        non_isolated: int = _ALL,
    ) -> Result:
        """Call something that takes steps, while the other threads wait for them.

        Vertices from ``non_isolated`` on have no edges.
        """
        # Control words are new: a late worker may still read those of before.
        self.control = np.zeros(CONTROL_WORDS, np.int64)
        self.control[STARTED] = time.monotonic_ns()
        self.control[words.NON_ISOLATED] = non_isolated
        self.counts[:] = 0
        scratch = {**self._scratch, "control": self.control, "list_ids": ids, "list_owners": owners}
        first = TeamState(even, self._shards, self.counts, **scratch)  # type: ignore[arg-type]
        turn = Struct(first)
        other = turn if odd is even else turn.with_values(first._replace(bitmaps=odd))
        self._turns = turn, other
        results: list[Result] = []

        def run(kept: Team, even: Struct, odd: Struct, thread: int) -> int:
            if thread == 0:
                results.append(body())
                return _DONE
            outcome: int = _run(even.address, odd.address, 0, 0, thread)
            return outcome

        others = range(1, self._threads if self._shared else 1)
        # Others that have not begun are not waited for, so that they keep what they may look at.
        try:
            run_together(run, (self, turn, other), others, self.control, paused=_PAUSED, wait=False)
        finally:
            self._turns = None  # which hold arrays
        return results[0]

    def step(self, task: int, turn: int = 0, level: int = 0, useful: int = _ALL) -> None:
        """Take a step, inside of ``lead``; vertices from ``useful`` on are not expanded."""
        assert self._turns is not None
        control = self.control
        control[words.TURN], control[words.LEVEL], control[words.USEFUL] = turn, level, useful
        even, odd = self._turns
        _run(even.address, odd.address, task, int(self._shared and task not in _ALONE), 0)

    def list_neighbours(
        self, own: NDArray[np.uint64], size: int, edges: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        """List all neighbours of at most MAX_HUBS rows of the only shard, and whose each is."""
        self._scratch["hubs"][:size, 1] = list_vertices(own)  # type: ignore[index]
        ids, owners = np.empty((2, edges), np.uint32)
        none = Bitmaps()

        def body() -> None:
            self.control[words.NUM_HUBS] = size
            self.step(TOP_DOWN_IDS)

        shared, self._shared = self._shared, False
        try:
            self.lead(none, none, body, ids=ids, owners=owners)
        finally:
            self._shared = shared
        count = int(self.counts[0, words.EDGES])
        return ids[:count], owners[:count]


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no step's time includes it."""
    prepare_together(sum_word_degrees, list_bits, run_to_ids, _run)
