"""Parquet, and Arrow's files and streams (Feather is one), read in batches of bounded size.

The row groups of a Parquet file are decoded by several threads where there is memory to hold them,
and larger ones a few pages at a time: ``pyarrow.dataset`` would hold whole ones. Arrow's own files
are mapped, so that record batches of any size are read where they are; only those that are
compressed must fit in memory.
"""

from __future__ import annotations

import io
import mmap
import os
import struct
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import accumulate
from queue import SimpleQueue
from typing import Any, NamedTuple

from oocbfs.errors import BudgetError, InputError
from oocbfs.formats.container.lost_pages import PageWatch
from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.ordered import in_flight, ordered_map, read_ahead
from oocbfs.formats.io.streams import Source
from oocbfs.formats.io.temporary import Copy
from oocbfs.formats.readers.detect import Sample
from oocbfs.formats.tables.arrow import Schema, WrongRow, load, pieces

_PARQUET, _ENCRYPTED = b"PAR1", b"PARE"
_ARROW_FILE, _OLD_FEATHER = b"ARROW1", b"FEA1"
# A stream begins with a message: this mark, and the size of what describes it.
_STREAM_MARK = b"\xff\xff\xff\xff"
_MAX_METADATA_BYTES = 1 << 24
_MARK_BYTES = 8
_BUFFER_BYTES = 1 << 20
# Two ids, as they wait to be taken.
_ROW_BYTES = 16
# Fields of a footer, a message and a record batch, as Arrow's File.fbs and Message.fbs number them;
# and where a record batch is: offset, size of what describes it, size of the rest.
_RECORD_BATCHES, _HEADER, _LENGTH, _COMPRESSION = 3, 2, 0, 3
_BLOCK = struct.Struct("<qi12x")


def looks_like_parquet(sample: Sample) -> bool:
    """Recognise a Parquet file by its first bytes."""
    return sample.head.startswith((_PARQUET, _ENCRYPTED))


def looks_like_arrow(sample: Sample) -> bool:
    """Recognise Arrow's files, Feather's among them, and Arrow's streams by their first bytes."""
    head = sample.head
    if head.startswith((_ARROW_FILE, _OLD_FEATHER)):
        return True
    size = int.from_bytes(head[4:8], "little")
    return head.startswith(_STREAM_MARK) and size % 8 == 0 and 0 < size <= _MAX_METADATA_BYTES


def read_parquet(source: Source, declared: Declared, threads: int, **asked: Any) -> Generator[Any]:
    """Read two columns of a Parquet file, as ids or as names; see ``Schema`` for what is asked."""
    if source.peek(len(_ENCRYPTED)) == _ENCRYPTED:
        raise InputError("an encrypted Parquet file: decrypt it before", path=source.name)
    pa = load("Parquet")
    from pyarrow.parquet import ParquetFile

    with (
        _plain_file(source, "Parquet") as open_plain,
        _understood(pa, source.name, "Parquet"),
        ExitStack() as opened,
    ):

        def open_file(metadata: Any = None) -> Any:
            plain = open_plain()
            if not isinstance(plain, str):
                opened.enter_context(plain)
            file = ParquetFile(
                plain, metadata=metadata, buffer_size=_BUFFER_BYTES, pre_buffer=False
            )
            return opened.enter_context(file)

        file = open_file()
        schema = Schema(file.schema_arrow, source.name, **asked)
        declared.columns = schema.pair.note
        # At least one column: without any, nobody counts the rows.
        columns = schema.read or file.schema_arrow.names[:1]
        metadata = file.metadata
        groups = _groups(schema.chosen, file, open_plain)
        runs = [] if schema.named else _runs(metadata, schema.batch_rows, groups)
        readers = min(threads, len(runs))
        held_rows = in_flight(readers) * max((run.num_rows for run in runs), default=0)
        if readers > 1 and held_rows * _ROW_BYTES <= source.limits.window_bytes:
            files = [file, *(open_file(metadata) for _ in range(readers - 1))]
            yield from _edges_of_runs(runs, files, columns, schema, source)
        else:
            batches = file.iter_batches(
                schema.batch_rows, row_groups=groups, columns=columns, use_threads=threads > 1
            )
            sizes = [metadata.row_group(group).num_rows for group in range(metadata.num_row_groups)]

            def take(batch: Any, row: int) -> Any:
                try:
                    return schema.take(batch, row)
                except WrongRow as wrong:
                    raise wrong.at(_row_of_file(wrong.row, groups, sizes)) from None

            yield from _edges(batches, take, source, sum(sizes[group] for group in groups))


def _row_of_file(row: int, groups: list[int], sizes: list[int]) -> int:
    """Return the number of a row in its file, which is one of those in some row groups."""
    for group in groups:
        if row <= sizes[group]:
            return sum(sizes[:group]) + row
        row -= sizes[group]
    return row


