"""The steps of a conversion from top to bottom, each in bounded memory.

   number_names    if ids are names: edges between numbers instead, see ``names``
1. read            edges in input ids, kept as they come, and the ids that occur
2. name_vertices   which ids are vertices, and the number of each
3. sort            edges as sorted keys of two vertices, without loops and duplicates; exact degrees
4. choose_order    the vertex order in which a sample of rows takes the least space
5. write           every edge into the rows of its ends under that order, sorted again, row by row
"""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion import ids as ids_
from oocbfs.conversion.edge_log import EdgeLog
from oocbfs.conversion.ids import IdBitmap, IdMap, IdRange
from oocbfs.conversion.key_sorter import Keys
from oocbfs.conversion.local_order import LocalOrder
from oocbfs.conversion.names.numbering import Numbering
from oocbfs.conversion.order import (
    NO_ORDER,
    OrderChoice,
    choose_order,
    head_weights,
    inverse,
    looks_like_mesh,
    order_by_heads,
    stored_at_for,
)
from oocbfs.conversion.plan import LISTED_BYTES, VERTEX_BYTES
from oocbfs.conversion.resources import Resources
from oocbfs.conversion.row_writer import RowWriter, choose_block_shift, encode
from oocbfs.conversion.sorted_edges import SAMPLE_EDGES, Side, SortedEdges
from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import Flag, Kind, Order
from oocbfs.formats.container.writer import ContainerWriter
from oocbfs.formats.edges import Declared, Edges, EdgeStream, NamedEdgeStream
from oocbfs.formats.io.closing import Closing
from oocbfs.formats.io.ordered import ordered_map
from oocbfs.kernels.convert import ids as id_kernels

# For a neighbour of the largest row, if it is larger than the buckets that are in flight anyway:
# sorted and encoded, in two copies each, and before that a class of its degree.
_ROW_BYTES = 48
_USUAL_ROW = 1 << 18


@dataclass
class Counts:
    """What was read, dropped and spilled on the way."""

    edges_read: int = 0
    loops: int = 0
    duplicates: int = 0
    vertices_seen: int = 0
    spilled_bytes: int = 0


