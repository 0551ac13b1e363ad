"""Results as tables of other libraries, and what such tables say about the graph."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.formats.names import NameColumn, join_columns
from oocbfs.formats.output.atomic import atomic_output
from oocbfs.formats.output.parquet import (
    Column,
    arrow_schema,
    import_arrow,
    parquet_rows,
    record_batch,
)
from oocbfs.settings import file_name
from oocbfs.version import __version__

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored

Columns = dict[str, NDArray[Any] | NameColumn]
Types = Mapping[str, Any]
# Rows that are made at a time where they are read as a stream.
_PIECE = 1 << 18


def about(graph: AnyStored, **more: object) -> dict[str, str]:
    """Return what a table was made from: which graph, which search; what is no text is JSON."""
    values: dict[str, object] = {
        "version": __version__,
        "graph": file_name(graph.path),
        "graph_checksum": graph.checksum,
        "vertices": graph.num_vertices,
        "edges": graph.num_edges,
        "arcs": graph.num_arcs,
        "directed": graph.directed,
        **more,
    }
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
    }


def to_dask(values: Column, chunk: int) -> Any:
    """Make a Dask array in chunks of so many values."""
    return _import_dask().array.from_array(values, chunks=chunk, name=f"levels-{id(values):x}")


def dask_of_files(paths: Sequence[str], sizes: Sequence[int]) -> Any:
    """Make a Dask array of .npy files, each of which is read by whoever computes with it."""
    dask = _import_dask()
    load = dask.delayed(np.load)
    return dask.array.concatenate(
        [
            dask.array.from_delayed(load(path), (size,), np.int32)
            for path, size in zip(paths, sizes, strict=True)
        ]
    )


def _import_dask() -> Any:
    """Import Dask's arrays, or say how to get them."""
    try:
        import dask.array
    except ImportError as error:
        raise QueryError("to_dask needs Dask: pip install 'oocbfs[cluster]'") from error
    return dask


def to_pandas(columns: Mapping[str, Column]) -> Any:
    """Make a pandas data frame."""
    try:
        import pandas
    except ImportError as error:
        raise QueryError("to_pandas needs pandas: pip install pandas") from error
    return pandas.DataFrame(dict(columns))


def to_polars(table: Any) -> Any:
    """Make a polars data frame of a table of pyarrow."""
    try:
        import polars
    except ImportError as error:
        raise QueryError("to_polars needs polars: pip install polars") from error
    return polars.DataFrame(table)


def to_arrow(
    columns: Mapping[str, Column], about: Mapping[str, str], types: Mapping[str, Any] | None = None
) -> Any:
    """Make a pyarrow table, whose schema says what it is about; arrays know their types."""
    known = types or {name: getattr(column, "dtype", None) for name, column in columns.items()}
    return import_arrow().table(dict(columns), arrow_schema(known, about))


class Table(ABC):
    """Results that other libraries read as a table, a bounded number of rows at a time.

    Whatever reads Arrow streams takes them as they are: pyarrow, polars, DuckDB, pandas.
    """

    @abstractmethod
    def about(self) -> dict[str, str]:
        """Return what the table is about."""

    @abstractmethod
    def _types(self) -> Types:
        """Return the columns by name, and their types; see ``arrow_schema``."""

    @abstractmethod
    def _batches(self, *, reached_only: bool) -> Iterator[Columns]:
        """Yield some rows at a time."""

    def _stream(self, *, reached_only: bool = False) -> Any:
        """Return a stream of Arrow's, whose rows are made when they are read."""
        arrow, types = import_arrow(), self._types()
        schema = arrow_schema(types, self.about())
        batches = (
            record_batch(schema, [columns[name] for name in types])
            for columns in self._batches(reached_only=reached_only)
        )
        return arrow.RecordBatchReader.from_batches(schema, batches)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Return the rows as a stream of Arrow's C interface, with which libraries ask for them."""
        return self._stream().__arrow_c_stream__(requested_schema)

    def to_pandas(self) -> Any:
        """Return the rows as a pandas data frame."""
        return to_pandas(_joined(list(self._types()), self._batches(reached_only=False)))

    def to_arrow(self) -> Any:
        """Return the rows as a table of pyarrow; its schema says what it is about."""
        return self._stream().read_all()

    def to_polars(self) -> Any:
        """Return the rows as a polars data frame."""
        return to_polars(self.to_arrow())

    def to_parquet(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the rows to a Parquet file, some at a time.

        Raises
        ------
        OutputError
            If it cannot be written; then nothing is there. Also if there is such a file, unless
            ``force`` says to replace it.
        """
        self._write_parquet(path, force=force)

    def _write_parquet(
        self, path: str | os.PathLike[str], *, reached_only: bool = False, force: bool = False
    ) -> None:
        types = self._types()
        with (
            atomic_output(path, force=force) as file,
            parquet_rows(file, types, self.about(), [n for n in types if n == "id"]) as rows,
        ):
            for columns in self._batches(reached_only=reached_only):
                rows.write([columns[name] for name in types])


class Drawn(ABC):
    """Results that can be drawn, and say in one line what they are."""

    @abstractmethod
    def _draw(self, path: str | os.PathLike[str] | None, *, force: bool) -> Any:
        """Draw it."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What was searched, and what was found, in one line."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title}>"

    def plot(self, path: str | os.PathLike[str] | None = None, *, force: bool = False) -> Any:
        """Draw it; returns a figure of matplotlib, and writes it if a file is named."""
        return self._draw(path, force=force)