def _groups(chosen: Any, file: Any, open_plain: Callable[[], Any]) -> list[int]:
    """Return the row groups that may have rows which are chosen, by the ranges of their values."""
    every = list(range(file.metadata.num_row_groups))
    if isinstance(chosen, bool):
        return every if chosen else []
    plain = open_plain()
    if not isinstance(plain, str):
        plain.close()
        return every
    from pyarrow import dataset, fs

    fragment = dataset.ParquetFileFormat().make_fragment(plain, fs.LocalFileSystem())
    return [group.id for group in fragment.subset(chosen, schema=file.schema_arrow).row_groups]


class _Run(NamedTuple):
    """Row groups that follow each other, the number of their first row, and how many these are."""

    groups: list[int]
    first_row: int
    num_rows: int


def _runs(metadata: Any, least_rows: int, chosen: list[int]) -> list[_Run]:
    """Put chosen row groups that follow each other together to so many rows, where there are."""
    runs: list[_Run] = []
    groups: list[int] = []
    first_row = row = 0
    wanted = set(chosen)
    for group in range(metadata.num_row_groups):
        if group in wanted:
            groups.append(group)
        row += metadata.row_group(group).num_rows
        if groups and (row - first_row >= least_rows or group + 1 not in wanted):
            runs.append(_Run(groups, first_row, row - first_row))
            groups = []
        first_row = first_row if groups else row
    return runs


def _edges_of_runs(
    runs: list[_Run],
    files: list[Any],
    columns: list[str],
    schema: Schema,
    source: Source,
) -> Generator[Edges]:
    """Decode row groups that are small enough to be held, by a thread for each open file."""
    free: SimpleQueue[Any] = SimpleQueue()
    for file in files:
        free.put(file)

    def decode(run: _Run) -> list[Edges]:
        file = free.get()
        try:
            table = file.read_row_groups(run.groups, columns, use_threads=False)
        finally:
            free.put(file)
        batches = table.to_batches(schema.batch_rows)
        rows = accumulate((batch.num_rows for batch in batches), initial=run.first_row)
        return [schema.take(batch, row) for batch, row in zip(batches, rows, strict=False)]

    num_rows = runs[-1].first_row + runs[-1].num_rows
    with closing(ordered_map(decode, runs, len(files))) as decoded:
        for run, edges in zip(runs, decoded, strict=True):
            yield from edges
            _show_progress(source, run.first_row + run.num_rows, num_rows)


def read_arrow(source: Source, declared: Declared, threads: int, **asked: Any) -> Generator[Any]:
    """Read two columns of an Arrow file (Feather is one) or stream, as ids or as names."""
    if source.peek(len(_OLD_FEATHER)) == _OLD_FEATHER:
        raise InputError("version 1 of Feather: write it anew with pandas", path=source.name)
    pa = load("Arrow")
    from pyarrow import ipc

    with _plain_file(source, "Arrow") as open_plain, _understood(pa, source.name, "Arrow"):
        mapping = _mapped(open_plain(), source.name)
        watch, data = PageWatch(mapping), pa.py_buffer(mapping)
        is_file = mapping[: len(_ARROW_FILE)] == _ARROW_FILE
        opened = ipc.open_file if is_file else ipc.open_stream
        names = opened(data).schema
        schema = Schema(names, source.name, **asked)
        declared.columns = schema.pair.note
        messages = ipc.MessageReader.open_stream(data) if not is_file else ()
        found = (bytes(one.metadata) for one in messages if one.type == "record batch")
        num_rows, unpacked_rows = _count_rows(_of_file(mapping) if is_file else found)
        needed = 32 * unpacked_rows  # and as many bytes packed
        if needed > source.limits.window_bytes:
            raise BudgetError(
                f"{source.name}: a compressed record batch of {unpacked_rows:,} rows takes "
                f"{needed >> 20:,} MB: allow more --memory, or write smaller batches"
            )
        options = ipc.IpcReadOptions(use_threads=threads > 1)
        if unpacked_rows and schema.read:
            # Others need not be unpacked. What is not compressed is read where it is, and would
            # be copied with this option.
            options.included_fields = [names.get_field_index(name) for name in schema.read]
        reader = opened(data, options=options)
        batches = map(reader.get_batch, range(reader.num_record_batches)) if is_file else reader
        small = _kept_small(batches, schema.batch_rows, mapping, watch, source.name)

        def take(batch: Any, row: int) -> Any:
            edges = schema.take(batch, row)
            if schema.named:
                return edges
            # Copies: the file may be cut short, which is noticed when the batch is done with.
            return Edges(edges.sources.copy(), edges.targets.copy())

        yield from _edges(small, take, source, num_rows)


