"""Cut a graph into shards, each a container of its own: one pass over the file, in bounded memory.

Rows are copied byte by byte. Their tails name vertices of the whole graph, and segments of a tail
are counted from its beginning, so that nothing changes but where rows begin.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.manifest import MANIFEST, VERTICES, File, Manifest
from oocbfs.conversion.converter import Report, convert
from oocbfs.conversion.row_writer import EncodedRows, RowWriter, choose_block_shift
from oocbfs.errors import QueryError
from oocbfs.formats.container import layout
from oocbfs.formats.container.cut import Cut
from oocbfs.formats.container.framing import frame_file
from oocbfs.formats.container.layout import ROW_KINDS, TRANSPOSED, Kind
from oocbfs.formats.container.reader import Container
from oocbfs.formats.container.writer import ContainerWriter
from oocbfs.formats.io.limits import MAX_SHARDS
from oocbfs.formats.io.ordered import available_threads
from oocbfs.formats.output.atomic import check_space
from oocbfs.formats.output.folder import atomic_folder, check_folder
from oocbfs.kernels.shards.copying import copy_ranges
from oocbfs.progress import Phases
from oocbfs.settings import CodecName, check_choice, check_whole

# Rows and bytes of tails that are looked at together, unless a word of 64 rows has more.
_PIECE_WORDS = 1 << 12
_PIECE_BYTES = 16 << 20
_COPY_BYTES = 4 << 20
_INPUT_FIELDS = ("input_edges", "input_duplicates", "input_loops", "input_vertices")


def shard(
    graph: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    parts: int,
    codec: CodecName = "auto",
    force: bool = False,
    progress: bool = False,
) -> Manifest:
    """Cut a graph file into a folder of shards, which appears when it is whole.

    Raises
    ------
    FormatError
        If the graph is damaged.
    OutputError
        If the folder exists and ``force`` is not set, or cannot be written.
    """
    check_whole("parts", parts, range(1, MAX_SHARDS + 1))
    check_folder(output, force=force, may_replace=is_ours)
    with Container(graph) as container:
        if container.shard is not None:
            raise QueryError(f"{container.path}: is a shard of a graph already")
        check_space(output, container.raw_bytes(*Kind))
        with (
            atomic_folder(output, force=force, may_replace=is_ours) as folder,
            # Inside, so that nothing appears if the graph was changed meanwhile.
            container.file.reading(),
        ):
            phases = Phases(show=progress)
            return _Sharding(container, folder, parts, codec, phases).run(Path(output))


def convert_sharded(
    inputs: Any,
    output: str | os.PathLike[str],
    *,
    parts: int,
    codec: CodecName = "auto",
    force: bool = False,
    progress: bool = False,
    **settings: Any,
) -> Report:
    """Convert into a folder of shards, by way of a graph in one file, which goes again.

    The folder needs twice the space for a while. See ``oocbfs.convert`` and ``shard``.
    """
    check_whole("parts", parts, range(1, MAX_SHARDS + 1))
    check_choice("codec", codec, CodecName)
    check_folder(output, force=force, may_replace=is_ours)
    if settings.get("tmp") is None:
        settings["tmp"] = Path(os.path.realpath(output)).parent
    with atomic_folder(output, force=force, may_replace=is_ours) as folder:
        whole = folder / "graph.ocg"
        report = convert(inputs, whole, codec="raw", progress=progress, **settings)
        with Container(whole) as container, container.file.reading():
            phases = Phases(show=progress)
            manifest = _Sharding(container, folder, parts, codec, phases).run(Path(output))
        whole.unlink()
    return replace(
        report,
        output=str(output),
        file_bytes=manifest.file_bytes,
        bits_per_arc=manifest.bits_per_arc,
    )


def is_ours(folder: Path) -> bool:
    """Return whether a folder holds a sharded graph, which may be replaced by another."""
    return (folder / MANIFEST).is_file()


class _Sharding:
    """One graph on its way into shards."""

    def __init__(
        self, container: Container, folder: Path, parts: int, codec: CodecName, phases: Phases
    ) -> None:
        self._container, self._folder, self._phases = container, folder, phases
        self._codec = codec
        self._cut = Cut(container.num_vertices, parts)
        self._degrees: NDArray[np.uint32] = container.section(Kind.DEGREES)
        self._sides = (0, TRANSPOSED) if container.directed else (0,)
        self._common = {
            "flags": int(container.header["flags"]),
            "order": int(container.header["order"]),
            "parts": parts,
            "total_vertices": container.num_vertices,
            "total_arcs": container.num_arcs,
            "graph_checksum": int(container.header["checksum"]),
        }

    def run(self, output: Path) -> Manifest:
        """Write all files of the folder; returns the manifest as it is found at the output."""
        total = self._container.raw_bytes(*Kind)
        with self._phases("shard", total, "B") as bar:
            vertices = self._write_vertices(bar.update)
            shards = self._write_shards(bar.update)
        connected, useful = self._ends()
        manifest = Manifest(
            folder=output,
            num_vertices=self._container.num_vertices,
            num_arcs=self._container.num_arcs,
            directed=self._container.directed,
            connected=connected,
            useful=useful,
            graph_checksum=self._common["graph_checksum"],
            vertices=vertices,
            shards=tuple(shards),
        )
        with open(self._folder / MANIFEST, "w") as file:
            file.write(manifest.text())
            file.flush()
            os.fsync(file.fileno())
        return manifest

    def _write_vertices(self, advance: Callable[[int], object]) -> File:
        """Write what is about vertices and not about rows, and the degrees of all."""
        source = self._container
        not_kept = {Kind(kind + side) for kind in ROW_KINDS for side in (0, TRANSPOSED)}
        not_kept ^= {Kind.DEGREES, Kind.FRAMES}
        with open(self._folder / VERTICES, "w+b") as file:
            writer = ContainerWriter(file)
            for kind, record in source.sections.items():
                if kind in not_kept:
                    continue
                section = writer.begin(kind, int(record["raw_bytes"]))
                values = source.section(kind)
                step = _COPY_BYTES // values.itemsize
                for first in range(0, values.size, step):
                    section.write(values[first : first + step])
                    advance(values[first : first + step].nbytes if kind != Kind.DEGREES else 0)
            fields = {name: int(source.header[name]) for name in _INPUT_FIELDS}
            return self._finish(
                file,
                writer,
                num_vertices=source.num_vertices,
                num_arcs=source.num_arcs,
                first_id=source.first_id,
                max_degree=int(source.header["max_degree"]),
                part=self._cut.num_shards,
                **fields,
            )

    def _write_shards(self, advance: Callable[[int], object]) -> list[File]:
        cut = self._cut
        with ExitStack() as stack:
            files = [
                stack.enter_context(open(self._folder / f"part-{shard}.ocg", "w+b"))
                for shard in range(cut.num_shards)
            ]
            writers = [ContainerWriter(file) for file in files]
            shifts = [self._block_shift(shard) for shard in range(cut.num_shards)]
            arcs = [0] * cut.num_shards
            largest = [0] * cut.num_shards
            for side in self._sides:
                rows = [
                    RowWriter(writer, cut.rows_of(shard), shifts[shard], side)
                    for shard, writer in enumerate(writers)
                ]
                for one in rows:
                    one.begin_tails()
                for shard, encoded in self._scatter(side, advance):
                    rows[shard].write(encoded)
                for shard, one in enumerate(rows):
                    one.finish()
                    largest[shard] = max(largest[shard], one.max_degree)
                    if side == 0:
                        arcs[shard] = one.num_arcs
            return [
                self._finish(
                    file,
                    writer,
                    num_vertices=cut.rows_of(shard),
                    num_arcs=arcs[shard],
                    block_shift=shifts[shard],
                    max_degree=largest[shard],
                    part=shard,
                )
                for shard, (file, writer) in enumerate(zip(files, writers, strict=True))
            ]

    def _finish(self, file: BinaryIO, writer: ContainerWriter, **fields: int) -> File:
        """End a container; returns what the manifest says of it."""
        writer.finish(**self._common, **fields)
        size = frame_file(file, self._codec, available_threads()).file_bytes
        os.fsync(file.fileno())
        file.seek(0)
        header = np.frombuffer(file.read(layout.HEADER.itemsize), layout.HEADER)[0]
        return File(Path(file.name).name, size, int(header["checksum"]), fields["num_arcs"])

    def _block_shift(self, shard: int) -> int:
        """Choose how many rows of a shard share a base, as a conversion does."""
        shifts = []
        for side in self._sides:
            degrees = self._container.section(Kind(Kind.DEGREES + side))
            rows = np.arange(self._cut.rows_of(shard))
            shifts.append(choose_block_shift(degrees[self._cut.vertex_of(shard, rows)]))
        return min(shifts)

    def _scatter(
        self, side: int, advance: Callable[[int], object]
    ) -> Iterator[tuple[int, EncodedRows]]:
        """Yield the rows of one direction, piece by piece, and the shard that each belongs to."""
        source, cut = self._container, self._cut
        degrees, heads, bases, starts, tails = (
            source.section(Kind(kind + side)) for kind in ROW_KINDS
        )
        buffer = np.empty(_PIECE_BYTES, np.uint8)
        first_word = 0
        while first_word < cut.num_words:
            words = _PIECE_WORDS
            while True:
                stop_word = min(first_word + words, cut.num_words)
                first, stop = first_word * 64, min(stop_word * 64, cut.num_vertices)
                rows = np.arange(first, stop + 1)
                offsets = bases[rows >> source.block_shift] + starts[first : stop + 1]
                if int(offsets[-1] - offsets[0]) <= _PIECE_BYTES or words <= cut.num_shards:
                    break
                words //= 2
            bounds = np.append(offsets[:-1:64], offsets[-1])
            lengths = np.diff(offsets).astype(np.uint32)
            for shard in range(cut.num_shards):
                own = np.arange(
                    _rows_before(cut, shard, first_word), _rows_before(cut, shard, stop_word)
                )
                if not own.size:
                    continue
                index = cut.vertex_of(shard, own) - first
                yield (
                    shard,
                    EncodedRows(
                        rows=own,
                        heads=heads[first:stop][index],
                        lengths=lengths[index],
                        degrees=degrees[first:stop][index],
                        tails=_own_tails(
                            tails, bounds, (shard - first_word) % cut.num_shards, cut, buffer
                        ),
                    ),
                )
            source.release()
            advance(int(offsets[-1] - offsets[0]) + 12 * (stop - first))
            first_word = stop_word

    def _ends(self) -> tuple[int, int]:
        """Return how many vertices there are up to the last that has edges, and that leads on.

        In an undirected graph, a vertex with one edge was found by it, and leads nowhere else.
        """
        least = 1 if self._container.directed else 2
        connected = [
            _last(self._container.section(Kind(Kind.DEGREES + side)), 1) for side in self._sides
        ]
        return max(connected), _last(self._degrees, least)


def _rows_before(cut: Cut, shard: int, word: int) -> int:
    """Count the rows of a shard in the words before this one."""
    return Cut(min(word * 64, cut.num_vertices), cut.num_shards).rows_of(shard)


def _own_tails(
    tails: NDArray[np.uint8],
    bounds: NDArray[np.uint64],
    first: int,
    cut: Cut,
    buffer: NDArray[np.uint8],
) -> NDArray[np.uint8]:
    """Return the tails of every num_shards-th word: copied, or as they are if it is one word."""
    if bounds.size - 1 - first <= cut.num_shards:
        return tails[int(bounds[first]) : int(bounds[first + 1])]
    return buffer[: copy_ranges(buffer, tails, bounds, first, cut.num_shards)]


def _last(degrees: NDArray[Any], least: int) -> int:
    """Count the vertices up to the last one with so many edges."""
    step = 1 << 16
    for end in range(degrees.size, 0, -step):
        found = np.flatnonzero(degrees[max(0, end - step) : end] >= least)
        if found.size:
            return max(0, end - step) + int(found[-1]) + 1
    return 0
