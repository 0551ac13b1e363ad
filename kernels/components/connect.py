"""Connected components on heads and tails, on all cores: Afforest that decodes almost no tails.

The heads join most of a component in one pass over a flat array. A look at some random vertices
then says which component is the largest. If it does not hold nearly everything yet, vertices
outside add the first neighbour of their tails. In the end, every vertex that is still outside reads
its tail until it gets in.
"""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from oocbfs.kernels.atomics import atomic_add, kernel, load_acquire
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.compiling import Code
from oocbfs.kernels.components import state as words
from oocbfs.kernels.components.state import ForestState
from oocbfs.kernels.components.steps import (
    compress_all,
    link_firsts,
    link_heads,
    link_tails,
    point_to_heads,
)
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.region import FINISH, GATE, run_together, take_chunk
from oocbfs.kernels.rows import Rows, one_row, read_only

if TYPE_CHECKING:
    from numpy.typing import NDArray

POINT_TO_HEADS, LINK_HEADS, LINK_FIRSTS, LINK_TAILS, COMPRESS = range(5)
# Of the vertices that have edges: a largest component that holds so many needs no second sample.
ENOUGH = 0.9
_NUM_SAMPLES = 4096
_CHUNK = 1 << 14
# Chunks after which the leading thread returns to Python, which then answers Ctrl-C.
_SLICE = 64
_PAUSED = -1


class ComponentStep(NamedTuple):
    """One step: neighbours that were looked at, tail bytes decoded for them, and how long it took.

    Heads are looked at in every row, and not counted.
    """

    name: str
    edges: int
    tail_bytes: int
    seconds: float


class Connection(NamedTuple):
    """What was done, and whether tails were bad."""

    steps: list[ComponentStep]
    malformed: bool


@kernel
def _link_rows(task, rows, state, first, stop):
    """Run a step that looks at tails on the rows of one direction; return edges and tail bytes."""
    if task == LINK_FIRSTS:
        return link_firsts(rows, state, first, stop)
    return link_tails(rows, state, first, stop)


@kernel
def _run_chunk(task, rows_out, rows_in, both, state, first, stop):
    """Run a step on vertices first … stop-1; return the edges and tail bytes it looked at."""
    edges = 0
    num_bytes = 0
    if task == POINT_TO_HEADS:
        point_to_heads(rows_out.heads, state, first, stop)
    elif task == LINK_HEADS:
        link_heads(rows_out, rows_in, both, state, first, stop)
    elif task == COMPRESS:
        compress_all(state, first, stop)
    else:
        edges, num_bytes = _link_rows(task, rows_out, state, first, stop)
        if both:
            more_edges, more_bytes = _link_rows(task, rows_in, state, first, stop)
            edges += more_edges
            num_bytes += more_bytes
    return edges, num_bytes


@compiled(_nrt=False)
def _step(task, rows_out, rows_in, both, state, thread):
    """Take chunks of the vertices and run a step on them, until none are left."""
    control = state.control
    n = state.labels.size
    num_chunks = 0
    # The gate is at FINISH when nothing is left to do, or when the leader was interrupted.
    while control[words.FAILED] == 0 and load_acquire(control, GATE) != FINISH:
        first, stop = take_chunk(control, words.CURSOR, _CHUNK, n)
        if first == stop:
            break
        edges, num_bytes = _run_chunk(task, rows_out, rows_in, both, state, first, stop)
        atomic_add(control, words.EDGES, edges)
        atomic_add(control, words.TAIL_BYTES, num_bytes)
        num_chunks += 1
        if thread == 0 and num_chunks == _SLICE:
            return _PAUSED
    return np.int64(0)


def sample_vertices(num_vertices: int) -> NDArray[np.int64]:
    """Choose vertices, the same every time."""
    return np.random.default_rng(1).integers(0, num_vertices, _NUM_SAMPLES if num_vertices else 0)


def guess_largest(roots: NDArray[np.uint32]) -> tuple[int, float]:
    """Take the most frequent of some roots for the largest component's; return it and its share."""
    if roots.size == 0:
        return 0, 0.0
    found, counts = np.unique(roots, return_counts=True)
    most = int(counts.argmax())
    return int(found[most]), float(counts[most] / roots.size)


class Work:
    """The steps on one graph, run one after the other by so many threads, this one included.

    Rows without tails are enough for all steps but LINK_FIRSTS and LINK_TAILS.
    """

    def __init__(
        self, rows_out: Rows, rows_in: Rows | None, labels: NDArray[np.uint32], threads: int
    ) -> None:
        self._threads = threads
        self._state = ForestState(labels=labels, control=np.zeros(words.CONTROL_WORDS, np.int64))
        out = read_only(rows_out)
        both = rows_in is not None
        self._arguments = (out, out if rows_in is None else read_only(rows_in), both, self._state)
        self._heads = out.heads
        self.steps: list[ComponentStep] = []

    @property
    def malformed(self) -> bool:
        """Whether tails were bad."""
        return bool(self._state.control[words.FAILED])

    def run(self, name: str, *tasks: int) -> int:
        """Run tasks as one step; return the edges it looked at."""
        start = time.perf_counter()
        control = self._state.control
        control[[words.EDGES, words.TAIL_BYTES]] = 0
        others = range(1, self._threads)
        for task in tasks:
            control[[GATE, words.CURSOR]] = 0
            arguments = (task, *self._arguments)
            run_together(_step, arguments, others, control, paused=_PAUSED, wait=True)
        step = ComponentStep(
            name=name,
            edges=int(control[words.EDGES]),
            tail_bytes=int(control[words.TAIL_BYTES]),
            seconds=time.perf_counter() - start,
        )
        self.steps.append(step)
        return step.edges

    def find_largest(self) -> tuple[int, float]:
        """Look for the largest component, for later steps; return a vertex of it and its share."""
        labels = self._state.labels
        picked = sample_vertices(labels.size)
        # Vertices without neighbours are in no component that matters.
        picked = picked[self._heads[picked] != NO_HEAD]
        roots, above = picked, labels[picked]
        while not np.array_equal(roots, above):
            roots, above = above, labels[above]
        largest, share = guess_largest(roots)
        self._state.control[words.LARGEST] = largest
        return largest, share


def connect(
    rows_out: Rows, rows_in: Rows | None, labels: NDArray[np.uint32], *, threads: int = 1
) -> Connection:
    """Label every vertex with the smallest vertex of its (weakly connected) component for a label.

    Parameters
    ----------
    rows_out, rows_in
        Out- and in-neighbours; without rows_in the graph is undirected.
    labels
        Gets the labels.
    threads
        Threads to use, this one included.
    """
    work = Work(rows_out, rows_in, labels, threads)
    work.run("heads", POINT_TO_HEADS, LINK_HEADS)
    if work.find_largest()[1] < ENOUGH:
        work.run("first of tails", LINK_FIRSTS)
        work.find_largest()
    if work.run("tails", LINK_TAILS):
        work.run("compress", COMPRESS)
    return Connection(work.steps, work.malformed)


CODE = (Code(_step, __name__, "load"),)


@cache
def load() -> None:
    """Compile the kernels or load them from the cache, so that no run's time includes it."""
    connect(one_row(), None, np.empty(1, np.uint32))
