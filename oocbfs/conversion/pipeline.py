"""The steps of a conversion from top to bottom, each in bounded memory.

   number_names    if ids are names: edges between numbers instead, see ``names``
1. read            edges in input ids, sorted by these where they do not fit, and the ids that occur
2. name_vertices   which ids are vertices, and the number of each
3. sort            edges as sorted keys of two vertices, without loops and duplicates; exact degrees
4. choose_order    the vertex order in which a sample of rows takes the least space
5. write           every edge into the rows of its ends under that order, sorted again, row by row
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion import ids as ids_
from oocbfs.conversion.disk import DiskNeed
from oocbfs.conversion.distinct_ids import distinct_ids
from oocbfs.conversion.edge_runs import SAMPLE_EDGES, EdgeRuns
from oocbfs.conversion.graph_run import GraphRun
from oocbfs.conversion.ids import IdBitmap, IdMap, IdRange
from oocbfs.conversion.key_sorter import Keys, SortedRun
from oocbfs.conversion.names.numbering import Numbering
from oocbfs.conversion.order import NO_ORDER, head_weights, inverse, keep_order, order_by_heads
from oocbfs.conversion.order_choice import (
    BY_NEIGHBOURS,
    MESH_MAX_DEGREE,
    OrderChoice,
    may_need_neighbours,
)
from oocbfs.conversion.ordering import Ordering
from oocbfs.conversion.plan import VERTEX_BYTES
from oocbfs.conversion.removal import VERTEX_BYTES as REMOVAL_BYTES
from oocbfs.conversion.removal import Removal
from oocbfs.conversion.resources import Resources
from oocbfs.conversion.row_writer import RowWriter, choose_block_shift, encode
from oocbfs.conversion.sorted_edges import Side, SortedEdges
from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import Flag, Kind, Order
from oocbfs.formats.container.writer import ContainerWriter
from oocbfs.formats.edges import Declared, Edges, EdgeStream, NamedEdgeStream
from oocbfs.formats.io.closing import Closing
from oocbfs.formats.io.ordered import ordered_map
from oocbfs.formats.readers.expect import Expected
from oocbfs.graph.stored import StoredGraph
from oocbfs.kernels.convert import ids as id_kernels


def bits_for(num_vertices: int) -> int:
    """Return how many bits of a key tell a vertex."""
    return max(1, (num_vertices - 1).bit_length())


# For a neighbour of the largest row, if it is larger than the buckets that are in flight anyway:
# sorted and encoded, in two copies each, and before that a class of its degree.
_ROW_BYTES = 48
_USUAL_ROW = 1 << 18
# For each vertex of a graph whose rows are put into another order.
_PLACED_BYTES = 12
# A graph is left as it is if it has so many times as many edges as come to it.
_FEW_EDGES = 4


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

    def __init__(
        self,
        resources: Resources,
        graphs: Sequence[StoredGraph] = (),
        removal: Removal | None = None,
        outputs: int = 1,
    ) -> None:
        self._resources = resources
        self._runs = [GraphRun(stored, resources.plan.watch) for stored in graphs]
        self._removal, self._outputs = removal, outputs
        self._kept = NO_ORDER
        self._base: GraphRun | None = None
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
        numbers = [
            self._names.add_names(run.stored.names)
            for run in self._runs
            if run.stored.names is not None
        ]
        self._names.merge()
        for run, number in zip(self._runs, numbers, strict=True):
            run.place_at(self._names.vertices_of(number))
        self.counts.spilled_bytes += self._names.spilled_bytes
        return self._names

    def read(self, stream: EdgeStream, directed: bool | None = None) -> None:
        """Take all edges from the stream; None is directed if it says so."""

        def direction() -> bool | None:
            declared = stream.declared
            if directed is not None or (declared.is_open and declared.directed is None):
                return directed
            return bool(declared.directed)

        self._expect_edges(stream, directed)
        edge_runs = EdgeRuns(self._resources, self._held_bytes // 4, direction)
        self._log = self._open.enter_context(closing(edge_runs))
        self._seen = IdBitmap(self._held_bytes // 16)  # twice while it grows
        phase = "read" if self._names is None else "number"
        with self._phases(phase, stream.total, stream.unit) as bar:
            for edges in stream.batches():
                self._seen.add(edges)
                self._log.append(edges)
                bar.update(stream.done - bar.n)
        self._log.finish()
        self.counts.edges_read = self._log.num_edges + sum(run.num_edges for run in self._runs)
        for run in self._runs if self._names is None else ():
            for ids in run.named_ids():
                self._seen.add_ids(ids)
        self.counts.spilled_bytes += self._log.spilled_bytes

    def _expect_edges(self, stream: EdgeStream, directed: bool | None) -> None:
        """Refuse what the disk has no room for, as far as that can be told before reading."""
        look: Callable[[], Expected | None] | None = getattr(stream, "expect", None)
        expected = None if look is None or self._names or self._removal else look()
        if expected is None:
            return
        ids = [run.stored.largest_id for run in self._runs if run.stored.num_vertices]
        need = DiskNeed(
            expected.num_edges + sum(run.num_edges for run in self._runs),
            max([expected.id_bits, *(id.bit_length() for id in ids)]),
            self._held_bytes,
            directed=directed,
            outputs=self._outputs,
        )
        self._resources.folder.expect(need.most_bytes)

    def read_removal(self, stream: Any, vertices: Sequence[Any]) -> None:
        """Read which edges and vertices are taken out again."""
        assert self._removal is not None
        if self._names is None:
            self._removal.read(stream)
            self._removal.take_ids(vertices)
        else:
            self._removal.read_names(stream, self._names)
            self._removal.take_names(vertices, self._names)

    # 2. Name the vertices

    def name_vertices(self, declared: Declared, choice: str) -> IdMap:
        """Decide which ids are vertices: those declared, all up to the largest, or those seen."""
        given = ids_.declared_ids(declared) if choice in ("auto", "names") else None
        if given is not None and self._runs and self._names is None:
            # Graphs may have other vertices besides.
            for ids in ids_.all_ids(given):
                self._seen.add_ids(ids)
            given = None
        if choice == "auto":
            asked = {run.asked_ids for run in self._runs} - {"auto"}
            choice = asked.pop() if len(asked) == 1 else choice
        self._choice, self._declared_end = choice, 0
        self._is_declared = given is not None and self._names is None
        if given is not None:
            self._choice = "compact"  # if some are removed
            self.ids = given
            self.counts.vertices_seen = given.num_vertices
        else:
            seen = self._seen_ids()
            self._declared_end = declared.first_id + (declared.num_vertices or 0)
            # What is removed may leave others.
            self.ids = (
                ids_.contiguous(seen)
                if self._removal is not None
                else self._choose_ids(seen, self._seen.largest)
            )
            self.counts.vertices_seen = seen.num_vertices
        for run in self._runs if self._names is None else ():
            run.place(self.ids, self._seen.largest)
        del self._seen
        ids_.check_count(self.ids.num_vertices)
        self._column_bits = bits_for(self.ids.num_vertices)
        return self.ids

    def _choose_ids(self, seen: IdMap, largest: int) -> IdMap:
        """Decide whether vertices are all ids up to the largest, or those seen."""
        size = largest + 1
        if self._choice == "dense" or (self._choice == "auto" and size <= 4 * seen.num_vertices):
            return IdRange(max(size, self._declared_end))
        return ids_.contiguous(seen)

    def _seen_ids(self) -> IdMap:
        """Return the ids that occur: from the bitmap, or sorted if they are too large for one."""
        words = self._seen.words()
        if words is not None:
            return ids_.BitmapIds(words)
        listed, spilled_bytes = distinct_ids(self._resources, self._log, self._runs)
        self.counts.spilled_bytes += spilled_bytes
        return ids_.ListedIds(listed)

    # 3. Sort

    def sort(self, order: str, *, directed: bool) -> None:
        """Turn the edges into sorted distinct keys without loops, and count degrees.

        Of a graph among them, remember how it stores its vertices if the ``order`` is to be that.
        """
        num_vertices, num_edges = self.ids.num_vertices, self.counts.edges_read
        self._table_bytes = VERTEX_BYTES[directed] * num_vertices + self.ids.num_bytes
        self._table_bytes += sum(run.table_bytes for run in self._runs)
        stays = self._stays_in_place(order)
        self._table_bytes += 4 * num_vertices if stays or order == "keep" else 0
        if stays and order != "keep":
            self._table_bytes += _PLACED_BYTES * self._runs[0].stored.num_vertices
        if self._removal is not None:
            self._table_bytes += REMOVAL_BYTES * num_vertices
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
        if stays or order == "keep":
            self._kept = self._runs[0].stored_vertices(self.ids)
        if stays and self._kept.size == self._runs[0].stored.num_vertices:
            self._base = self._runs[0]
            self._base.column_bits = self._column_bits
        sample = self._sample_keys(directed)
        if self._removal is not None:
            self._removal.prepare(self.ids, sample, self._column_bits, directed=directed)
        # Runs are read by whole rows.
        graphs = self._runs if self._base is None else []
        id_runs = self._log.sorted_runs(self.ids, directed=directed)
        runs: list[SortedRun] = [*graphs, *id_runs]
        sorter = self._resources.key_sorter(
            sample,
            num_edges,
            free * 3 // 4,
            self._column_bits if runs else 0,
            runs,
            self._removal or self._base,
        )

        def scatter(index: int) -> tuple[int, int]:
            batch = self._log.take(index)
            keys, loops = self._keys(batch, directed)
            sorter.add(keys)
            return batch.sources.size, loops

        with self._phases("sort", 2 * num_edges, "edge") as bar:
            for size, loops in ordered_map(scatter, range(len(self._log)), self._threads):
                self.counts.loops += loops
                bar.update(size)
            self.counts.loops += self._log.loops
            edges.collect(sorter, bar.update)
            self._log.close()
        if self._base is not None:
            edges.leave_in_place(self._base)
        for run in graphs:
            run.close()
        removed = 0 if self._removal is None else self._removal.done.edges
        self.counts.edges_read -= removed
        self.counts.duplicates = self.counts.edges_read - self.counts.loops - edges.num_edges
        self.counts.spilled_bytes += sorter.spilled_bytes + edges.spilled_bytes
        if self._removal is not None:
            self.counts.spilled_bytes += self._removal.spilled_bytes
            self._keep_vertices(self._removal)
            self._removal.close()
        need = DiskNeed(
            edges.num_edges,
            self._column_bits,
            self._held_bytes,
            directed=directed,
            outputs=self._outputs,
            by_neighbours=may_need_neighbours(order, edges.total_degrees),
        )
        self._resources.folder.require(edges.spilled_bytes + need.writing_bytes)
        largest = edges.largest_degree
        self._table_bytes += _ROW_BYTES * max(0, largest - _USUAL_ROW)
        self._resources.require(self._table_bytes, f"a row of {largest:,} neighbours")

    def _stays_in_place(self, order: str) -> bool:
        """Return whether there is one graph whose edges need not be sorted: they are in its rows.

        The edges that are sorted are then only those that it does not have.
        """
        if len(self._runs) != 1 or self._removal is not None:
            return False
        run = self._runs[0]
        if order == "keep":
            return True
        # These orders are made of all neighbours, sorted.
        if order in BY_NEIGHBOURS or (
            order == "auto" and run.stored.rows.max_degree <= MESH_MAX_DEGREE
        ):
            return False
        return self._log.num_edges <= run.num_edges // _FEW_EDGES

    def _sample_keys(self, directed: bool) -> Keys:
        """Return some keys of the log and of all graphs, as many of each as its share."""
        logged, _ = self._keys(self._log.sample(SAMPLE_EDGES), directed)
        if not self._runs or self._base is not None:
            return logged
        sizes = [self._log.num_edges, *(run.num_edges for run in self._runs)]
        shares = [SAMPLE_EDGES * size // max(1, sum(sizes)) for size in sizes]
        parts = [
            run.sample(share, self._column_bits)
            for run, share in zip(self._runs, shares[1:], strict=True)
        ]
        stride = max(1, logged.size // max(1, shares[0]))
        return np.concatenate([logged[::stride], *parts])

    def _keep_vertices(self, removal: Removal) -> None:
        """Decide anew which ids are vertices, when some are gone, and give them their numbers."""
        kept = removal.remaining(self._edges.total_degrees, declared=self._is_declared)
        self.counts.vertices_seen = int(kept.sum())
        if self._names is not None:
            if kept.all():
                return
            self._names.keep(kept)
            self.ids = IdRange(self.counts.vertices_seen)
            numbers = np.arange(self.counts.vertices_seen, dtype=np.uint64)
        else:
            if kept.all() and self._is_declared:
                return
            listed = ids_.some_ids(self.ids, kept)
            self.ids = self._choose_ids(
                ids_.ListedIds(listed), int(listed[-1]) if listed.size else -1
            )
            numbers = self.ids.to_vertices(listed)
        vertices = np.full(kept.size, 2**32 - 1, np.uint32)
        vertices[kept] = numbers
        self._column_bits = bits_for(self.ids.num_vertices)
        self._edges.renumber(vertices, self.ids.num_vertices, self._column_bits)
        renumbered = vertices[self._kept]
        self._kept = renumbered[renumbered < self.ids.num_vertices]

    def _keys(self, edges: Edges, directed: bool) -> tuple[Keys, int]:
        """Pack edges into keys of two vertices; also counts the loops left out."""
        keys = np.empty(edges.sources.size, np.uint64)
        sources = self.ids.to_vertices(edges.sources)
        targets = self.ids.to_vertices(edges.targets)
        kept = id_kernels.edge_keys(keys, sources, targets, self._column_bits, directed)
        return keys[:kept], keys.size - kept

    # 4. Choose the order

    def choose_order(self, choice: str, codec: str) -> OrderChoice:
        """Fix the order of the vertices, in a file that is written by a codec."""
        edges = self._edges
        ordering = Ordering(
            self._resources,
            edges,
            self._column_bits,
            codec=codec,
            budget_bytes=self._held_bytes - self._table_bytes,
        )
        if choice == "keep":
            old = Order[self._runs[0].stored.order_name.upper()]
            order, self._stored_at = keep_order(self._kept, old, self.ids.num_vertices)
            self._kept = NO_ORDER
            with self._phases("order", None, "row"):
                self.order = ordering.judge(order, self._stored_at)
        elif choice == "auto":
            self.order, self._stored_at = ordering.choose()
        else:
            self.order = OrderChoice(Order[choice.upper()], "as asked for", {})
            self._stored_at = ordering.place(self.order.order)
        self.counts.spilled_bytes += ordering.spilled_bytes
        if self.order.order is Order.DEGREE:
            heads = edges.heads(self._stored_at)
            if self._base is not None:
                places = self._stored_at[self._kept]
                self._base.lower_heads(
                    heads, self._kept, places, edges.total_degrees, self._threads
                )
            self._stored_at = NO_ORDER  # memory for the next ones
            self._stored_at = order_by_heads(edges.total_degrees, heads)
        self._weights = head_weights(self.order.order, edges.total_degrees, self._stored_at)
        return self.order

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
        if self._base is not None:
            self._base.close()
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

    def _rows_of_base(self, *, inward: bool) -> GraphRun | None:
        """Return the rows that need not be sorted, in the order that was chosen."""
        if self._base is None:
            return None
        if not self._kept.size:
            return self._base.as_stored(inward=inward)
        places = self._stored_at[self._kept] if self._stored_at.size else self._kept
        return self._base.as_placed(places, self.ids.num_vertices, inward=inward)

    def _write_rows(self, writer: RowWriter, side: Side) -> None:
        """Sort the arcs of a side by row and encode them."""
        # The edges of a directed graph are needed once more, for the transpose.
        keep, budget_bytes = side is Side.OUT, self._held_bytes - self._table_bytes
        sorter = self._edges.sort_arcs(
            "arrange",
            side,
            self._stored_at,
            budget_bytes=budget_bytes,
            keep=keep,
            rows=self._rows_of_base(inward=side is Side.IN),
        )
        writer.begin_tails()
        with self._phases("encode", self._edges.num_arcs(side), "edge") as bar:
            for rows in sorter.drain(lambda keys: encode(keys, self._column_bits, self._weights)):
                if rows is not None:
                    writer.write(rows)
                    bar.update(writer.num_arcs - bar.n)
            writer.finish()
        self.counts.spilled_bytes += sorter.spilled_bytes
