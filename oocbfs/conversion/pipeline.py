"""The steps of a conversion, each in bounded memory.

read      edges in input ids, kept as they come, and the ids that occur
sort      edges as keys of two vertices, sorted, without loops and duplicates; exact degrees
order     the vertex order that stores a sample of rows in the least space (behind "neighbours" and
          "local", where the local order is one of those to choose from)
arrange   every edge into the rows of both its ends under that order, sorted again
encode    row by row, appended to the output
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion import ids as ids_
from oocbfs.conversion.edge_log import EdgeLog
from oocbfs.conversion.ids import IdBitmap, IdMap, IdRange
from oocbfs.conversion.key_sorter import Keys, KeySorter
from oocbfs.conversion.local_order import LocalOrder
from oocbfs.conversion.order import (
    OrderChoice,
    RowSample,
    choose_order,
    head_weights,
    inverse,
    looks_like_mesh,
    ranks_for,
)
from oocbfs.conversion.plan import LISTED_BYTES, VERTEX_BYTES, Plan, give_back
from oocbfs.conversion.row_writer import RowWriter, choose_block_shift, encode
from oocbfs.conversion.spill import BlockLog
from oocbfs.errors import BudgetError
from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import Flag, Kind, Order
from oocbfs.formats.container.writer import ContainerWriter
from oocbfs.formats.edges import Declared, Edges, EdgeStream
from oocbfs.formats.io.ordered import ordered_map
from oocbfs.kernels import varint
from oocbfs.kernels.convert import arrange
from oocbfs.kernels.convert import ids as id_kernels
from oocbfs.memory import format_size
from oocbfs.progress import Phases

_SAMPLE_EDGES = 1 << 16
# For a neighbour of the largest row, if it is larger than the buckets that are in flight anyway:
# sorted and encoded, in two copies each, and before that a class of its degree.
_ROW_BYTES = 48
_USUAL_ROW = 1 << 18


@dataclass(frozen=True)
class Workshop:
    """Where the work is done: temporary folder, memory and threads, progress bars."""

    folder: str | os.PathLike[str]
    plan: Plan
    phases: Phases


@dataclass
class Counts:
    """What was read, dropped and spilled on the way."""

    edges_read: int = 0
    loops: int = 0
    duplicates: int = 0
    vertices_seen: int = 0
    spilled_bytes: int = 0


class Conversion:
    """One conversion, from an edge stream to the sections of a container."""

    def __init__(self, shop: Workshop) -> None:
        self._shop = shop
        self._held_bytes, self._threads = shop.plan.held_bytes, shop.plan.threads
        self.counts = Counts()

    def read(self, stream: EdgeStream) -> None:
        """Take all edges from the stream."""
        self._log = EdgeLog(self._shop.folder, self._held_bytes // 4)
        self._seen = IdBitmap(self._held_bytes // 16)  # twice while it grows
        with self._shop.phases("read", stream.total, stream.unit) as bar:
            for edges in stream.batches():
                self._seen.add(edges)
                self._log.append(edges)
                self._shop.plan.watch.is_over()
                bar.update(stream.done - bar.n)
        self._log.finish()
        self.counts.edges_read = self._log.num_edges
        self.counts.spilled_bytes += self._log.spilled_bytes

    def name_vertices(self, declared: Declared, choice: str) -> IdMap:
        """Decide which ids are vertices: those declared, all up to the largest, or those seen."""
        given = ids_.declared_ids(declared) if choice == "auto" else None
        if given is not None:
            self.ids = given
            self.counts.vertices_seen = given.num_vertices
        else:
            words = self._seen.words()
            seen: IdMap = (
                ids_.BitmapIds(words) if words is not None else ids_.ListedIds(self._distinct_ids())
            )
            self.counts.vertices_seen = seen.num_vertices
            size = self._seen.largest + 1
            if choice == "dense" or (choice == "auto" and size <= 4 * seen.num_vertices):
                self.ids = IdRange(max(size, declared.first_id + (declared.num_vertices or 0)))
            else:
                self.ids = ids_.contiguous(seen)
        del self._seen
        ids_.check_count(self.ids.num_vertices)
        self._column_bits = max(1, (self.ids.num_vertices - 1).bit_length())
        return self.ids

    def _require(self, num_bytes: int, what: str) -> None:
        """Refuse work that needs more than three quarters of what may be held."""
        if num_bytes > self._held_bytes * 3 // 4:
            short = num_bytes * 4 // 3 - self._held_bytes
            raise BudgetError(
                f"{what} need {format_size(num_bytes)} of working memory: "
                f"raise --memory by at least {format_size(short)}"
            )

    def _sorter(
        self, sample: Keys, num_keys: int, budget_bytes: int, align_bits: int = 0
    ) -> KeySorter:
        """Begin a phase that sorts keys, with the memory of the one before given back."""
        give_back()
        return KeySorter(
            self._shop.folder,
            sample,
            num_keys,
            budget_bytes,
            self._threads,
            align_bits,
            self._shop.plan.watch,
        )

    def _distinct_ids(self) -> NDArray[np.uint64]:
        """Sort the ids of all edges."""
        sample = self._log.sample(_SAMPLE_EDGES)
        sample_ids = np.concatenate((sample.sources, sample.targets))
        sorter = self._sorter(sample_ids, 2 * self._log.num_edges, self._held_bytes // 4)
        parts, count = [np.empty(0, np.uint64)], 0
        with self._shop.phases("ids", len(self._log), "batch") as bar:
            for index in range(len(self._log)):
                edges = self._log.take(index, keep=True)
                sorter.add(edges.sources)
                sorter.add(edges.targets)
                bar.update()
            most = self._held_bytes // (LISTED_BYTES + VERTEX_BYTES[False])
            for part in sorter.drain(np.copy):
                count += part.size
                if count <= most:  # or else they are only counted
                    parts.append(part)
        self.counts.spilled_bytes += sorter.spilled_bytes
        self._require((LISTED_BYTES + VERTEX_BYTES[False]) * count, f"{count:,} ids with gaps")
        return np.concatenate(parts)

    def sort(self, *, directed: bool) -> None:
        """Turn the edges into sorted distinct keys without loops, and count degrees."""
        self._directed = directed
        num_vertices = self.ids.num_vertices
        self._table_bytes = VERTEX_BYTES[directed] * num_vertices + self.ids.num_bytes
        self._require(self._table_bytes, f"{num_vertices:,} vertices")
        self.out_degrees = np.zeros(num_vertices, np.uint32)
        self.in_degrees = np.zeros(num_vertices, np.uint32) if directed else self.out_degrees
        # Edges in memory need no room of their own: they are the first to be taken.
        free = self._held_bytes - self.ids.num_bytes - 8 * num_vertices
        log = BlockLog(self._shop.folder, (self._held_bytes - self._table_bytes) // 5)
        sample, _ = self._keys(self._log.sample(_SAMPLE_EDGES))
        sorter = self._sorter(sample, self._log.num_edges, free * 3 // 4)
        with self._shop.phases("sort", 2 * self._log.num_edges, "edge") as bar:

            def scatter(index: int) -> tuple[int, int]:
                edges = self._log.take(index)
                keys, loops = self._keys(edges)
                sorter.add(keys)
                return edges.sources.size, loops

            for size, loops in ordered_map(scatter, range(len(self._log)), self._threads):
                self.counts.loops += loops
                bar.update(size)
            self._log.close()
            self._drain_sorted(sorter, log, bar.update)
        self.counts.duplicates = self.counts.edges_read - self.counts.loops - self.num_keys
        self.counts.spilled_bytes += sorter.spilled_bytes + self._keys_log.spilled_bytes
        largest = max(int(self.out_degrees.max(initial=0)), int(self.in_degrees.max(initial=0)))
        self._table_bytes += _ROW_BYTES * max(0, largest - _USUAL_ROW)
        self._require(self._table_bytes, f"a row of {largest:,} neighbours")

    def _keys(self, edges: Edges) -> tuple[Keys, int]:
        """Name the ends of edges and pack them; also counts the loops left out."""
        keys = np.empty(edges.sources.size, np.uint64)
        kept = id_kernels.edge_keys(
            keys,
            self.ids.to_vertices(edges.sources),
            self.ids.to_vertices(edges.targets),
            self._column_bits,
            self._directed,
        )
        return keys[:kept], keys.size - kept

    def _drain_sorted(
        self, sorter: KeySorter, log: BlockLog, advance: Callable[[int], object]
    ) -> None:
        """Keep the sorted keys as differences, and samples of them for what follows."""
        lock = Lock()
        rows = RowSample(self._log.num_edges, self._column_bits, both=not self._directed)
        stride = max(1, self._log.num_edges // _SAMPLE_EDGES)

        def work(keys: Keys) -> tuple[int, NDArray[np.uint8], Keys, Keys]:
            with lock:
                arrange.count_degrees(self.out_degrees, self.in_degrees, keys, self._column_bits)
            packed = np.empty(10 * keys.size, np.uint8)
            packed = packed[: varint.pack_keys(packed, keys)].copy()
            return keys.size, packed, rows.take(keys), keys[::stride].copy()

        self._keys_log, self._keys_sizes = log, []
        samples = [np.empty(0, np.uint64)]
        for size, packed, arcs, some_keys in sorter.drain(work):
            log.append(packed)
            self._keys_sizes.append(size)
            rows.add(arcs)
            samples.append(some_keys)
            advance(size)
        self.num_keys = sum(self._keys_sizes)
        self._sample, self._sample_keys = rows, np.concatenate(samples)

    def choose_order(self, choice: str) -> OrderChoice:
        """Fix the order of the vertices."""
        mesh = choice == "auto" and looks_like_mesh(self._total_degrees())
        local = self._rank_locally() if mesh or choice == "local" else None
        with self._shop.phases("order", None, "row"):
            degrees = self._total_degrees()
            if choice == "auto":
                self.order = choose_order(self._sample.arcs(), self._column_bits, degrees, local)
            else:
                self.order = OrderChoice(Order[choice.upper()], "as asked for", {})
            if local is not None and self.order.order is Order.LOCAL:
                self._ranks = local
            else:
                self._ranks = ranks_for(self.order.order, degrees)
            self._weights = head_weights(self.order.order, degrees, self._ranks)
        del self._sample
        return self.order

    def _rank_locally(self) -> NDArray[np.uint32]:
        """Rank the vertices in the local order."""
        num_vertices = self.ids.num_vertices
        self._ranks = np.empty(0, np.uint32)
        sorter = self._sort_arcs("neighbours", 2, keep=True)
        with closing(LocalOrder(self._shop.folder, num_vertices, self._column_bits)) as local:
            with self._shop.phases("local", self._num_arcs(2), "edge") as bar:
                for arcs in sorter.drain(np.copy):
                    local.add(arcs)
                    bar.update(arcs.size)
                ranks = local.ranks()
            self.counts.spilled_bytes += sorter.spilled_bytes + local.spilled_bytes
            return ranks

    def _total_degrees(self) -> NDArray[np.uint32]:
        return self.out_degrees + self.in_degrees if self._directed else self.out_degrees

    def write(self, container: ContainerWriter) -> dict[str, int]:
        """Write all sections; returns the header's fields."""
        num_vertices = self.ids.num_vertices
        shift = min(
            choose_block_shift(self._stored(self.out_degrees)),
            choose_block_shift(self._stored(self.in_degrees)),
        )
        if not isinstance(self.ids, IdRange):
            section = container.begin(Kind.IDS, 8 * num_vertices)
            for piece in self.ids.pieces():
                section.write(piece)
        if self._ranks.size or self.order.order is not Order.NATURAL:
            container.begin(Kind.ORDER, self._ranks.nbytes).write(inverse(self._ranks))
        sides = (0, layout.TRANSPOSED) if self._directed else (0,)
        writers = [RowWriter(container, num_vertices, shift, side) for side in sides]
        for side, writer in enumerate(writers):
            self._write_rows(writer, side if self._directed else 2)
        self._keys_log.close()
        return {
            "num_vertices": num_vertices,
            "num_edges": writers[0].num_edges,
            "first_id": self.ids.first_id,
            "flags": int(Flag.DIRECTED) if self._directed else 0,
            "order": self.order.order,
            "block_shift": shift,
            "max_degree": max(writer.max_degree for writer in writers),
            "input_edges": self.counts.edges_read,
            "input_duplicates": self.counts.duplicates,
            "input_loops": self.counts.loops,
            "input_vertices": self.counts.vertices_seen,
        }

    def _stored(self, degrees: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Degrees in stored order."""
        if self._ranks.size == 0:
            return degrees
        stored = np.empty_like(degrees)
        stored[self._ranks] = degrees
        return stored

    def _write_rows(self, writer: RowWriter, side: int) -> None:
        """Sort the edges by row and encode them; side 0 is out, 1 is in, 2 is both."""
        # The keys of a directed graph are needed once more, for the transpose.
        sorter = self._sort_arcs("arrange", side, keep=side == 0)
        writer.begin_tails()
        with self._shop.phases("encode", self._num_arcs(side), "edge") as bar:
            for rows in sorter.drain(lambda keys: encode(keys, self._column_bits, self._weights)):
                if rows is not None:
                    writer.write(rows)
                    bar.update(writer.num_edges - bar.n)
            writer.finish()
        self.counts.spilled_bytes += sorter.spilled_bytes

    def _num_arcs(self, side: int) -> int:
        return self.num_keys * (2 if side == 2 else 1)

    def _sort_arcs(self, phase: str, side: int, *, keep: bool) -> KeySorter:
        """Scatter the edges by row under the present ranks; keep says whether once more is to follow."""
        free = self._held_bytes - self._table_bytes - self._keys_log.resident_bytes
        sample = self._turned(self._sample_keys, side)
        sorter = self._sorter(sample, self._num_arcs(side), free, self._column_bits)

        def scatter(index: int) -> int:
            keys = np.empty(self._keys_sizes[index], np.uint64)
            varint.unpack_keys(keys, self._keys_log.take(index, keep=keep))
            arcs = self._turned(keys, side)
            sorter.add(arcs)
            return arcs.size

        with self._shop.phases(phase, self._num_arcs(side), "edge") as bar:
            for size in ordered_map(scatter, range(len(self._keys_log)), self._threads):
                bar.update(size)
        return sorter

    def _turned(self, keys: Keys, side: int) -> Keys:
        """Keys under the chosen order, in the directions that a side stores."""
        out = np.empty(keys.size * (2 if side == 2 else 1), np.uint64)
        arrange.directed_keys(out, keys, self._ranks, self._column_bits, side)
        return out

    def close(self) -> None:
        """Give memory and disk space back, wherever the conversion stopped."""
        for name in ("_log", "_keys_log"):
            if hasattr(self, name):
                getattr(self, name).close()
