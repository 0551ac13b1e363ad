"""Tables of any columns as files, written some rows at a time: .csv, .tsv and .parquet.

Text also with a further ``.gz .zst .xz .bz2``, and ``-`` for ``.csv`` on standard output.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import OutputError
from oocbfs.formats.io.ordered import ordered_map
from oocbfs.formats.names import NameColumn
from oocbfs.formats.output.packing import STANDARD_OUTPUT, Block, endings, opened, packed
from oocbfs.formats.output.parquet import import_arrow, parquet_rows

Columns = Mapping[str, NDArray[Any] | NameColumn]
SEPARATORS = {"csv": ",", "tsv": "\t"}


def check_table_name(path: str | os.PathLike[str], *, also: tuple[str, ...] = ()) -> None:
    """Refuse a name whose ending is not known, before any work is done; ``also`` are more forms."""
    form, compression = form_of(path)
    if form not in ("parquet", *also, *SEPARATORS) or (compression and form not in SEPARATORS):
        more = "".join(f".{name}, " for name in also)
        raise OutputError(
            f"{os.fspath(path)}: name it {more}.csv, .tsv (or .csv.gz, .csv.zst …) or .parquet, "
            "which says how to write it"
        )
    if form == "parquet":
        import_arrow()


def form_of(path: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Return the form of an output by its name, and how it is compressed."""
    return ("csv", None) if os.fspath(path) == STANDARD_OUTPUT else endings(path)


def write_table(
    path: str | os.PathLike[str],
    types: Mapping[str, Any],
    batches: Iterable[Columns],
    *,
    about: Mapping[str, str] | None = None,
    threads: int = 1,
    force: bool = False,
    advance: Callable[[int], object] = lambda rows: None,
) -> int:
    """Write batches of rows to a file that appears when it is complete; return how many rows.

    ``types`` are the columns by name, as for ``arrow_schema``; ``advance`` is called with numbers
    of rows.
    """
    check_table_name(path)
    form, compression = form_of(path)
    num_rows = 0
    with opened(path, force=force, streams=True) as file:
        if form == "parquet":
            with parquet_rows(file, types, about or {}) as rows:
                for columns in batches:
                    rows.write([columns[name] for name in types])
                    advance(size := _num_rows(columns))
                    num_rows += size
            return num_rows
        separator = SEPARATORS[form]
        with packed(file, compression, threads) as (pack, write):

            def encode(columns: Columns) -> tuple[int, Block]:
                text = _text([columns[name] for name in types], separator)
                return _num_rows(columns), pack(text.data)

            write(pack((separator.join(types) + "\n").encode()))
            with closing(ordered_map(encode, batches, threads)) as blocks:
                for size, block in blocks:
                    write(block)
                    advance(size)
                    num_rows += size
    return num_rows


def _num_rows(columns: Columns) -> int:
    return next(iter(columns.values())).size


def _text(columns: list[NDArray[Any] | NameColumn], separator: str) -> NDArray[np.uint8]:
    """Write a line for each row."""
    from oocbfs.kernels.names.fields import join_fields, name_fields, number_fields

    def fields(column: NDArray[Any] | NameColumn) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
        if isinstance(column, NameColumn):
            return name_fields(column.text, column.bounds, separator)
        if column.dtype == np.bool_:
            words = np.where(column, b"true", b"false")
            text, sizes = words.view(np.uint8), np.where(column, 4, 5)
            return text[text != 0], np.concatenate(([0], np.cumsum(sizes)))
        return number_fields(column if column.dtype == np.uint64 else column.astype(np.int64))

    lines = reduce(lambda one, other: join_fields(one, other, separator), map(fields, columns))
    nothing = np.empty(0, np.uint8), np.zeros(lines[1].size, np.int64)
    return join_fields(lines, nothing, "\n")[0]
