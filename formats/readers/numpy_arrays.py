"""NumPy files: ``.npy`` edge arrays, ``.npz`` with edge arrays, and sparse matrices of SciPy.

An edge array has the shape (m, 2) or (2, m), the latter also as two arrays in one ``.npz``.
"""

from __future__ import annotations

import io
import math
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.streams import Source, Stream
from oocbfs.formats.readers.archive import Archive
from oocbfs.formats.readers.chunks import BATCH_EDGES
from oocbfs.formats.readers.csr import read_rows, to_ids
from oocbfs.formats.readers.detect import Sample

_SMALL_BYTES = 1 << 16
# numpy itself refuses longer headers, but only when they are in memory.
_HEADER_BYTES = 1 << 16
_PAIRS = (
    ("source", "target"),
    ("sources", "targets"),
    ("src", "dst"),
    ("from", "to"),
    ("row", "col"),
    ("u", "v"),
    ("arr_0", "arr_1"),
)


@dataclass(frozen=True)
class _Array:
    """An array on disk, its stream standing at the first item."""

    source: Source
    stream: Stream
    shape: tuple[int, ...]
    by_columns: bool
    kind: np.dtype[Any]

    def read(self, count: int) -> NDArray[Any]:
        return to_ids(self.stream.read_items(self.kind, count), self.source.name)


def looks_like(sample: Sample) -> bool:
    """Recognise a ``.npy`` file by its first bytes; an archive is recognised by its members."""
    return sample.head.startswith(npy.MAGIC_PREFIX)


def read_npy(source: Source, declared: Declared, threads: int) -> Generator[Edges]:
    """Read an edge array; it declares nothing."""
    with ExitStack() as stack:
        array = _open(source, stack)
        if len(array.shape) != 2 or 2 not in array.shape:
            raise InputError(
                f"an array of shape {array.shape}: edges need (m, 2) or (2, m)", path=source.name
            )
        # Of two by two, each row is an edge.
        upright = array.shape[1] == 2
        count = array.shape[0] if upright else array.shape[1]
        if upright != array.by_columns:
            yield from _interleaved(array, count)
            return
        if not source.regular:
            raise InputError(
                "sources and targets one after the other cannot be read from a pipe: "
                "name the file, or write the shape (m, 2)",
                path=source.name,
            )
        targets = _open(source, stack)
        targets.stream.skip(count * array.kind.itemsize)
        yield from _side_by_side(array, targets, count)
        targets.stream.expect_end()


def read_npz(source: Source, declared: Declared, threads: int) -> Generator[Edges]:
    """Read the arrays of an archive: a sparse matrix, an edge array, or sources and targets."""
    source.make_regular()
    with closing(Archive(source)) as archive:
        files = {file.path.removesuffix(".npy"): file for file in archive.members()}
        yield from _read_arrays(source, files, declared, threads)


def _read_arrays(
    source: Source, files: Mapping[str, Source], declared: Declared, threads: int
) -> Iterator[Edges]:
    if "format" in files and "shape" in files:
        yield from _read_sparse(source, files, declared)
        return
    if len(files) == 1:
        yield from read_npy(next(iter(files.values())), declared, threads)
        return
    for names in _PAIRS:
        if set(names) == set(files):
            yield from _read_two(source, [files[name] for name in names])
            return
    raise InputError(
        f"arrays {', '.join(sorted(files)) or '(none)'}: need one edge array, "
        "source and target, or a sparse matrix that SciPy saved",
        path=source.name,
    )


def _open(source: Source, stack: ExitStack) -> _Array:
    array = _open_any(source, stack)
    if array.kind.kind not in "iu":
        raise InputError(
            f"an array of {array.kind}: vertex ids are whole numbers", path=source.name
        )
    return array


def _open_any(source: Source, stack: ExitStack) -> _Array:
    """Open an array of any type; its header is not trusted."""
    stream = stack.enter_context(source.open())
    head = io.BytesIO(stream.read(_HEADER_BYTES))
    try:
        version = npy.read_magic(head)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, by_columns, kind = read(head)
    except Exception as error:  # what numpy raises depends on how the header is wrong
        reason = (str(error) or type(error).__name__).splitlines()[0][:80]
        raise InputError(f"not a numpy array ({reason})", path=source.name) from error
    if min(shape, default=0) < 0 or math.prod(shape) >= 2**60:
        raise InputError(f"an array of shape {str(shape)[:80]} is impossible", path=source.name)
    stream.unread(head.read())
    return _Array(source, stream, shape, by_columns, kind)


