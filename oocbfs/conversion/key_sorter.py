"""Sort more 64-bit keys than fit in memory: scatter by splitters, spill, sort bucket by bucket."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from threading import Lock
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.packed import PackedBlocks, sort_in_place
from oocbfs.conversion.plan import MemoryWatch
from oocbfs.formats.io.ordered import ordered_map
from oocbfs.kernels.convert import gaps, radix
from oocbfs.kernels.threads import Pool, Task, renewed_after_fork

Keys = NDArray[np.uint64]
Result = TypeVar("Result")

# A bucket of this many keys is sorted within a core's second-level cache.
_CACHED_KEYS = 1 << 17
# Scattering is fastest to this many buckets; more if they would be too large otherwise.
_MANY_BUCKETS, _MAX_BUCKETS = 1 << 11, 1 << 13
# Most that a worker takes for each key of its bucket: two copies to sort, and what is made of it.
_BYTES_PER_KEY = 50
# Keys that are packed, or read, at a time.
_PIECE_KEYS = 1 << 19


class SortedRun(Protocol):
    """Keys that are sorted already, and made when they are merged: the rows of a graph file.

    Rows ascend. ``is_disjoint`` tells that their keys do, too, and that nobody else has them.
    """

    is_disjoint: bool

    def count(self, first: int, stop: int) -> int:
        """Count about the keys of the rows first … stop-1."""
        ...

    def keys(self, first: int, stop: int, column_bits: int, piece_keys: int) -> Iterator[Keys]:
        """Yield the keys of the rows first … stop-1, about so many at a time."""
        ...


class Filter(Protocol):
    """What takes keys out of a bucket."""

    def keep(self, keys: Keys) -> Keys:
        """Return those of the sorted distinct keys of some rows that stay."""
        ...


class KeySorter:
    """Collect keys in any order, then go through them sorted and distinct, bucket by bucket.

    Keys are scattered when they are added, and kept in memory until ``budget_bytes`` are full; then
    all of them are written out as one run, bucket by bucket, each sorted and packed.
    With ``align_bits`` > 0, keys that agree above their lowest ``align_bits`` bits share a bucket.

    Buckets fit a core's cache, and are larger only if there would be too many of them; a quarter of
    the budget is for that. A bucket that came out twice as large as planned is cut again.

    The ``runs`` bring their share of each bucket when it is sorted: then ``align_bits`` is that of
    a column, so that each bucket has whole rows. The ``filter`` takes keys out of what was merged.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        sample: Keys,
        num_keys: int,
        *,
        budget_bytes: int,
        threads: int,
        align_bits: int = 0,
        watch: MemoryWatch | None = None,
        runs: Sequence[SortedRun] = (),
        filter: Filter | None = None,
    ) -> None:
        self._sorted_runs, self._filter = runs, filter
        self._folder, self._budget_bytes, self._threads = folder, budget_bytes, threads
        self._align_bits, self._watch = align_bits, watch or MemoryWatch()
        share = budget_bytes // (4 * (threads + 1) * 2 * _BYTES_PER_KEY)
        self._bucket_keys = max(_CACHED_KEYS, share)
        wanted = num_keys // _CACHED_KEYS
        if wanted > _MANY_BUCKETS:
            wanted = min(max(num_keys // self._bucket_keys, _MANY_BUCKETS), _MAX_BUCKETS)
        self._splitters = _splitters(sample, wanted, align_bits)
        self.num_buckets = self._splitters.size + 1
        self._blocks: list[tuple[Keys, NDArray[np.int64]]] = []
        self._blocks_bytes = 0
        self._packed = PackedBlocks(folder)
        # For each run, the first packed block of each bucket, and how many keys a bucket has.
        self._runs: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        self._lock = renewed_after_fork(Lock())
        self._children_bytes = 0

    @property
    def spilled_bytes(self) -> int:
        """Bytes that went to disk."""
        return self._packed.num_bytes + self._children_bytes

    def add(self, keys: Keys) -> None:
        """Take keys, in any order; may be called from several threads."""
        out = np.empty_like(keys)
        bounds = np.zeros(self.num_buckets + 1, np.int64)
        radix.scatter(out, bounds, keys, self._splitters)
        with self._lock:
            self._blocks.append((out, bounds))
            self._blocks_bytes += out.nbytes + bounds.nbytes
            # Short runs are slow to read, so there are none, even if little memory is left.
            share = 1 if self._watch.is_over() else 6
            if self._blocks_bytes > self._budget_bytes * share // 8:
                self._write_run()

    def _write_run(self) -> None:
        """Write all blocks in memory as one run, ordered by bucket."""
        firsts = np.empty(self.num_buckets + 1, np.int64)
        sizes = np.zeros(self.num_buckets, np.int64)
        firsts[0] = len(self._packed)

        def pack(piece: tuple[int, list[Keys]]) -> tuple[int, Keys, int]:
            bucket, parts = piece
            keys = sort_in_place(np.concatenate(parts))
            return bucket, gaps.packed(keys), keys.size

        last = 0
        for bucket, packed, size in ordered_map(pack, self._slices(), self._threads):
            firsts[last + 1 : bucket + 1] = len(self._packed)
            last = bucket
            self._packed.append(packed, size)
            sizes[bucket] += size
        firsts[last + 1 :] = len(self._packed)
        self._runs.append((firsts, sizes))
        self._blocks.clear()
        self._blocks_bytes = 0

    def _slices(self) -> Iterator[tuple[int, list[Keys]]]:
        """Yield the keys in memory by bucket, about ``_PIECE_KEYS`` of one bucket at most."""
        for bucket in range(self.num_buckets):
            parts: list[Keys] = []
            size = 0
            for block, bounds in self._blocks:
                parts.append(block[bounds[bucket] : bounds[bucket + 1]])
                size += parts[-1].size
                if size >= _PIECE_KEYS:
                    yield bucket, parts
                    parts, size = [], 0
            if size:
                yield bucket, parts

    def drain(self, work: Callable[[Keys], Result]) -> Iterator[Result]:
        """Sort each bucket, apply ``work`` to its distinct keys in a worker, and yield in order."""
        if self._runs and self._blocks:
            self._write_run()
        pending: deque[Task[Result]] = deque()
        pool = Pool(self._threads)
        try:
            for bucket in range(self.num_buckets):
                size = self._bucket_size(bucket)
                self._watch.is_over()
                if size > 2 * self._bucket_keys:
                    while pending:
                        yield pending.popleft().result()
                    child = self._split(bucket, size)
                    if child is not None:
                        yield from child.drain(work)
                        self._children_bytes += child.spilled_bytes
                        continue
                pending.append(pool.submit(self._sort, bucket, size, work))
                if len(pending) > self._threads + 1:
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.close()
            self.close()

    def _bucket_size(self, bucket: int) -> int:
        num_keys = sum(int(sizes[bucket]) for _, sizes in self._runs)
        num_keys += sum(int(bounds[bucket + 1] - bounds[bucket]) for _, bounds in self._blocks)
        return num_keys + sum(run.count(*self._rows(bucket)) for run in self._sorted_runs)

    def _rows(self, bucket: int) -> tuple[int, int]:
        """Return the first row of a bucket, and of the next one."""
        starts = self._splitters >> np.uint64(self._align_bits)
        first = int(starts[bucket - 1]) if bucket else 0
        return first, int(starts[bucket]) if bucket < starts.size else 1 << self._align_bits

    def _sort(self, bucket: int, size: int, work: Callable[[Keys], Result]) -> Result:
        keys = self._merged(bucket, size)
        return work(keys if self._filter is None else self._filter.keep(keys))

    def _merged(self, bucket: int, size: int) -> Keys:
        """Return the distinct keys of a bucket, sorted."""
        runs = self._sorted_runs
        if len(runs) != 1 or not runs[0].is_disjoint:
            return self._sorted(self._pieces(bucket, _CACHED_KEYS), size)
        base = list(runs[0].keys(*self._rows(bucket), self._align_bits, _CACHED_KEYS))
        keys = base[0] if len(base) == 1 else np.concatenate([np.empty(0, np.uint64), *base])
        more = self._sorted(self._added(bucket, _CACHED_KEYS), size)
        return np.insert(keys, np.searchsorted(keys, more), more) if more.size else keys

    def _sorted(self, pieces: Iterator[Keys], size: int) -> Keys:
        keys = np.empty(min(size, 2 * self._bucket_keys), np.uint64)
        filled = 0
        for piece in pieces:
            if filled + piece.size > keys.size:  # only where the bucket is full of duplicates
                filled = sort_in_place(keys[:filled]).size
                more = max(filled, self._bucket_keys) + piece.size
                keys = np.concatenate((keys[:filled], np.empty(more, np.uint64)))
            keys[filled : filled + piece.size] = piece
            filled += piece.size
        return sort_in_place(keys[:filled])

    def _pieces(self, bucket: int, piece_keys: int) -> Iterator[Keys]:
        """Yield the keys of a bucket, at most ``piece_keys`` at a time."""
        yield from self._added(bucket, piece_keys)
        for run in self._sorted_runs:
            yield from run.keys(*self._rows(bucket), self._align_bits, piece_keys)

    def _added(self, bucket: int, piece_keys: int) -> Iterator[Keys]:
        """Yield the keys of a bucket that were added."""
        for firsts, _ in self._runs:
            yield from map(self._packed.block, range(firsts[bucket], firsts[bucket + 1]))
        for block, bounds in self._blocks:
            begin, end = int(bounds[bucket]), int(bounds[bucket + 1])
            for first in range(begin, end, piece_keys):
                yield block[first : min(first + piece_keys, end)]

    def _split(self, bucket: int, size: int) -> KeySorter | None:
        """Scatter a bucket that is too large once more; None if that cannot make it smaller."""
        stride = max(1, size // (1 << 16))
        # Copies, because a view keeps the whole piece in memory.
        sample = np.concatenate(
            [keys[::stride].copy() for keys in self._pieces(bucket, _PIECE_KEYS)]
        )
        child = KeySorter(
            self._folder,
            sample,
            size,
            budget_bytes=self._budget_bytes // 4,
            threads=self._threads,
            align_bits=self._align_bits,
            watch=self._watch,
            filter=self._filter,
        )
        if child.num_buckets == 1:
            return None
        for piece in self._pieces(bucket, _PIECE_KEYS):
            child.add(piece)
        return child

    def close(self) -> None:
        """Release memory and disk space."""
        self._blocks.clear()
        self._packed.close()


def _splitters(sample: Keys, num_buckets: int, align_bits: int) -> Keys:
    """Choose keys that cut the sample into about equal parts, less those that would repeat."""
    if num_buckets < 2 or sample.size == 0:
        return np.empty(0, np.uint64)
    ordered = np.sort(sample)
    chosen = ordered[np.arange(1, num_buckets) * ordered.size // num_buckets]
    chosen = np.unique(chosen >> np.uint64(align_bits)) << np.uint64(align_bits)
    useful: Keys = chosen[chosen > ordered[0] >> np.uint64(align_bits) << np.uint64(align_bits)]
    return useful
