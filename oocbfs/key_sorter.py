"""Sort more 64-bit keys than fit in memory: scatter by splitters, spill, sort bucket by bucket."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels import radix
from oocbfs.spill import SpillFile

Keys = NDArray[np.uint64]
Result = TypeVar("Result")

# A bucket of this many keys sorts within a core's second-level cache.
_CACHED_KEYS = 1 << 17
_MAX_BUCKETS = 1 << 11


class KeySorter:
    """Collect keys in any order, then go through them sorted and distinct, bucket by bucket.

    Keys added are scattered at once, and kept in memory until ``budget_bytes`` are full; then all of
    them are written out as one run, ordered by bucket. A bucket is one slice of every run. With
    ``align_bits`` > 0, keys that agree above their lowest ``align_bits`` bits share a bucket.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        sample: Keys,
        num_keys: int,
        budget_bytes: int,
        threads: int,
        align_bits: int = 0,
    ) -> None:
        self._folder, self._budget_bytes, self._threads = folder, budget_bytes, threads
        self._align_bits = align_bits
        # A worker holds a bucket twice, and what it makes of it; a quarter of the budget is for that.
        self._bucket_keys = max(1 << 12, budget_bytes // (4 * threads * 32))
        wanted = max(1, num_keys // min(_CACHED_KEYS, self._bucket_keys))
        self._splitters = _splitters(sample, min(wanted, _MAX_BUCKETS), align_bits)
        self.num_buckets = self._splitters.size + 1
        self._blocks: list[tuple[Keys, NDArray[np.int64]]] = []
        self._blocks_bytes = 0
        self._spill = SpillFile(folder)
        self._runs: list[tuple[int, NDArray[np.int64]]] = []
        self._lock = Lock()
        self.spilled_bytes = 0

    def add(self, keys: Keys) -> None:
        """Take keys, in any order; may be called from several threads."""
        out = np.empty_like(keys)
        bounds = np.zeros(self.num_buckets + 1, np.int64)
        radix.scatter(out, bounds, keys, self._splitters)
        with self._lock:
            self._blocks.append((out, bounds))
            self._blocks_bytes += out.nbytes + bounds.nbytes
            if self._blocks_bytes > self._budget_bytes * 3 // 4:
                self._write_run()

    def _write_run(self) -> None:
        """Write all blocks in memory as one run, ordered by bucket."""
        sizes = np.sum([np.diff(bounds) for _, bounds in self._blocks], axis=0)
        bounds = np.concatenate(([0], np.cumsum(sizes)))
        start = self._spill.size
        # Pieces of about 4 MiB: long writes without holding the run twice.
        first = 0
        while first < self.num_buckets:
            stop = int(np.searchsorted(bounds, bounds[first] + (1 << 19), side="right")) - 1
            stop = min(max(stop, first + 1), self.num_buckets)
            pieces = [
                block[at[b] : at[b + 1]] for b in range(first, stop) for block, at in self._blocks
            ]
            self._spill.append(np.concatenate(pieces))
            first = stop
        self._runs.append((start, bounds))
        self.spilled_bytes += int(bounds[-1]) * 8
        self._blocks.clear()
        self._blocks_bytes = 0

    def drain(self, work: Callable[[Keys], Result]) -> Iterator[Result]:
        """Sort each bucket, apply ``work`` to its distinct keys in a worker, and yield in order."""
        if self._runs and self._blocks:
            self._write_run()
        pending: deque[Future[Result]] = deque()
        with ThreadPoolExecutor(self._threads) as pool:
            try:
                for bucket in range(self.num_buckets):
                    size = self._bucket_size(bucket)
                    if size > 4 * self._bucket_keys and size > 4 * _CACHED_KEYS:
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
                for future in pending:
                    future.cancel()
                self.close()

    def _bucket_size(self, bucket: int) -> int:
        runs = sum(int(at[bucket + 1] - at[bucket]) for _, at in self._runs)
        return runs + sum(int(at[bucket + 1] - at[bucket]) for _, at in self._blocks)

    def _sort(self, bucket: int, size: int, work: Callable[[Keys], Result]) -> Result:
        keys = np.empty(min(size, 4 * self._bucket_keys), np.uint64)
        filled = 0
        for piece in self._pieces(bucket, self._bucket_keys):
            if filled + piece.size > keys.size:  # only where the bucket is full of duplicates
                filled = radix.sort_unique(keys[:filled], np.empty(filled, np.uint64))
                keys = np.concatenate((keys[:filled], np.empty(filled + piece.size, np.uint64)))
            keys[filled : filled + piece.size] = piece
            filled += piece.size
        return work(keys[: radix.sort_unique(keys[:filled], np.empty(filled, np.uint64))])

    def _pieces(self, bucket: int, piece_keys: int) -> Iterator[Keys]:
        """Yield the keys of a bucket, at most so many at a time."""
        for start, at in self._runs:
            for first in range(int(at[bucket]), int(at[bucket + 1]), max(1, piece_keys)):
                piece = np.empty(min(piece_keys, int(at[bucket + 1]) - first), np.uint64)
                self._spill.read_into(piece, start + 8 * first)
                yield piece
        for block, at in self._blocks:
            yield block[at[bucket] : at[bucket + 1]]

    def _split(self, bucket: int, size: int) -> KeySorter | None:
        """Scatter a bucket that is too large once more; None if that cannot make it smaller."""
        stride = max(1, size // (1 << 16))
        sample = np.concatenate([keys[::stride] for keys in self._pieces(bucket, 1 << 19)])
        child = KeySorter(
            self._folder, sample, size, self._budget_bytes // 2, self._threads, self._align_bits
        )
        if child.num_buckets == 1:
            return None
        for piece in self._pieces(bucket, 1 << 19):
            child.add(piece)
        return child

    def close(self) -> None:
        """Give memory and disk space back."""
        self._blocks.clear()
        self._spill.close()


def _splitters(sample: Keys, num_buckets: int, align_bits: int) -> Keys:
    """Choose keys that cut the sample into about equal parts, less those that would repeat."""
    if num_buckets < 2 or sample.size == 0:
        return np.empty(0, np.uint64)
    ranked = np.sort(sample)
    chosen = ranked[np.arange(1, num_buckets) * ranked.size // num_buckets]
    chosen = np.unique(chosen >> np.uint64(align_bits)) << np.uint64(align_bits)
    useful: Keys = chosen[chosen > ranked[0] >> np.uint64(align_bits) << np.uint64(align_bits)]
    return useful
