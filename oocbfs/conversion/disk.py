"""How much disk a conversion takes: what is there now, and what there will be at most.

Sorted keys of R bits, N of them, wait as gaps of R - log2(N) bits on average. By Rice's code each
takes 2.1 bits more at most, and by Jensen's inequality all take most where gaps are equal.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from math import ceil, log2
from threading import Lock

from oocbfs.errors import OutputError
from oocbfs.kernels.threads import renewed_after_fork
from oocbfs.memory import format_size

# More for each gap than its logarithm, and for each array that is packed by itself.
_CODE_BITS, _PACK_BYTES = 2.2, 48
# The index of a row: head, start, degree; its place in the order, and its id.
_ROW_BYTES, _NAME_BYTES = 12, 12
# Headers, checksums, and the last page of each file.
_SPARE_BYTES = 1 << 18
_MOST_BUCKETS = 1 << 13


class Disk:
    """The folder of temporary data, and how much is in it."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._folder = os.fspath(folder)
        self._lock = renewed_after_fork(Lock())
        self.used_bytes = self.most_bytes = 0
        self.at_most_bytes: int | None = None

    def __fspath__(self) -> str:
        return self._folder

    def note(self) -> str:
        """Return how much is there now, and will be at most; nothing if nothing is."""
        if not self.used_bytes:
            return ""
        most = self.at_most_bytes
        limit = "" if most is None else f" of at most {format_size(most)}"
        return f"{format_size(self.used_bytes)}{limit} on disk"

    def take(self, num_bytes: int) -> None:
        """Note bytes that are written, or below 0, released."""
        with self._lock:
            self.used_bytes += num_bytes
            self.most_bytes = max(self.most_bytes, self.used_bytes)

    def expect(self, num_bytes: int) -> None:
        """Say that there will be so many bytes at most; refuse if there is no room for them."""
        self.at_most_bytes = num_bytes
        self.require(num_bytes)

    def require(self, num_bytes: int) -> None:
        """Refuse if there is no room for so many bytes, those that are there among them."""
        status = os.statvfs(self._folder)
        free_bytes = status.f_bavail * status.f_frsize
        # Some file systems do not tell.
        if status.f_blocks and num_bytes > free_bytes + self.used_bytes:
            raise OutputError(
                f"{self._folder}: has room for {format_size(free_bytes)}, and converting may take "
                f"{format_size(num_bytes)}: free some space or name another folder with --tmp"
            )


@dataclass(frozen=True)
class DiskNeed:
    """What a conversion of so many edges, and ids of so many bits, writes at most."""

    num_edges: int
    id_bits: int
    held_bytes: int
    directed: bool | None
    # How often the graph file is in the same file system: twice where it is compressed.
    outputs: int = 1
    # Whether an order may be made of all neighbours.
    by_neighbours: bool = True
    # Vertices, if they are known before.
    known_vertices: int | None = None

    @property
    def num_vertices(self) -> int:
        """Vertices: not more than ids, and those of four times as many ids as have edges."""
        if self.known_vertices is not None:
            return max(1, self.known_vertices)
        return max(1, min(1 << self.id_bits, 8 * self.num_edges, 2**32))

    @property
    def vertex_bits(self) -> int:
        """Bits of a vertex."""
        return min(self.id_bits, self.num_vertices.bit_length())

    @property
    def runs_bytes(self) -> int:
        """Bytes of the edges that were read."""
        # A quarter of the budget of the runs where memory is short, and half of that beside others.
        run_keys = self.held_bytes // 128
        if self.id_bits > 32:
            return 16 * self.num_edges + _packed_bytes(self.num_edges, run_keys // 2, 64)
        return _packed_bytes(self.num_edges, run_keys, 2 * self.id_bits, 1 << 12)

    @property
    def ids_bytes(self) -> int:
        """Bytes of all ids, to be sorted, where a bitmap of them is too large."""
        if (1 << self.id_bits) // 8 <= self.held_bytes // 16:
            return 0
        return _packed_bytes(2 * self.num_edges, self.held_bytes // 256, self.id_bits)

    @property
    def edges_bytes(self) -> int:
        """Bytes of the sorted edges; of few, none is on disk."""
        total = _packed_bytes(self.num_edges, self.num_edges - 1, 2 * self.vertex_bits)
        return 0 if total <= self._free_bytes // 5 else total

    def arcs_bytes(self, num_arcs: int) -> int:
        """Bytes of arcs to be sorted."""
        return _packed_bytes(num_arcs, self._free_bytes * 3 // 5 // 64, 2 * self.vertex_bits)

    @property
    def _free_bytes(self) -> int:
        return max(self.held_bytes // 4, self.held_bytes - 24 * self.num_vertices)

    @property
    def output_bytes(self) -> int:
        """Bytes of the graph file."""
        n, sides = self.num_vertices, 1 if self.directed is False else 2
        gap_bits = log2(n * n / max(1, self.num_edges) + 2)
        tails = 2 * self.num_edges * (1 + gap_bits / 7) * 65 / 64
        return int(tails) + (sides * _ROW_BYTES + _NAME_BYTES) * n

    @property
    def writing_bytes(self) -> int:
        """Bytes at most beside the sorted edges, from when they are sorted."""
        num_arcs = self.num_edges * (1 if self.directed else 2)
        writing = self.arcs_bytes(num_arcs) + self.outputs * self.output_bytes
        if not self.by_neighbours:
            return writing
        return max(writing, self.arcs_bytes(2 * self.num_edges) + 8 * self.num_edges)

    @property
    def most_bytes(self) -> int:
        """Bytes at most at a time."""
        reading = self.runs_bytes + max(self.ids_bytes, self.edges_bytes)
        return max(reading, self.edges_bytes + self.writing_bytes) + _SPARE_BYTES


def _packed_bytes(num_keys: int, run_keys: int, bits: int, block_keys: int = 1 << 17) -> int:
    """Return how many bytes sorted runs take at most; none if all keys stay in memory."""
    if num_keys <= run_keys:
        return 0
    gap_bits = max(0.0, bits - log2(max(1, run_keys)))
    num_runs = ceil(num_keys / max(1, run_keys))
    num_packs = num_keys // min(block_keys, max(1, run_keys)) + num_runs * min(
        _MOST_BUCKETS, num_keys // (1 << 17) + 1
    )
    return int(num_keys * (gap_bits + _CODE_BITS) / 8) + num_packs * _PACK_BYTES
