"""Edges in data frames of pandas, and of dask, partition by partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges, Ids, NamedEdges
from oocbfs.formats.tables.arrow import BATCH_NAMES, BATCH_ROWS, kind_of, load
from oocbfs.formats.tables.columns import TableOptions, TextIds, choose
from oocbfs.formats.tables.memory_names import as_bytes, pack_names
from oocbfs.formats.tables.where import Where

Rows = NDArray[np.int64]


class FrameEdges:
    """The edges of a data frame: one of pandas, or one of dask, of which it computes the parts."""

    unit = "edge"

    def __init__(self, frame: Any, options: TableOptions, *, named: bool = False) -> None:
        self.name = kind_of(frame)
        self._names = [str(name) for name in frame.columns]
        pair = choose(self._names, options.columns, self.name)
        self._ends = (pair.source, pair.target)
        for place in () if named else self._ends:
            self._check_type(frame.dtypes.iloc[place], self._names[place])
        self._frame = frame
        self._where = options.where
        self._tested: list[str] = []
        if options.where is not None:
            self._tested = options.where.columns
            load("where=")
            options.where.check_columns(self._names, self.name)
        self.declared = Declared(columns=pair.note)
        self.total = None if hasattr(frame, "npartitions") else len(frame)
        self.done = 0

    def batches(self) -> Iterator[Edges]:
        """Yield the edges in order."""
        for part, rows in self._parts():
            sources, targets = (
                self._ids(part.iloc[:, place], self._names[end], rows)
                for place, end in enumerate(self._ends)
            )
            for first in range(0, sources.size, BATCH_ROWS):
                piece = slice(first, first + BATCH_ROWS)
                yield Edges(sources[piece], targets[piece])
                self.done += sources[piece].size

    def named_batches(self) -> Iterator[NamedEdges]:
        """Yield the edges in order, where ids are names."""
        for part, rows in self._parts():
            for place, end in enumerate(self._ends):
                self._refuse_gaps(part.iloc[:, place], self._names[end], rows)
            for first in range(0, len(part), BATCH_NAMES):
                piece = part.iloc[first : first + BATCH_NAMES]
                pairs = zip(*(piece.iloc[:, place].tolist() for place in (0, 1)), strict=True)
                yield pack_names([as_bytes(name) for pair in pairs for name in pair])
                self.done += len(piece)

    def _parts(self) -> Iterator[tuple[Any, Rows]]:
        """Yield parts of both columns as frames of pandas, and which rows of the whole they are."""
        tested = [self._names.index(name) for name in self._tested]
        columns = self._frame.iloc[:, [*self._ends, *tested]]
        first_row = 0
        for part in self._computed(columns):
            rows = np.arange(first_row, first_row + len(part))
            first_row += len(part)
            if self._where is None:
                yield part, rows
            else:
                places = self._chosen(self._where, part)
                yield part.iloc[places, :2], rows[places]

    def _chosen(self, where: Where, part: Any) -> Rows:
        """Return which rows of a part are edges."""
        import pyarrow as pa

        tested = part.iloc[:, 2:].set_axis(self._tested, axis=1)
        table = pa.Table.from_pandas(tested, preserve_index=False)
        chosen = where.bind({field.name: field.type for field in table.schema}, self.name)
        numbered = table.append_column("", pa.array(np.arange(len(part))))
        rows: Rows = numbered.filter(chosen).column("").to_numpy()
        return rows

    @staticmethod
    def _computed(columns: Any) -> Iterator[Any]:
        if not hasattr(columns, "npartitions"):
            for first in range(0, len(columns), BATCH_ROWS):
                yield columns.iloc[first : first + BATCH_ROWS]
            return
        for number in range(columns.npartitions):
            yield columns.partitions[number].compute()

    def _check_type(self, kind: Any, name: str) -> None:
        from pandas.api.types import is_integer_dtype, is_object_dtype, is_string_dtype

        if not is_integer_dtype(kind):
            is_text = is_string_dtype(kind) or is_object_dtype(kind)
            raise (TextIds if is_text else InputError)(
                f"column {name!r} holds {kind}: vertex ids are whole numbers, so cast it before, "
                "or choose others with columns=",
                path=self.name,
            )

    def _refuse_gaps(self, column: Any, name: str, rows: Rows) -> None:
        missing = column.isna().to_numpy()
        if missing.any():
            row = int(rows[missing.argmax()])
            raise InputError(
                f"row {row} has no {name!r}: leave such rows out, as dropna does", path=self.name
            )

    def _ids(self, column: Any, name: str, rows: Rows) -> Ids:
        self._refuse_gaps(column, name, rows)
        signed = str(column.dtype).lower().startswith("int")
        values = column.to_numpy(dtype=np.int64 if signed else np.uint64)
        if signed and values.size and values.min() < 0:
            place = int((values < 0).argmax())
            raise InputError(
                f"row {rows[place]} has {name!r} = {values[place]}: vertex ids are not negative",
                path=self.name,
            )
        ids: Ids = values.astype(np.uint64)
        return ids
