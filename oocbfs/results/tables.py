"""Results as tables of other libraries, and what such tables say about the graph."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from oocbfs.errors import QueryError
from oocbfs.formats.output.parquet import Column, arrow_schema, import_arrow
from oocbfs.settings import file_name
from oocbfs.version import __version__

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored

Columns = dict[str, Column]


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


def to_dask(values: Column, chunk: int) -> Any:  # noqa: ANN401
    """Make a Dask array in chunks of so many values."""
    return _import_dask().array.from_array(values, chunks=chunk, name=f"levels-{id(values):x}")


def dask_of_files(paths: Sequence[str], sizes: Sequence[int]) -> Any:  # noqa: ANN401
    """Make a Dask array of .npy files, each of which is read by whoever computes with it."""
    dask = _import_dask()
    load = dask.delayed(np.load)
    return dask.array.concatenate(
        [
            dask.array.from_delayed(load(path), (size,), np.int32)
            for path, size in zip(paths, sizes, strict=True)
        ]
    )


def _import_dask() -> Any:  # noqa: ANN401
    """Import Dask's arrays, or say how to get them."""
    try:
        import dask.array
    except ImportError as error:
        raise QueryError("to_dask needs Dask: pip install 'oocbfs[cluster]'") from error
    return dask


def to_pandas(columns: Mapping[str, Column]) -> Any:  # noqa: ANN401
    """Make a pandas data frame."""
    try:
        import pandas
    except ImportError as error:
        raise QueryError("to_pandas needs pandas: pip install pandas") from error
    return pandas.DataFrame(dict(columns))


def to_arrow(
    columns: Mapping[str, Column],
    about: Mapping[str, str],
    types: Mapping[str, Any] | None = None,
) -> Any:  # noqa: ANN401
    """Make a pyarrow table, whose schema says what it is about; arrays know their types."""
    known = types or {name: getattr(column, "dtype", None) for name, column in columns.items()}
    return import_arrow().table(dict(columns), arrow_schema(known, about))


class Tabular(ABC):
    """Results that are a table: as a data frame, and as a table of Arrow's."""

    @abstractmethod
    def _columns(self) -> Columns:
        """Return the columns by their names."""

    @abstractmethod
    def about(self) -> dict[str, str]:
        """Return what the table is about."""

    @abstractmethod
    def _draw(self, path: str | os.PathLike[str] | None, *, force: bool) -> Any:  # noqa: ANN401
        """Draw it."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What was searched, and what was found, in one line."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.title}>"

    def plot(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        force: bool = False,
    ) -> Any:  # noqa: ANN401
        """Draw it; returns a figure of matplotlib, and writes it if a file is named."""
        return self._draw(path, force=force)

    def to_pandas(self) -> Any:  # noqa: ANN401
        """Return the table as a pandas data frame."""
        return to_pandas(self._columns())

    def to_arrow(self) -> Any:  # noqa: ANN401
        """Return the table as one of pyarrow; its schema says what it is about."""
        return to_arrow(self._columns(), self.about())