def _edges(
    batches: Iterator[Any], take: Callable[[Any, int], Any], source: Source, num_rows: int
) -> Generator[Any]:
    """Decode batches in another thread, while the ones before are worked on."""

    def decode() -> Iterator[Any]:
        row = 0
        for batch in batches:
            yield take(batch, row)
            row += batch.num_rows
            _show_progress(source, row, num_rows)

    with closing(read_ahead(decode())) as edges:
        yield from edges


def _show_progress(source: Source, row: int, num_rows: int) -> None:
    if source.size is not None:
        source.progress(source.size * row // max(1, num_rows))


def _mapped(plain: str | io.RawIOBase, name: str) -> mmap.mmap:
    with io.FileIO(plain) if isinstance(plain, str) else plain as file:
        if not os.fstat(file.fileno()).st_size:
            raise InputError("an empty file", path=name)
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _kept_small(
    batches: Iterator[Any], num_rows: int, mapping: mmap.mmap, watch: PageWatch, name: str
) -> Iterator[Any]:
    """Cut batches into small ones, and let go of the pages of a mapped file after each."""
    for batch in batches:
        for piece in pieces(batch, num_rows):
            yield piece
            if watch.lost:
                raise InputError("was cut short while it was read", path=name)
            mapping.madvise(mmap.MADV_DONTNEED)


def _of_file(mapping: mmap.mmap) -> Iterator[bytes]:
    """Yield what describes each record batch of a file, which its footer lists."""
    end = len(mapping) - len(_ARROW_FILE) - 4
    (footer_bytes,) = struct.unpack_from("<i", mapping, end)
    footer = mapping[end - footer_bytes : end]
    (root,) = struct.unpack_from("<I", footer)
    blocks = _field(footer, root, _RECORD_BATCHES)
    if not blocks:
        return
    blocks += struct.unpack_from("<I", footer, blocks)[0]
    for number in range(struct.unpack_from("<I", footer, blocks)[0]):
        begin, size = _BLOCK.unpack_from(footer, blocks + 4 + number * _BLOCK.size)
        prefix = 8 if mapping[begin : begin + 4] == _STREAM_MARK else 4
        yield mapping[begin + prefix : begin + size]


def _count_rows(described: Iterator[bytes]) -> tuple[int, int]:
    """Count the rows of all record batches, and of the largest that is compressed."""
    total = unpacked = 0
    for data in described:
        (root,) = struct.unpack_from("<I", data)
        header = _field(data, root, _HEADER)
        batch = header + struct.unpack_from("<I", data, header)[0]
        length = _field(data, batch, _LENGTH)
        rows = struct.unpack_from("<q", data, length)[0] if length else 0
        total += rows
        if _field(data, batch, _COMPRESSION):
            unpacked = max(unpacked, rows)
    return total, unpacked


def _field(data: bytes, table: int, number: int) -> int:
    """Find a field of a table in FlatBuffers' encoding; 0 if it has its default."""
    entries = table - struct.unpack_from("<i", data, table)[0]
    (size,) = struct.unpack_from("<H", data, entries)
    place = 4 + 2 * number
    (offset,) = struct.unpack_from("<H", data, entries + place) if place < size else (0,)
    return table + offset if offset else 0


@contextmanager
def _plain_file(source: Source, kind: str) -> Iterator[Callable[[], Any]]:
    """Yield a function that opens the bytes: pyarrow cannot read pipes, nor what is compressed."""
    path = source.plain_path()
    if path is not None:
        # pyarrow takes no path that is not UTF-8.
        is_text = os.fsencode(path).decode("utf-8", "replace") == path
        yield lambda: path if is_text else io.FileIO(path)
        return
    # What cannot be a table is not copied first.
    head = Sample(source.peek(_MARK_BYTES), whole=False, name="", size=None)
    if not (looks_like_parquet if kind == "Parquet" else looks_like_arrow)(head):
        raise InputError(f"not {kind}: it begins with other bytes", path=source.name)
    with source.open() as stream:
        copy = Copy(stream, source.name, source.limits.folder)
    with copy:
        yield copy.open


@contextmanager
def _understood(pa: Any, name: str, kind: str) -> Iterator[None]:
    """Turn what pyarrow raises into one line, and give back the memory that it keeps."""
    try:
        yield
    except (pa.ArrowException, OSError, struct.error) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0][:120]
        raise InputError(f"cannot be read as {kind}: {reason}", path=name) from error
    finally:
        # Arrow's allocator would keep what nobody else can use.
        pa.default_memory_pool().release_unused()


read_parquet_names = partial(read_parquet, named=True)
read_arrow_names = partial(read_arrow, named=True)
