"""Shards in processes of this machine: bitmaps in memory that all of them share.

Messages hold no bitmaps: a worker reads frontier and visited where the client wrote them, and sets
bits where the client will look. What a step sets is right whether it ends or not, so a worker that
is lost is replaced, and the new one repeats its tasks.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection, wait

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.coordinator import Coordinator, LevelInput
from oocbfs.cluster.exchange import Traffic
from oocbfs.cluster.shard import (
    Bitmap,
    BottomUp,
    Forest,
    Shard,
    ShardRef,
    TopDown,
    VertexArray,
    Work,
)
from oocbfs.cluster.tasks import open_shard
from oocbfs.errors import ClusterError, OocbfsError, QueryError
from oocbfs.formats.container.cut import Cut
from oocbfs.kernels.shards import run as kernels
from oocbfs.kernels.shards.merge import merge_bits
from oocbfs.processes import PipedProcess

MAX_WORKERS = 256
# So often a shard's task is done again after its worker was lost.
MAX_RETRIES = 3


@dataclass(frozen=True)
class Order:
    """What a worker is to do with one shard: open it, take a step, or find its forest."""

    ref: ShardRef
    step: str
    level: int = 0
    parents: bool = False


@dataclass(frozen=True)
class Done:
    """What became of it: the shard, work, and arrays that are not in the shared memory."""

    number: int
    work: Work = field(default_factory=Work)
    ids: VertexArray | None = None
    parents: VertexArray | None = None
    arrays: tuple[VertexArray, ...] = ()
    error: Exception | None = None


class SharedBitmaps:
    """Frontier, visited and found as full bitmaps, in memory that several processes map."""

    def __init__(self, cut: Cut, descriptor: int | None = None) -> None:
        num_words = cut.num_words + 1
        self.descriptor = _unnamed(3 * 8 * num_words) if descriptor is None else descriptor
        mapping = mmap.mmap(self.descriptor, 3 * 8 * num_words)
        self.frontier, self.visited, self.found = np.frombuffer(mapping, np.uint64).reshape(3, -1)


def _unnamed(num_bytes: int) -> int:
    """Make memory that goes when the last process that maps it does."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("oocbfs")
    else:
        with tempfile.TemporaryFile() as file:
            descriptor = os.dup(file.fileno())
    os.ftruncate(descriptor, num_bytes)
    return descriptor


class _Worker(PipedProcess):
    """A process, and what it has still to answer, by shard."""

    def __init__(self, memory: int) -> None:
        super().__init__(work, memory)
        self.waiting: dict[int, Order] = {}

    def order(self, order: Order) -> None:
        """Send it something to do."""
        self.waiting[order.ref.number] = order
        self.send(order)


