"""Edges from Arrow's record batches, whoever made them: files, polars, DuckDB, pyarrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges, Ids, NamedEdges
from oocbfs.formats.tables.columns import Pair, TableOptions, TextIds, choose
from oocbfs.kernels.names.parse import PROBLEMS
from oocbfs.kernels.names.words import GOOD, MAX_NAME_BYTES, TOO_LONG, check_names

BATCH_ROWS = 1 << 18
_ANY = TableOptions()
# Names have any length: fewer rows are held at a time.
BATCH_NAMES = 1 << 14


def kind_of(table: object) -> str:
    """Return a table's library and type, as messages name it."""
    return f"{type(table).__module__.split('.')[0]} {type(table).__name__}"


def load(what: str) -> Any:
    """Import pyarrow, which not everybody has."""
    try:
        import pyarrow
    except ImportError as error:
        raise InputError(f"{what} needs pyarrow: pip install 'oocbfs[arrow]'") from error
    return pyarrow


class WrongRow(InputError):  # noqa: N818 - what is wrong is the row
    """A row that is no edge; rows count from 1 where they are shown."""

    def __init__(self, problem: str, row: int, path: str) -> None:
        self.problem, self.row, self._path = problem, row, path
        super().__init__(f"row {row} {problem}", path=path)

    def at(self, row: int) -> WrongRow:
        """Return the same of another row: this one was counted from somewhere else."""
        return WrongRow(self.problem, row, self._path)