def _interleaved(array: _Array, count: int) -> Iterator[Edges]:
    for start in range(0, count, BATCH_EDGES):
        pairs = array.read(2 * min(BATCH_EDGES, count - start)).reshape(-1, 2)
        yield Edges(pairs[:, 0].copy(), pairs[:, 1].copy())
    array.stream.expect_end()


def _side_by_side(sources: _Array, targets: _Array, count: int) -> Iterator[Edges]:
    for start in range(0, count, BATCH_EDGES):
        size = min(BATCH_EDGES, count - start)
        yield Edges(sources.read(size), targets.read(size))


def _read_two(source: Source, files: list[Source], most: int | None = None) -> Iterator[Edges]:
    """Read sources and targets from two arrays; ids must be below ``most``."""
    with ExitStack() as stack:
        first, second = (_open(file, stack) for file in files)
        if len(first.shape) != 1 or first.shape != second.shape:
            raise InputError(
                f"arrays of shapes {first.shape} and {second.shape}: need the same length",
                path=source.name,
            )
        for edges in _side_by_side(first, second, first.shape[0]):
            if most is not None and max(edges.sources.max(), edges.targets.max()) >= most:
                raise InputError(f"an entry outside of {most} rows and columns", path=source.name)
            yield edges
        first.stream.expect_end()
        second.stream.expect_end()


def _read_sparse(
    source: Source, files: Mapping[str, Source], declared: Declared
) -> Iterator[Edges]:
    layout = _small(files["format"], "SU")[0]
    shape = _small(files["shape"], "iu")
    wanted = {"csr": ("indptr", "indices"), "csc": ("indptr", "indices"), "coo": ("row", "col")}
    if layout not in wanted:
        raise InputError(
            f"a sparse matrix stored as {layout!r}: need csr, csc or coo", path=source.name
        )
    names = wanted[layout]
    if missing := [name for name in names if name not in files]:
        raise InputError(f"no array {missing[0]!r} in this sparse matrix", path=source.name)
    if len(shape) != 2 or shape[0] != shape[1] or shape[0] < 0:
        raise InputError(
            f"a matrix of shape {tuple(shape)} is not square, so it is not the adjacency "
            "matrix of a graph",
            path=source.name,
        )
    size = declared.num_vertices = int(shape[0])
    if layout == "coo":
        yield from _read_two(source, [files[name] for name in names], size)
        return
    with ExitStack() as stack:
        offsets, entries = (_open(files[name], stack) for name in names)
        if offsets.shape != (size + 1,) or len(entries.shape) != 1:
            raise InputError(f"indptr of shape {offsets.shape} for {size} rows", path=source.name)
        starts, neighbours = (offsets.stream, offsets.kind), (entries.stream, entries.kind)
        for edges in read_rows(source.name, starts, neighbours, size, entries.shape[0]):
            yield edges if layout == "csr" else Edges(edges.targets, edges.sources)
        offsets.stream.expect_end()
        entries.stream.expect_end()


def _small(source: Source, kinds: str) -> list[Any]:
    """Read the few items of a word or of a shape; bytes become text."""
    with ExitStack() as stack:
        array = _open_any(source, stack)
        count = math.prod(array.shape)
        if array.kind.kind not in kinds or not 0 < count * array.kind.itemsize <= _SMALL_BYTES:
            raise InputError(
                f"{count} × {array.kind}: not what SciPy saves of a sparse matrix", path=source.name
            )
        items = array.stream.read_items(array.kind, count)
    if items.dtype.kind == "U":  # ASCII, or else no format that is known
        items = items.view(np.uint32).astype(np.uint8).view(f"S{items.dtype.itemsize // 4}")
    return [
        item.decode("utf-8", "replace") if isinstance(item, bytes) else item
        for item in items.tolist()
    ]
