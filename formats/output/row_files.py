"""Graphs as rows of neighbours: SciPy's ``.npz``, METIS and GAP's ``.sg``.

None of them holds ids: vertices are numbered in the order of their ids, from 0 or, for METIS, from
1. All are written from beginning to end, a bounded number of rows at a time.
"""

from __future__ import annotations

import os
import struct
import zipfile
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO, Protocol

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import OutputError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.formats.output.packing import endings, opened, packed
from oocbfs.kernels.results.format_text import format_rows

NPZ, METIS, GAP = "npz", "metis", "sg"
# What names may end in, and what that stands for.
FORMATS = {"npz": NPZ, "metis": METIS, "graph": METIS, "sg": GAP}
# The number of the first vertex.
FIRST = {NPZ: 0, METIS: 1, GAP: 0}
_GAP_HEADER = struct.Struct("<?qq")
_PIECE = 1 << 16
# A fixed time, so that the same graph makes the same bytes: the earliest that archives know.
_DATE = (1980, 1, 1, 0, 0, 0)

Rows = tuple[NDArray[np.uint32], NDArray[np.uint32]]


class RowSource(Protocol):
    """A graph whose rows come in the order of the ids; undirected edges are in both rows."""

    num_vertices: int
    num_arcs: int
    directed: bool

    def natural_rows(self, *, inward: bool = False) -> Iterator[Rows]:
        """Yield degrees and neighbours of some rows at a time."""
        ...

    def natural_degrees(self, *, inward: bool = False) -> Iterator[NDArray[np.uint32]]:
        """Yield the degrees alone."""
        ...

    def ids_at(self, first: int, stop: int) -> Ids:
        """Ids of the vertices first … stop-1."""
        ...


def choose_row_format(path: str | os.PathLike[str], graph: RowSource | None = None) -> str | None:
    """Form of a file by its name; None if it is no file of rows. Refuses what cannot be written."""
    shown = os.fspath(path)
    ending, compression = endings(path)
    form = FORMATS.get(ending)
    if form in (NPZ, GAP) and compression is not None:
        raise OutputError(f"{shown}: {form} is not written compressed; leave .{compression} out")
    if form is None or graph is None:
        return form
    if form == METIS and graph.directed:
        raise OutputError(f"{shown}: METIS knows no directed graphs; choose .npz or .sg")
    if form == GAP and graph.num_vertices >= 2**31:
        raise OutputError(f"{shown}: .sg holds fewer than 2^31 vertices; choose .npz or .metis")
    return form


def keeps_ids(form: str, graph: RowSource) -> bool:
    """Return whether the numbers of vertices in such a file are their ids."""
    n, first = graph.num_vertices, FIRST[form]
    if n == 0:
        return True
    ends = int(graph.ids_at(0, 1)[0]), int(graph.ids_at(n - 1, n)[0])
    return ends == (first, first + n - 1)


def write_rows(
    graph: RowSource,
    path: str | os.PathLike[str],
    *,
    threads: int | None = None,
    force: bool = False,
    progress: Callable[[int], object] = lambda count: None,
) -> int:
    """Write a graph to a file that appears only when it is complete.

    ``progress`` is called with numbers of neighbours. Returns the number of edges, undirected ones
    counted once.

    Raises
    ------
    OutputError
        If the file cannot be written, or its form cannot hold the graph.
    """
    form = choose_row_format(path, graph)
    if form is None:
        raise OutputError(f"{os.fspath(path)}: name it .{', .'.join(FORMATS)}")
    with opened(path, force=force, streams=True) as file:
        if form == METIS:
            compression = endings(path)[1]
            _write_metis(file, graph, compression, available_threads(threads), progress)
        elif form == GAP:
            _write_gap(file, graph, progress)
        else:
            _write_npz(file, graph, progress)
    return graph.num_arcs // (1 if graph.directed else 2)


def _write_metis(
    file: BinaryIO,
    graph: RowSource,
    compression: str | None,
    threads: int,
    progress: Callable[[int], object],
) -> None:
    with packed(file, compression, threads) as (pack, write):
        write(pack(f"{graph.num_vertices} {graph.num_arcs // 2}\n".encode()))

        def encode(rows: Rows) -> tuple[int, Any]:
            return rows[1].size, pack(format_rows(*rows, FIRST[METIS]).data)

        for size, block in ordered_map(encode, graph.natural_rows(), threads):
            write(block)
            progress(size)


def _write_gap(file: BinaryIO, graph: RowSource, progress: Callable[[int], object]) -> None:
    file.write(_GAP_HEADER.pack(graph.directed, graph.num_arcs, graph.num_vertices))
    for inward in (False, True)[: 1 + graph.directed]:
        offsets = _offsets(graph.natural_degrees(inward=inward))
        file.writelines(piece.astype("<i8").data for piece in offsets)
        for _, neighbours in graph.natural_rows(inward=inward):
            file.write(neighbours.astype("<i4").data)
            progress(neighbours.size)


def _write_npz(file: BinaryIO, graph: RowSource, progress: Callable[[int], object]) -> None:
    """Write what ``scipy.sparse.save_npz`` writes of a CSR array of ones."""
    n, m = graph.num_vertices, graph.num_arcs
    number = "<i4" if max(n, m) < 2**31 else "<i8"

    def indices() -> Iterator[NDArray[Any]]:
        for _, neighbours in graph.natural_rows():
            yield neighbours.astype(number)
            progress(neighbours.size)

    arrays: dict[str, tuple[tuple[int, ...], str, Iterable[NDArray[Any]]]] = {
        "format": ((), "|S3", [np.array(b"csr")]),
        "shape": ((2,), "<i8", [np.array([n, n], "<i8")]),
        "_is_array": ((), "|b1", [np.array(True)]),
        "indptr": ((n + 1,), number, (o.astype(number) for o in _offsets(graph.natural_degrees()))),
        "indices": ((m,), number, indices()),
        "data": ((m,), "|i1", (np.ones(count, np.int8) for count in _pieces(m))),
    }
    if not keeps_ids(NPZ, graph):
        starts = range(0, n, _PIECE)
        arrays["ids"] = ((n,), "<u8", (graph.ids_at(i, min(i + _PIECE, n)) for i in starts))
    with zipfile.ZipFile(file, "w") as archive:
        for name, (shape, kind, pieces) in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", _DATE)
            if name == "data":  # equal numbers take no room
                info.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(info, "w", force_zip64=True) as member:
                header = {"descr": kind, "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(member, header)
                for piece in pieces:
                    member.write(np.ascontiguousarray(piece).data)


def _offsets(degrees: Iterator[NDArray[np.uint32]]) -> Iterator[NDArray[np.int64]]:
    """Yield where each row begins, and where the last one ends."""
    last = 0
    yield np.zeros(1, np.int64)
    for piece in degrees:
        offsets = np.cumsum(piece, dtype=np.int64) + last
        last = int(offsets[-1])
        yield offsets


def _pieces(size: int) -> Iterator[int]:
    for first in range(0, size, _PIECE):
        yield min(_PIECE, size - first)
