"""Sort more 64-bit keys than fit in memory: scatter by splitters, spill, sort bucket by bucket."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.plan import MemoryWatch
from oocbfs.conversion.spill import SpillFile
from oocbfs.kernels.convert import radix
from oocbfs.kernels.threads import Pool, Task, renewed_after_fork

Keys = NDArray[np.uint64]
Result = TypeVar("Result")

# A bucket of this many keys is sorted within a core's second-level cache.
_CACHED_KEYS = 1 << 17
# Scattering is fastest to this many buckets; more if they would be too large otherwise.
_MANY_BUCKETS, _MAX_BUCKETS = 1 << 11, 1 << 13
# Most that a worker takes for each key of its bucket: two copies to sort, and what is made of it.
_BYTES_PER_KEY = 50
# Keys that are read or written at a time.
_PIECE_KEYS = 1 << 19


class KeySorter:
    """Collect keys in any order, then go through them sorted and distinct, bucket by bucket.

    Keys are scattered when they are added, and kept in memory until ``budget_bytes`` are full; then
    all of them are written out as one run, ordered by bucket. A bucket is one slice of every run.
    With ``align_bits`` > 0, keys that agree above their lowest ``align_bits`` bits share a bucket.

    Buckets fit a core's cache, and are larger only if there would be too many of them; a quarter of
    the budget is for that. A bucket that came out twice as large as planned is cut again.
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
    ) -> None:
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
        self._spill = SpillFile(folder)
        self._runs: list[tuple[int, NDArray[np.int64]]] = []
        self._lock = renewed_after_fork(Lock())
        self.spilled_bytes = 0

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
        sizes = np.sum([np.diff(bounds) for _, bounds in self._blocks], axis=0)
        bounds = np.concatenate(([0], np.cumsum(sizes)))
        start = self._spill.size
        # Long writes, without holding the run twice.
        pieces, size = [], 0
        for bucket in range(self.num_buckets):
            for block, parts in self._blocks:
                pieces.append(block[parts[bucket] : parts[bucket + 1]])
                size += pieces[-1].size
                if size >= _PIECE_KEYS:
                    self._spill.append(np.concatenate(pieces))
                    pieces, size = [], 0
        self._spill.append(np.concatenate([np.empty(0, np.uint64), *pieces]))
        self._runs.append((start, bounds))
        self.spilled_bytes += int(bounds[-1]) * 8
        self._blocks.clear()
        self._blocks_bytes = 0

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
                        self.spilled_bytes += child.spilled_bytes
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
        runs = sum(int(bounds[bucket + 1] - bounds[bucket]) for _, bounds in self._runs)
        return runs + sum(int(bounds[bucket + 1] - bounds[bucket]) for _, bounds in self._blocks)

    def _sort(self, bucket: int, size: int, work: Callable[[Keys], Result]) -> Result:
        keys = np.empty(min(size, 2 * self._bucket_keys), np.uint64)
        filled = 0
        for piece in self._pieces(bucket, _CACHED_KEYS):
            if filled + piece.size > keys.size:  # only where the bucket is full of duplicates
                filled = radix.sort_unique(keys[:filled], np.empty(filled, np.uint64))
                more = max(filled, self._bucket_keys) + piece.size
                keys = np.concatenate((keys[:filled], np.empty(more, np.uint64)))
            keys[filled : filled + piece.size] = piece
            filled += piece.size
        return work(keys[: radix.sort_unique(keys[:filled], np.empty(filled, np.uint64))])

    def _pieces(self, bucket: int, piece_keys: int) -> Iterator[Keys]:
        """Yield the keys of a bucket, at most ``piece_keys`` at a time."""
        for start, bounds in self._runs:
            begin, end = int(bounds[bucket]), int(bounds[bucket + 1])
            for first in range(begin, end, piece_keys):
                piece = np.empty(min(piece_keys, end - first), np.uint64)
                self._spill.read_into(piece, start + 8 * first)
                yield piece
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
        )
        if child.num_buckets == 1:
            return None
        for piece in self._pieces(bucket, _PIECE_KEYS):
            child.add(piece)
        return child

    def close(self) -> None:
        """Release memory and disk space."""
        self._blocks.clear()
        self._spill.close()


def _splitters(sample: Keys, num_buckets: int, align_bits: int) -> Keys:
    """Choose keys that cut the sample into about equal parts, less those that would repeat."""
    if num_buckets < 2 or sample.size == 0:
        return np.empty(0, np.uint64)
    ordered = np.sort(sample)
    chosen = ordered[np.arange(1, num_buckets) * ordered.size // num_buckets]
    chosen = np.unique(chosen >> np.uint64(align_bits)) << np.uint64(align_bits)
    useful: Keys = chosen[chosen > ordered[0] >> np.uint64(align_bits) << np.uint64(align_bits)]
    return useful
