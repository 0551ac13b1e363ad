"""Parquet files, written in row groups; pyarrow is the extra ``arrow``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import OutputError
from oocbfs.formats.names import NameColumn

# Rows of a group, which are held in memory until it is written.
ROW_GROUP = 1 << 20
Column = NDArray[Any] | NameColumn | Sequence[Any]


def import_arrow() -> Any:
    """Import pyarrow, or say how to get it."""
    try:
        import pyarrow
    except ImportError as error:
        raise OutputError("Arrow and Parquet need pyarrow: pip install 'oocbfs[arrow]'") from error
    return pyarrow


def arrow_schema(types: Mapping[str, Any], about: Mapping[str, str]) -> Any:
    """Make a schema: names and NumPy types (in a list: of lists), and what is said about it all.

    Objects are names of vertices, which may be missing.
    """
    arrow = import_arrow()

    def arrow_type(kind: Any) -> Any:
        if isinstance(kind, list):
            return arrow.list_(arrow_type(kind[0]))
        if np.dtype(kind) == object:
            return arrow.string()
        return arrow.from_numpy_dtype(np.dtype(kind))

    fields = [
        arrow.field(name, arrow_type(kind), nullable=kind == object) for name, kind in types.items()
    ]
    return arrow.schema(fields, {f"oocbfs.{name}": value for name, value in about.items()})


def record_batch(schema: Any, columns: Sequence[Column]) -> Any:
    """Make a batch of rows of columns, in the order and with the types of a schema."""
    arrow = import_arrow()
    arrays = [arrow.array(one, field.type) for one, field in zip(columns, schema, strict=True)]
    return arrow.record_batch(arrays, schema)


class ParquetRows:
    """A Parquet file that takes rows in any portions, and writes them in groups of equal size.

    ``differences`` names columns of whole numbers that are stored as such, as ids are best.
    """

    def __init__(self, file: _Sink, schema: Any, differences: Sequence[str] = ()) -> None:
        self._arrow = import_arrow()
        from pyarrow.parquet import ParquetWriter

        whole = [
            name for name in differences if self._arrow.types.is_integer(schema.field(name).type)
        ]
        self._schema = schema
        self._writer = ParquetWriter(
            file,
            schema,
            compression="zstd",
            # Of other columns, few values may be repeated.
            use_dictionary=[name for name in schema.names if name not in whole],
            column_encoding=dict.fromkeys(whole, "DELTA_BINARY_PACKED") or None,
        )
        self._waiting: list[Any] = []
        self._num_waiting = 0

    def write(self, columns: Sequence[Column]) -> None:
        """Take some rows, given as columns."""
        batch = record_batch(self._schema, columns)
        self._waiting.append(batch)
        self._num_waiting += batch.num_rows
        while self._num_waiting >= ROW_GROUP:
            self._write_group(ROW_GROUP)

    def _write_group(self, size: int) -> None:
        table = self._arrow.Table.from_batches(self._waiting, self._schema)
        self._writer.write_table(table.slice(0, size), row_group_size=ROW_GROUP)
        self._waiting = table.slice(size).to_batches()
        self._num_waiting -= size

    def close(self) -> None:
        """Write what is left, and the end of the file."""
        if self._num_waiting:
            self._write_group(self._num_waiting)
        self._writer.close()

    def abandon(self) -> None:
        """Let go of the file, whatever became of it."""
        self._waiting.clear()
        with suppress(Exception):
            self._writer.close()


@contextmanager
def parquet_rows(
    file: BinaryIO,
    types: Mapping[str, Any],
    about: Mapping[str, str],
    differences: Sequence[str] = (),
) -> Iterator[ParquetRows]:
    """Open a Parquet file on a stream: columns by name and type, and what is said about it."""
    sink = _Sink(file)
    rows = ParquetRows(sink, arrow_schema(types, about), differences)
    try:
        yield rows
        rows.close()
    except BaseException:
        sink.is_cut = True
        rows.abandon()
        raise


class _Sink:
    """A stream that can be cut, because Arrow ends every file, also that of a failure."""

    mode = "wb"

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = 0
        self.is_cut = self.closed = False

    def write(self, data: Any) -> int:
        """Write a buffer of Arrow's, unless the stream is cut."""
        view = memoryview(data)
        if not self.is_cut:
            self._file.write(view)
        self._size += view.nbytes
        return view.nbytes

    def tell(self) -> int:
        """Return the number of bytes so far."""
        return self._size

    def flush(self) -> None:
        """Do nothing: whoever opened the stream does."""

    def close(self) -> None:
        """Do nothing: whoever opened the stream does."""