class AsArray(ABC):
    """Results that numpy takes as one array of numbers."""

    @property
    @abstractmethod
    def _values(self) -> NDArray[Any]:
        """The numbers of all rows, as one array."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self._values, dtype=dtype, copy=copy)

    def __dlpack__(self, **wishes: Any) -> Any:
        """Return the same array for ``from_dlpack``; it is in host memory, whatever the engine."""
        return self._values.__dlpack__(**wishes)

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return where the array is: every engine brings its results to the host."""
        return self._values.__dlpack_device__()


class Tabular(Table, Drawn, AsArray):
    """Results with a row for each vertex, in the order of the ids."""

    _stored: AnyStored

    @abstractmethod
    def _columns_between(self, first: int, stop: int) -> Columns:
        """Return the columns by their names, at positions first … stop-1."""

    def _reached_between(self, first: int, stop: int) -> NDArray[np.bool_]:
        """Return which vertices at positions first … stop-1 were reached."""
        raise QueryError("every vertex has a component: leave out reached_only")

    def to_pandas(self, *, reached_only: bool = False) -> Any:
        """Return the table as a pandas data frame; with ``reached_only`` without other vertices."""
        return to_pandas(self._columns(reached_only=reached_only))

    def to_arrow(self, *, reached_only: bool = False) -> Any:
        """Return the table as one of pyarrow; its schema says what it is about."""
        return to_arrow(self._columns(reached_only=reached_only), self.about())

    def to_polars(self, *, reached_only: bool = False) -> Any:
        """Return the table as a polars data frame."""
        return to_polars(self.to_arrow(reached_only=reached_only))

    def to_parquet(
        self, path: str | os.PathLike[str], *, reached_only: bool = False, force: bool = False
    ) -> None:
        """Write the table to a Parquet file; see ``Table.to_parquet``."""
        self._write_parquet(path, reached_only=reached_only, force=force)

    def _types(self) -> Types:
        return {name: column.dtype for name, column in self._columns_between(0, 0).items()}

    def _columns(self, *, reached_only: bool) -> Columns:
        columns = self._columns_between(0, self._stored.num_vertices)
        if not reached_only:
            return columns
        return _kept(columns, self._reached_between(0, self._stored.num_vertices))

    def _batches(self, *, reached_only: bool) -> Iterator[Columns]:
        for first in range(0, self._stored.num_vertices, _PIECE):
            stop = min(first + _PIECE, self._stored.num_vertices)
            columns = self._columns_between(first, stop)
            if reached_only:
                columns = _kept(columns, self._reached_between(first, stop))
            yield columns


def _kept(columns: Columns, wanted: NDArray[np.bool_]) -> Columns:
    """Return the rows that are wanted."""
    return {
        name: column.keep(wanted) if isinstance(column, NameColumn) else column[wanted]
        for name, column in columns.items()
    }


def _joined(names: list[str], batches: Iterator[Columns]) -> Columns:
    """Put the columns of several batches of rows together."""
    parts: dict[str, list[Any]] = {name: [] for name in names}
    for columns in batches:
        for name in names:
            parts[name].append(columns[name])
    return {name: _joined_column(columns) for name, columns in parts.items()}


def _joined_column(columns: list[Any]) -> Any:
    if columns and isinstance(columns[0], NameColumn):
        return join_columns(columns)
    if columns and isinstance(columns[0], list):
        return [value for column in columns for value in column]
    return np.concatenate(columns) if columns else []