class LocalProcesses(Coordinator):
    """``local:N``: shards in turn to N processes of this machine."""

    level_seconds = 0.001

    def __init__(self, cluster: str, refs: Sequence[ShardRef], degrees: NDArray[np.uint32]) -> None:
        super().__init__(Cut(refs[0].num_vertices, len(refs)), degrees)
        count = int(cluster.partition(":")[2])
        if not 1 <= count <= MAX_WORKERS:
            raise QueryError(f"{cluster}: there can be 1 to {MAX_WORKERS} processes")
        self.name = cluster
        count = min(count, len(refs))
        threads = max(1, refs[0].threads // count)
        held = -(-len(refs) // count)
        self._refs = [replace(ref, threads=threads, held=held) for ref in refs]
        self._memory = SharedBitmaps(self.cut)
        self._workers: list[_Worker] = []
        self._count = count
        self._run([Order(ref, "open") for ref in self._refs])

    def ask_bottom_up(self, step: LevelInput, traffic: Traffic) -> Iterable[tuple[int, BottomUp]]:
        """Let all shards read the frontier and write their words."""
        for done in self._step("bottom_up", step, self._refs):
            found = np.ascontiguousarray(self.cut.own(self._memory.found, done.number))
            yield done.number, BottomUp(found, done.parents, done.work)

    def ask_top_down(self, step: LevelInput, traffic: Traffic) -> Iterable[tuple[int, TopDown]]:
        """Let shards read their frontier and set bits of all."""
        numbers = [number for number, _ in self.frontier_of(step)]
        for done in self._step("top_down", step, [self._refs[number] for number in numbers]):
            words = self._memory.found if done.ids is None else None
            yield done.number, TopDown(done.ids, words, done.parents, done.work)

    def heads(self) -> Iterable[tuple[int, VertexArray]]:
        """Ask all shards for their heads, which come through the pipes."""
        for done in self._run([Order(ref, "heads") for ref in self._refs]):
            for heads in done.arrays:
                yield done.number, heads

    def forests(self, largest: Bitmap) -> Iterable[Forest]:
        """Let all shards see the largest component; their trees come through the pipes."""
        self._memory.frontier[:] = largest
        for done in self._run([Order(ref, "forest") for ref in self._refs]):
            vertices, roots = done.arrays
            yield Forest(vertices, roots, done.work)

    def _step(self, name: str, step: LevelInput, refs: Sequence[ShardRef]) -> list[Done]:
        memory = self._memory
        memory.frontier[:] = step.frontier
        memory.visited[:] = step.visited
        memory.found[:] = 0
        return self._run([Order(ref, name, step.level, step.parents) for ref in refs])

    def _run(self, orders: Sequence[Order]) -> list[Done]:
        """Have orders done; none is left under way, whatever happens."""
        try:
            while len(self._workers) < self._count:
                self._workers.append(_Worker(self._memory.descriptor))
            for order in orders:
                self._workers[order.ref.number % self._count].order(order)
            return self._collect(len(orders))
        except BaseException:
            self._end_workers()
            raise

    def _collect(self, count: int) -> list[Done]:
        """Wait for all answers; a worker that is lost is replaced."""
        done: list[Done] = []
        losses: dict[int, int] = {}
        while len(done) < count:
            busy = {worker.pipe: worker for worker in self._workers if worker.waiting}
            for pipe in wait(list(busy)):
                worker = busy[pipe]  # type: ignore[index]
                try:
                    answer: Done = worker.pipe.recv()
                except (EOFError, OSError):
                    self._replace(worker, losses)
                    continue
                if answer.error is not None:
                    raise answer.error
                del worker.waiting[answer.number]
                done.append(answer)
        return done

    def _replace(self, worker: _Worker, losses: dict[int, int]) -> None:
        """Start another process in place of one that was lost, and give it the same orders."""
        worker.stop()
        worker.join()
        new = _Worker(self._memory.descriptor)
        self._workers[self._workers.index(worker)] = new
        for number, order in worker.waiting.items():
            losses[number] = losses.get(number, 0) + 1
            if losses[number] > MAX_RETRIES:
                raise ClusterError(
                    f"{order.ref.path}: its worker was lost {losses[number]} times in the "
                    f"{order.step} step of level {order.level} ({worker.describe_end()})"
                )
            new.order(order)

    def _end_workers(self) -> None:
        for worker in self._workers:
            worker.stop()
        while self._workers:
            self._workers.pop().join()

    def close(self) -> None:
        """End all workers and give the memory back."""
        self._end_workers()
        with suppress(OSError):
            os.close(self._memory.descriptor)
        self._memory.descriptor = -1


def work(pipe: Connection, memory: int) -> None:
    """Do what comes through a pipe: what a worker runs."""
    kernels.load()  # before it is counted what there is room for
    bitmaps: SharedBitmaps | None = None
    shards: dict[ShardRef, Shard] = {}
    while True:
        order: Order = pipe.recv()
        try:
            ref = order.ref
            if ref not in shards:
                shards[ref] = open_shard(ref)
            if bitmaps is None:
                bitmaps = SharedBitmaps(Cut(ref.num_vertices, ref.num_shards), memory)
            done = _take_step(shards[ref], order, bitmaps)
        except OocbfsError as error:
            done = Done(order.ref.number, error=error)
        except (MemoryError, OSError) as error:
            problem = ClusterError(f"{order.ref.path}: its worker failed: {error!r}")
            done = Done(order.ref.number, error=problem)
        pipe.send(done)


def _take_step(shard: Shard, order: Order, bitmaps: SharedBitmaps) -> Done:
    """Take one step on a shard; what it finds goes into the shared memory, unless it is little."""
    number = order.ref.number
    if order.step == "bottom_up":
        visited = np.ascontiguousarray(shard.cut.own(bitmaps.visited, number))
        bottom_up = shard.bottom_up(bitmaps.frontier, visited, parents=order.parents)
        shard.cut.own(bitmaps.found, number)[:] = bottom_up.found
        return Done(number, bottom_up.work, parents=bottom_up.parents)
    if order.step == "top_down":
        own: Bitmap = np.ascontiguousarray(shard.cut.own(bitmaps.frontier, number))
        top_down = shard.top_down(own, parents=order.parents)
        if top_down.words is not None:
            merge_bits(bitmaps.found, top_down.words)
        return Done(number, top_down.work, top_down.ids, top_down.parents)
    if order.step == "heads":
        return Done(number, arrays=shard.heads())
    if order.step == "forest":
        forest = shard.forest(bitmaps.frontier)
        return Done(number, forest.work, arrays=(forest.vertices, forest.roots))
    return Done(number)
