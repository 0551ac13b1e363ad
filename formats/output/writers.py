"""Edge lists as files: text, compressed text, raw pairs, NumPy arrays and Parquet.

- ``.txt .el``: a pair per line, separated by a blank; ``.tsv`` by a tab, ``.csv`` by a comma.
- The same with a further ``.gz .zst .xz .bz2``: compressed text.
- ``.u32 .u64 .bin``: little-endian pairs without a header; ``.bin`` is the same as ``.u64``.
- ``.npy``: an array of shape (edges, 2) of uint64, or of uint32 in the format ``npy-u32``.
- ``.parquet``: columns ``source`` and ``target``, and what was said about the graph.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np

from oocbfs.errors import OutputError
from oocbfs.formats.edges import Edges, Ids
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.formats.names import NameColumn
from oocbfs.formats.output.packing import (
    COMPRESSIONS,
    STANDARD_OUTPUT,
    Block,
    endings,
    opened,
    packed,
)
from oocbfs.formats.output.parquet import Column, import_arrow, parquet_rows
from oocbfs.kernels.results.format_text import format_pairs

SEPARATORS = {"txt": " ", "el": " ", "tsv": "\t", "csv": ","}
PAIR_TYPES = {"u32": "<u4", "u64": "<u8", "bin": "<u8", "npy": "<u8", "npy-u32": "<u4"}
# The least that an edge takes: one digit, a separator, one digit and a line end, or two numbers.
MIN_EDGE_BYTES = dict.fromkeys(SEPARATORS, 4) | {
    name: 2 * np.dtype(dtype).itemsize for name, dtype in PAIR_TYPES.items()
}
PARQUET = "parquet"
# Of Parquet nothing is known: equal numbers take nearly nothing.
MIN_EDGE_BYTES[PARQUET] = 0
FORMATS = (*SEPARATORS, *PAIR_TYPES, PARQUET)


def write_edges(
    edges: Iterable[Edges],
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    compression: str | None = None,
    threads: int | None = None,
    header_comment: str | None = None,
    about: Mapping[str, str] | None = None,
    largest_id: int = 0,
    names: Callable[[Ids], NameColumn] | None = None,
    force: bool = False,
    progress: Callable[[int], object] | None = None,
) -> int:
    """Write batches of edges to a file that appears only when it is complete.

    Parameters
    ----------
    edges
        Batches in order; closed at the end if it is a generator.
    path
        Where to; ``-`` is standard output.
    format, compression
        One of ``FORMATS`` and ``COMPRESSIONS``; by default what the name of the file ends in.
    threads
        How many format and compress; by default one per processor.
    header_comment
        Lines to put before the text, each after ``#``.
    about
        What a Parquet file says about itself.
    largest_id
        Ids of Parquet are signed, as most of its readers expect, unless this one does not fit.
    names
        Returns the names of ids, which are written instead, as text or Parquet.
    force
        Replace an existing file.
    progress
        Called with the number of edges after each batch.

    Returns
    -------
    int
        The number of edges written.

    Raises
    ------
    OutputError
        If the file exists, cannot be written, or cannot hold an id.
    """
    layout, packing = choose_format(path, format, compression)
    threads = available_threads(threads)
    if names is not None and layout in PAIR_TYPES:
        raise OutputError(
            f"{os.fspath(path)}: the vertices have names, which {layout} cannot hold; choose a "
            "text format or .parquet"
        )
    if layout == PARQUET:
        id_type = np.dtype(np.int64 if largest_id < 2**63 else np.uint64)
        columns = _columns(id_type, names)
        sizes = _write_parquet(edges, path, columns, about or {}, force=force)
    else:
        comment, encoder = header_comment, partial(_encoder, names=names)
        sizes = _write_blocks(edges, path, layout, packing, comment, encoder, threads, force=force)
    num_edges = 0
    try:
        with closing(sizes):
            for size in sizes:
                num_edges += size
                if progress is not None:
                    progress(size)
    finally:
        if isinstance(edges, Generator):
            edges.close()
    return num_edges


def _write_blocks(
    edges: Iterable[Edges],
    path: str | os.PathLike[str],
    layout: str,
    packing: str | None,
    comment: str | None,
    encoder: Callable[..., Callable[[Edges], tuple[int, Block]]],
    threads: int,
    *,
    force: bool,
) -> Generator[int]:
    """Write bytes that follow each other; yields the sizes of batches, and ends after the file."""
    num_edges = 0
    with (
        opened(path, force=force, streams=True) as file,
        packed(file, packing, threads) as (pack, write),
    ):
        head = _head(layout, comment, pack)
        write(head)
        blocks = ordered_map(encoder(layout, pack), edges, threads)
        with closing(blocks):
            for size, block in blocks:
                write(block)
                num_edges += size
                yield size
        if not head and not num_edges:
            # No bytes at all would not be a valid compressed file.
            write(pack(b""))
        if layout.startswith("npy"):
            file.seek(0)
            write(_npy_header(layout, num_edges))


def _write_parquet(
    edges: Iterable[Edges],
    path: str | os.PathLike[str],
    columns: tuple[np.dtype[Any], Callable[[Ids], Column]],
    about: Mapping[str, str],
    *,
    force: bool,
) -> Generator[int]:
    """Write columns; yields the sizes of batches, and ends after the file."""
    id_type, as_column = columns
    types = dict.fromkeys(("source", "target"), id_type)
    with (
        opened(path, force=force, streams=True) as file,
        parquet_rows(file, types, about, differences=list(types)) as rows,
    ):
        for batch in edges:
            rows.write([as_column(batch.sources), as_column(batch.targets)])
            yield batch.sources.size


def _columns(
    id_type: np.dtype[Any], names: Callable[[Ids], NameColumn] | None
) -> tuple[np.dtype[Any], Callable[[Ids], Column]]:
    """Return the type of columns, and what makes a column of ids."""
    if names is not None:
        return NameColumn.dtype, names
    return id_type, lambda ids: ids.astype(id_type)


def choose_format(
    path: str | os.PathLike[str],
    format: str | None = None,
    compression: str | None = None,
    *,
    also: Iterable[str] = (),
) -> tuple[str, str | None]:
    """Format and compression of an edge list by what was asked for, or else by its name.

    ``also`` names other formats that the caller knows.
    """
    shown = os.fspath(path)
    ending, packing = endings(path)
    compression = compression or packing
    if format is None:
        format = "txt" if shown == STANDARD_OUTPUT else ending
    if format not in FORMATS:
        known = ", ".join((*FORMATS, *also))
        raise OutputError(f"{shown}: unknown edge-list format; choose one of {known}")
    if format == PARQUET:
        import_arrow()
    if compression is None:
        if shown == STANDARD_OUTPUT and format.startswith("npy"):
            raise OutputError("npy needs a file, not standard output; choose u64 or u32")
        return format, None
    if compression not in COMPRESSIONS:
        raise OutputError(f"{shown}: unknown compression {compression!r}; use gz, zst, xz or bz2")
    if format not in SEPARATORS:
        raise OutputError(f"{shown}: {format} is not written compressed; choose a text format")
    return format, COMPRESSIONS[compression]


def _head(layout: str, comment: str | None, pack: Callable[[Block], Block]) -> Block:
    """Encode what precedes the edges."""
    if layout.startswith("npy"):
        return _npy_header(layout, 0)
    if layout not in SEPARATORS or not comment:
        return b""
    return pack("".join(f"# {line}\n" for line in comment.splitlines()).encode())


def _encoder(
    layout: str, pack: Callable[[Block], Block], *, names: Callable[[Ids], NameColumn] | None
) -> Callable[[Edges], tuple[int, Block]]:
    """Return the function that turns a batch into its size and its bytes."""
    if layout in SEPARATORS:
        separator = SEPARATORS[layout]
        if names is not None:
            from oocbfs.kernels.names.format import format_named_pairs

            def encode(batch: Edges) -> tuple[int, Block]:
                one, other = names(batch.sources), names(batch.targets)
                text = format_named_pairs(one.text, one.bounds, other.text, other.bounds, separator)
                return batch.sources.size, pack(text.data)

            return encode
        return lambda batch: (
            batch.sources.size,
            pack(format_pairs(batch.sources, batch.targets, separator).data),
        )
    dtype = np.dtype(PAIR_TYPES[layout])
    return lambda batch: (batch.sources.size, _pairs(batch, dtype))


def _pairs(batch: Edges, dtype: np.dtype[np.unsignedinteger]) -> Block:
    """Interleave sources and targets."""
    pairs = np.empty((batch.sources.size, 2), dtype)
    for column, ids in enumerate((batch.sources, batch.targets)):
        if ids.size and int(ids.max()) > np.iinfo(dtype).max:
            bits = 8 * dtype.itemsize
            raise OutputError(f"id {int(ids.max())} does not fit {bits} bits; choose a u64 format")
        pairs[:, column] = ids
    return pairs.tobytes()


def _npy_header(layout: str, num_edges: int) -> bytes:
    """Build an npy header, which NumPy pads to the same size for any number of rows."""
    header = io.BytesIO()
    description = {"descr": PAIR_TYPES[layout], "fortran_order": False, "shape": (num_edges, 2)}
    np.lib.format.write_array_header_1_0(header, description)
    return header.getvalue()