class Conversion(Closing):
    """One conversion, from an edge stream to the sections of a container."""

    def __init__(self, resources: Resources) -> None:
        self._resources = resources
        self._phases = resources.phases
        self._held_bytes, self._threads = resources.plan.held_bytes, resources.plan.threads
        self._open = ExitStack()
        self._names: Numbering | None = None
        self.counts = Counts()

    def close(self) -> None:
        """Release memory and disk space, wherever the conversion stopped."""
        self._open.close()

    # 1. Read

    def number_names(self, stream: NamedEdgeStream) -> EdgeStream:
        """Return the edges between names as edges between numbers, and keep the names."""
        self._names = self._open.enter_context(Numbering(self._resources, stream))
        self._names.read()
        self._names.merge()
        self.counts.spilled_bytes += self._names.spilled_bytes
        return self._names

    def read(self, stream: EdgeStream) -> None:
        """Take all edges from the stream."""
        edge_log = EdgeLog(self._resources.folder, self._held_bytes // 4)
        self._log = self._open.enter_context(closing(edge_log))
        self._seen = IdBitmap(self._held_bytes // 16)  # twice while it grows
        phase = "read" if self._names is None else "number"
        with self._phases(phase, stream.total, stream.unit) as bar:
            for edges in stream.batches():
                self._seen.add(edges)
                self._log.append(edges)
                self._resources.plan.watch.is_over()
                bar.update(stream.done - bar.n)
        self._log.finish()
        self.counts.edges_read = self._log.num_edges
        self.counts.spilled_bytes += self._log.spilled_bytes

    # 2. Name the vertices

    def name_vertices(self, declared: Declared, choice: str) -> IdMap:
        """Decide which ids are vertices: those declared, all up to the largest, or those seen."""
        given = ids_.declared_ids(declared) if choice in ("auto", "names") else None
        if given is not None:
            self.ids = given
            self.counts.vertices_seen = given.num_vertices
        else:
            seen = self._seen_ids()
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

    def _seen_ids(self) -> IdMap:
        """Return the ids that occur: from the bitmap, or sorted if they are too large for one."""
        words = self._seen.words()
        return ids_.ListedIds(self._distinct_ids()) if words is None else ids_.BitmapIds(words)

    def _distinct_ids(self) -> NDArray[np.uint64]:
        """Sort the ids of all edges."""
        sample = self._log.sample(SAMPLE_EDGES)
        sample_ids = np.concatenate((sample.sources, sample.targets))
        num_ids = 2 * self._log.num_edges
        sorter = self._resources.key_sorter(sample_ids, num_ids, self._held_bytes // 4)
        chunks, count = [np.empty(0, np.uint64)], 0
        id_bytes = LISTED_BYTES + VERTEX_BYTES[False]
        with self._phases("ids", len(self._log), "batch") as bar:
            for index in range(len(self._log)):
                edges = self._log.take(index, keep=True)
                sorter.add(edges.sources)
                sorter.add(edges.targets)
                bar.update()
            for chunk in sorter.drain(np.copy):
                count += chunk.size
                if count <= self._held_bytes // id_bytes:  # otherwise they are only counted
                    chunks.append(chunk)
        self.counts.spilled_bytes += sorter.spilled_bytes
        self._resources.require(id_bytes * count, f"{count:,} ids with gaps")
        return np.concatenate(chunks)

    # 3. Sort

    def sort(self, *, directed: bool) -> None:
        """Turn the edges into sorted distinct keys without loops, and count degrees."""
        num_vertices, num_edges = self.ids.num_vertices, self._log.num_edges
        self._table_bytes = VERTEX_BYTES[directed] * num_vertices + self.ids.num_bytes
        self._resources.require(self._table_bytes, f"{num_vertices:,} vertices")
        # Edges in memory are not counted: they are the first to be taken.
        free = self._held_bytes - self.ids.num_bytes - 8 * num_vertices
        edges = SortedEdges(
            self._resources,
            num_vertices,
            self._column_bits,
            num_edges_read=num_edges,
            directed=directed,
            budget_bytes=(self._held_bytes - self._table_bytes) // 5,
        )
        self._edges = self._open.enter_context(closing(edges))
        sample, _ = self._keys(self._log.sample(SAMPLE_EDGES), directed)
        sorter = self._resources.key_sorter(sample, num_edges, free * 3 // 4)

        def scatter(index: int) -> tuple[int, int]:
            batch = self._log.take(index)
            keys, loops = self._keys(batch, directed)
            sorter.add(keys)
            return batch.sources.size, loops

        with self._phases("sort", 2 * num_edges, "edge") as bar:
            for size, loops in ordered_map(scatter, range(len(self._log)), self._threads):
                self.counts.loops += loops
                bar.update(size)
            self._log.close()
            edges.collect(sorter, bar.update)
        self.counts.duplicates = self.counts.edges_read - self.counts.loops - edges.num_keys
        self.counts.spilled_bytes += sorter.spilled_bytes + edges.spilled_bytes
        largest = edges.largest_degree
        self._table_bytes += _ROW_BYTES * max(0, largest - _USUAL_ROW)
        self._resources.require(self._table_bytes, f"a row of {largest:,} neighbours")

    def _keys(self, edges: Edges, directed: bool) -> tuple[Keys, int]:
        """Pack edges into keys of two vertices; also counts the loops left out."""
        keys = np.empty(edges.sources.size, np.uint64)
        sources = self.ids.to_vertices(edges.sources)
        targets = self.ids.to_vertices(edges.targets)
        kept = id_kernels.edge_keys(keys, sources, targets, self._column_bits, directed)
        return keys[:kept], keys.size - kept

    # 4. Choose the order

    def choose_order(self, choice: str) -> OrderChoice:
        """Fix the order of the vertices."""
        edges = self._edges
        mesh = choice == "auto" and looks_like_mesh(edges.total_degrees)
        local = self._order_locally() if mesh or choice == "local" else None
        with self._phases("order", None, "row"):
            degrees = edges.total_degrees
            if choice == "auto":
                self.order = choose_order(edges.rows.arcs(), self._column_bits, degrees, local)
            else:
                self.order = OrderChoice(Order[choice.upper()], "as asked for", {})
            if local is not None and self.order.order is Order.LOCAL:
                self._stored_at = local
            else:
                self._stored_at = stored_at_for(self.order.order, degrees)
        del edges.rows
        if self.order.order is Order.DEGREE:
            heads = edges.heads(self._stored_at)
            self._stored_at = NO_ORDER  # memory for the next ones
            self._stored_at = order_by_heads(degrees, heads)
        self._weights = head_weights(self.order.order, degrees, self._stored_at)
        return self.order

    def _order_locally(self) -> NDArray[np.uint32]:
        """Place the vertices in the local order."""
        num_vertices, budget_bytes = self.ids.num_vertices, self._held_bytes - self._table_bytes
        sorter = self._edges.sort_arcs(
            "neighbours", Side.BOTH, NO_ORDER, budget_bytes=budget_bytes, keep=True
        )
        order = LocalOrder(self._resources.folder, num_vertices, self._column_bits)
        with closing(order):
            with self._phases("local", self._edges.num_arcs(Side.BOTH), "edge") as bar:
                for arcs in sorter.drain(np.copy):
                    order.add(arcs)
                    bar.update(arcs.size)
                stored_at = order.stored_at()
            self.counts.spilled_bytes += sorter.spilled_bytes + order.spilled_bytes
            return stored_at

    # 5. Write

    def write(self, container: ContainerWriter) -> dict[str, int]:
        """Write all sections; returns the header's fields."""
        num_vertices, edges = self.ids.num_vertices, self._edges
        shift = min(
            choose_block_shift(self._in_order(edges.out_degrees)),
            choose_block_shift(self._in_order(edges.in_degrees)),
        )
        if self._names is not None:
            self._names.write(container)
        elif not isinstance(self.ids, IdRange):
            section = container.begin(Kind.IDS, 8 * num_vertices)
            for piece in self.ids.pieces():
                section.write(piece)
        if self._stored_at.size or self.order.order is not Order.NATURAL:
            container.begin(Kind.ORDER, self._stored_at.nbytes).write(inverse(self._stored_at))
        sides = (Side.OUT, Side.IN) if edges.directed else (Side.BOTH,)
        writers = {}
        for side in sides:
            transposed = layout.TRANSPOSED if side is Side.IN else 0
            writers[side] = RowWriter(container, num_vertices, shift, transposed)
        for side, writer in writers.items():
            self._write_rows(writer, side)
        edges.close()
        return {
            "num_vertices": num_vertices,
            "num_arcs": writers[sides[0]].num_arcs,
            "first_id": self.ids.first_id,
            "flags": int(Flag.DIRECTED) if edges.directed else 0,
            "order": self.order.order,
            "block_shift": shift,
            "max_degree": max(writer.max_degree for writer in writers.values()),
            "input_edges": self.counts.edges_read,
            "input_duplicates": self.counts.duplicates,
            "input_loops": self.counts.loops,
            "input_vertices": self.counts.vertices_seen,
        }

    def _in_order(self, degrees: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Degrees in stored order."""
        if self._stored_at.size == 0:
            return degrees
        stored = np.empty_like(degrees)
        stored[self._stored_at] = degrees
        return stored

    def _write_rows(self, writer: RowWriter, side: Side) -> None:
        """Sort the arcs of a side by row and encode them."""
        # The edges of a directed graph are needed once more, for the transpose.
        keep, budget_bytes = side is Side.OUT, self._held_bytes - self._table_bytes
        sorter = self._edges.sort_arcs(
            "arrange", side, self._stored_at, budget_bytes=budget_bytes, keep=keep
        )
        writer.begin_tails()
        with self._phases("encode", self._edges.num_arcs(side), "edge") as bar:
            for rows in sorter.drain(lambda keys: encode(keys, self._column_bits, self._weights)):
                if rows is not None:
                    writer.write(rows)
                    bar.update(writer.num_arcs - bar.n)
            writer.finish()
        self.counts.spilled_bytes += sorter.spilled_bytes