class Schema:
    """The two columns of a table that hold edges: their names, and their types, which are checked.

    ``constants`` are columns that all rows of a file share, as the folders of a partitioned set
    name them; they follow the table's own. Columns that are ``untyped`` hold what a text has.
    """

    def __init__(
        self,
        schema: Any,
        path: str,
        *,
        table: TableOptions = _ANY,
        constants: Mapping[str, str] | None = None,
        named: bool = False,
        untyped: Sequence[str] = (),
    ) -> None:
        self._path, self.named = path, named
        self._take: Callable[[Any], Any] = self._named_edges if named else self._edges
        self.batch_rows = BATCH_NAMES if named else BATCH_ROWS
        self._constants = {k: v for k, v in (constants or {}).items() if k not in schema.names}
        names = [*schema.names, *self._constants]
        self.pair: Pair = choose(names, table.columns, path)
        self._ends = (names[self.pair.source], names[self.pair.target])
        for end in self._ends:
            if names.count(end) > 1:
                raise InputError(f"{names.count(end)} columns are called {end!r}", path=path)
        self.stored = [end for end in self._ends if end not in self._constants]
        for end in self.stored:
            kind = schema.field(end).type
            (_check_name_type if named else _check_type)(_decoded(kind, end, path), end, path)
        # What rows must meet; True or False where the folders of the file decide.
        self.chosen: Any = True
        self.read = list(self.stored)
        if table.where is not None:
            types = {
                field.name: None if field.name in untyped else _comparable(field.type)
                for field in schema
            }
            self.chosen = table.where.bind(types, path, constants=self._constants)
            more = [name for name in table.where.columns if name in types]
            self.read = list(dict.fromkeys([*self.read, *more]))

    def take(self, batch: Any, first_row: int) -> Any:
        """Take the edges of a record batch, whose first row has this number in its table, from 0.

        They are ``NamedEdges`` where ids are names.
        """
        try:
            return self._take(self._choose(batch))
        except WrongRow as wrong:
            raise wrong.at(first_row + self._place(batch, wrong.row - 1) + 1) from None

    def _place(self, batch: Any, row: int) -> int:
        """Return where a chosen row is among all of its batch."""
        import pyarrow as pa

        if self.chosen is True:
            return row
        places = pa.array(range(batch.num_rows))
        numbered = self._tested(batch).append_column("", places).filter(self.chosen)
        return int(numbered.column("")[row].as_py())

    def _tested(self, batch: Any) -> Any:
        """Return the columns of a record batch that are read, of which rows can be chosen."""
        import pyarrow as pa

        table = pa.Table.from_batches([batch]).select(self.read)
        for place, field in enumerate(table.schema):
            if field.type != _comparable(field.type):
                column = table.column(place).cast(_comparable(field.type))
                table = table.set_column(place, field.name, column)
        return table

    def _choose(self, batch: Any) -> Any:
        """Return the rows of a record batch that are edges."""
        import pyarrow as pa

        if self.chosen is True:
            return batch
        if self.chosen is False:
            return batch.slice(0, 0)
        try:
            found = self._tested(batch).filter(self.chosen).combine_chunks().to_batches()
        except (pa.ArrowInvalid, KeyError) as error:
            reason = str(error).splitlines()[0][:120]
            raise InputError(f"--where cannot be decided: {reason}", path=self._path) from error
        return found[0] if found else batch.slice(0, 0)

    def _edges(self, batch: Any) -> Edges:
        ends = [
            self._shared(end, batch.num_rows)
            if end in self._constants
            else as_ids(batch.column(end), end, self._path)
            for end in self._ends
        ]
        return Edges(ends[0], ends[1])

    def _named_edges(self, batch: Any) -> NamedEdges:
        import pyarrow as pa

        columns = [
            pa.array([self._constants[end]] * batch.num_rows, pa.large_string())
            if end in self._constants
            else as_names(batch.column(end), end, self._path)
            for end in self._ends
        ]
        texts, starts, lengths = [], np.empty((batch.num_rows, 2), np.uint32), []
        size = 0
        for place, column in enumerate(columns):
            _, offsets, data = column.buffers()
            bounds = np.frombuffer(offsets, np.int64, column.offset + len(column) + 1)
            bounds = bounds[column.offset :]
            text = np.frombuffer(data or b"", np.uint8)[int(bounds[0]) : int(bounds[-1])]
            starts[:, place] = bounds[:-1] - bounds[0] + size
            lengths.append(np.diff(bounds))
            texts.append(text)
            size += text.size
        sizes = np.stack(lengths, axis=1)
        if sizes.max(initial=0) > MAX_NAME_BYTES or size >= 2**32:
            raise InputError(PROBLEMS[TOO_LONG], path=self._path)
        edges = NamedEdges(
            np.concatenate(texts), starts.reshape(-1), sizes.astype(np.uint16).reshape(-1)
        )
        code, number = check_names(edges.text, edges.starts, edges.lengths)
        if code != GOOD:
            problem = f"has in {self._ends[number % 2]!r} {PROBLEMS[code]}"
            raise WrongRow(problem, number // 2 + 1, self._path)
        return edges

    def _shared(self, name: str, num_rows: int) -> Ids:
        value = self._constants[name]
        if not (value.isascii() and value.isdecimal() and int(value) < 2**64):
            raise InputError(
                f"the folder's {name}={value} is not a whole number: vertex ids are",
                path=self._path,
            )
        return np.full(num_rows, int(value), np.uint64)


def _decoded(kind: Any, name: str, path: str) -> Any:
    """Return the type of a column's values: of a dictionary's, too, but not of those in lists."""
    import pyarrow as pa

    if pa.types.is_nested(kind):
        raise InputError(
            f"column {name!r} holds {kind}: a row is one edge, with one id at each end: unnest it "
            "before, or choose others with --columns",
            path=path,
        )
    return getattr(kind, "value_type", kind)


def _check_type(kind: Any, name: str, path: str) -> None:
    import pyarrow as pa

    if not pa.types.is_integer(kind):
        raise (TextIds if _is_text(kind) else InputError)(
            f"column {name!r} holds {kind}: vertex ids are whole numbers, so cast it before, "
            "choose others with --columns, or use --ids names for names",
            path=path,
        )


def _is_text(kind: Any) -> bool:
    """Return whether a column holds strings."""
    import pyarrow as pa

    kind = _comparable(kind)
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _comparable(kind: Any) -> Any:
    """Return the type that a column has where it is tested: Arrow compares no views, as polars'."""
    import pyarrow as pa

    is_view = getattr(pa.types, "is_string_view", lambda kind: False)
    return pa.large_string() if is_view(kind) else kind


def _check_name_type(kind: Any, name: str, path: str) -> None:
    import pyarrow as pa

    if not (_is_text(kind) or pa.types.is_integer(kind)):
        raise InputError(
            f"column {name!r} holds {kind}: names are text or whole numbers, so cast it before, or "
            "choose others with --columns",
            path=path,
        )


def as_names(column: Any, name: str, path: str) -> Any:
    """Make a column of large strings of names, or of whole numbers; refuse gaps."""
    import pyarrow as pa

    column = _without_gaps(column, name, path)
    kind = pa.large_string()
    return column if column.type == kind else column.cast(pa.string()).cast(kind)


def _without_gaps(column: Any, name: str, path: str) -> Any:
    if hasattr(column, "dictionary_decode"):
        column = column.dictionary_decode()
    if column.null_count:
        missing = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise WrongRow(f"has no {name!r} (null): leave such rows out", missing + 1, path)
    return column


def as_ids(column: Any, name: str, path: str) -> Ids:
    """Return a column of whole numbers as ids, without a copy if they have 64 bits.

    Gaps and what is below zero are refused.
    """
    column = _without_gaps(column, name, path)
    values = column.to_numpy(zero_copy_only=True)
    if values.dtype.kind == "i" and values.size and values.min() < 0:
        row = int(np.argmax(values < 0))
        problem = f"has {name!r} = {values[row]}: vertex ids are not negative"
        raise WrongRow(problem, row + 1, path)
    ids: Ids = values.view(np.uint64) if values.itemsize == 8 else values.astype(np.uint64)
    return ids


class ArrowEdges:
    """The edges of any object that streams Arrow's record batches, read once."""

    unit = "edge"

    def __init__(self, table: Any, options: TableOptions, *, named: bool = False) -> None:
        self.name = kind_of(table)
        self._reader = load(self.name).RecordBatchReader.from_stream(table)
        try:
            self._schema = Schema(self._reader.schema, self.name, table=options, named=named)
        except TextIds as error:
            error.stream = self._reader
            raise
        self.declared = Declared(columns=self._schema.pair.note)
        self.total: int | None = None
        self.done = 0

    def batches(self) -> Iterator[Any]:
        """Yield the edges in order, with names where ids are names."""
        for batch in self._record_batches():
            for piece in pieces(batch, self._schema.batch_rows):
                yield self._schema.take(piece, self.done)
                self.done += piece.num_rows

    named_batches = batches

    def _record_batches(self) -> Iterator[Any]:
        yield from self._reader


class LazyEdges(ArrowEdges):
    """The edges of a LazyFrame of polars, which reads what it needs and no more, piece by piece.

    It chooses rows itself, so that the rows of messages are those that it has chosen.
    """

    def __init__(self, frame: Any, options: TableOptions, *, named: bool = False) -> None:
        self.name = kind_of(frame)
        load(self.name)
        if not hasattr(frame, "collect_batches"):
            raise InputError("needs polars 1.34: or give what its collect() gives", path=self.name)
        import polars

        with self._collected():
            schema = polars.DataFrame(schema=frame.collect_schema()).to_arrow().schema
        every = replace(options, where=None)
        self._schema = Schema(schema, self.name, table=every, named=named)
        if options.where is not None:
            types = {field.name: field.type for field in schema}
            frame = frame.filter(options.where.bind_polars(types, self.name))
        self._frame = frame.select(self._schema.stored)
        self.declared = Declared(columns=self._schema.pair.note)
        self.total: int | None = None
        self.done = 0

    def _record_batches(self) -> Iterator[Any]:
        with self._collected():
            for part in self._frame.collect_batches(chunk_size=BATCH_ROWS, lazy=True):
                yield from part.to_arrow().to_batches()

    @contextmanager
    def _collected(self) -> Iterator[None]:
        """Turn what polars raises into one line."""
        from polars.exceptions import PolarsError

        try:
            yield
        except (PolarsError, OSError) as error:
            reason = (str(error) or type(error).__name__).splitlines()[0][:120]
            raise InputError(f"cannot be collected: {reason}", path=self.name) from error


def pieces(batch: Any, num_rows: int) -> Iterator[Any]:
    """Cut a record batch into some of bounded size, without copies."""
    for first in range(0, batch.num_rows, num_rows):
        yield batch.slice(first, num_rows)
