"""Edge lists as files: text, compressed text, raw pairs and NumPy arrays.

- ``.txt .el``: a pair per line, separated by a blank; ``.tsv`` by a tab, ``.csv`` by a comma.
- The same with a further ``.gz .zst .xz .bz2``: compressed text.
- ``.u32 .u64 .bin``: little-endian pairs without a header; ``.bin`` is the same as ``.u64``.
- ``.npy``: an array of shape (edges, 2) of uint64, or of uint32 in the format ``npy-u32``.
"""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import closing, contextmanager
from pathlib import PurePath
from typing import BinaryIO, cast

import numpy as np
import zstandard

from oocbfs.errors import OutputError
from oocbfs.formats.edges import Edges
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.formats.output.atomic import atomic_output
from oocbfs.kernels.results.format_text import format_pairs

Block = bytes | memoryview

SEPARATORS = {"txt": " ", "el": " ", "tsv": "\t", "csv": ","}
PAIR_TYPES = {"u32": "<u4", "u64": "<u8", "bin": "<u8", "npy": "<u8", "npy-u32": "<u4"}
# The least that an edge takes: one digit, a separator, one digit and a line end, or two numbers.
MIN_EDGE_BYTES = dict.fromkeys(SEPARATORS, 4) | {
    name: 2 * np.dtype(dtype).itemsize for name, dtype in PAIR_TYPES.items()
}
FORMATS = (*SEPARATORS, *PAIR_TYPES)
COMPRESSIONS = {"gz": "gz", "gzip": "gz", "zst": "zst", "zstd": "zst", "xz": "xz", "bz2": "bz2"}

# Members of these three may follow each other, so that blocks are compressed independently. The
# levels are fast ones: slow ones make random edges hardly smaller.
_MEMBERS: dict[str, Callable[[Block], bytes]] = {
    "gz": lambda block: gzip.compress(block, compresslevel=3, mtime=0),
    "xz": lambda block: lzma.compress(block, preset=1),
    "bz2": lambda block: bz2.compress(block, compresslevel=5),
}


def write_edges(
    edges: Iterable[Edges],
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    compression: str | None = None,
    threads: int | None = None,
    header_comment: str | None = None,
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
    num_edges = 0
    try:
        with _opened(path, force) as file, _packed(file, packing, threads) as (pack, write):
            head = _head(layout, header_comment, pack)
            write(head)
            blocks = ordered_map(_encoder(layout, pack), edges, threads)
            with closing(blocks):
                for size, block in blocks:
                    write(block)
                    num_edges += size
                    if progress is not None:
                        progress(size)
            if not head and not num_edges:
                # No bytes at all would not be a valid compressed file.
                write(pack(b""))
            if layout.startswith("npy"):
                file.seek(0)
                write(_npy_header(layout, num_edges))
    finally:
        if isinstance(edges, Generator):
            edges.close()
    return num_edges


def choose_format(
    path: str | os.PathLike[str], format: str | None = None, compression: str | None = None
) -> tuple[str, str | None]:
    """Format and compression of an edge list by what was asked for, or else by its name."""
    shown = os.fspath(path)
    endings = [suffix[1:].lower() for suffix in PurePath(shown).suffixes]
    if endings and endings[-1] in COMPRESSIONS:
        ending = endings.pop()
        compression = compression or ending
    if format is None:
        format = "txt" if shown == "-" else endings[-1] if endings else ""
    if format not in FORMATS:
        raise OutputError(f"{shown}: unknown edge-list format; choose one of {', '.join(FORMATS)}")
    if compression is None:
        if shown == "-" and format.startswith("npy"):
            raise OutputError("npy needs a file, not standard output; choose u64 or u32")
        return format, None
    if compression not in COMPRESSIONS:
        raise OutputError(f"{shown}: unknown compression {compression!r}; use gz, zst, xz or bz2")
    if format not in SEPARATORS:
        raise OutputError(f"{shown}: {format} is not written compressed; choose a text format")
    return format, COMPRESSIONS[compression]


@contextmanager
def _opened(path: str | os.PathLike[str], force: bool) -> Generator[BinaryIO]:
    """Open the file to write to, or standard output."""
    if os.fspath(path) != "-":
        with atomic_output(path, force=force, streams=True) as file:
            yield file
        return
    try:
        yield cast(BinaryIO, _StandardOutput())
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise  # the reader closed the pipe, which is not an error
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"standard output cannot be written: {reason}") from error


class _StandardOutput:
    """Standard output that takes whole blocks: without a buffer, a write may take only a part."""

    def write(self, block: Block) -> int:
        """Write until all is written."""
        rest = memoryview(block)
        while rest.nbytes:
            rest = rest[sys.stdout.buffer.write(rest) :]
        return len(block)


@contextmanager
def _packed(
    file: BinaryIO, compression: str | None, threads: int
) -> Generator[tuple[Callable[[Block], Block], Callable[[Block], object]]]:
    """Give a function that compresses a block, for any thread, and one that writes in order."""
    if compression == "zst":
        # One frame, because some readers stop after the first; zstd has its own threads.
        packer = zstandard.ZstdCompressor(threads=threads if threads > 1 else 0).compressobj()
        yield lambda block: block, lambda block: file.write(packer.compress(block))
        file.write(packer.flush())
    elif compression is None:
        yield lambda block: block, file.write
    else:
        yield _MEMBERS[compression], file.write


def _head(layout: str, comment: str | None, pack: Callable[[Block], Block]) -> Block:
    """Encode what precedes the edges."""
    if layout.startswith("npy"):
        return _npy_header(layout, 0)
    if layout not in SEPARATORS or not comment:
        return b""
    return pack("".join(f"# {line}\n" for line in comment.splitlines()).encode())


def _encoder(layout: str, pack: Callable[[Block], Block]) -> Callable[[Edges], tuple[int, Block]]:
    """Give the function that turns a batch into its size and its bytes."""
    if layout in SEPARATORS:
        separator = SEPARATORS[layout]
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
