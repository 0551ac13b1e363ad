"""Files with a number for each vertex, in the order of the ids.

- ``.npy``: the numbers alone.
- ``.csv .tsv``: ids and numbers; also with a further ``.gz .zst .xz .bz2``, and ``-`` for ``.csv``
  on standard output.
- ``.parquet``: the same columns, and what was said about the graph and the search.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import OutputError
from oocbfs.formats.io.ordered import ordered_map
from oocbfs.formats.names import NameColumn
from oocbfs.formats.output.packing import opened, packed
from oocbfs.formats.output.parquet import parquet_rows
from oocbfs.formats.output.table_files import SEPARATORS, check_table_name, form_of

Column = NDArray[Any] | NameColumn
_ROWS_PER_PIECE = 1 << 16


def check_name(path: str | os.PathLike[str], *, known_only: bool = False) -> None:
    """Refuse a name whose ending is not known, before any work is done.

    With ``known_only`` also what has no ids beside the numbers, of which some are left out.
    """
    check_table_name(path, also=("npy",))
    if form_of(path)[0] == "npy" and known_only:
        raise OutputError(
            f"{path}: holds numbers without their ids, so that none can be left out; name it .csv, "
            ".tsv or .parquet"
        )


def write_vector(
    path: str | os.PathLike[str],
    name: str,
    ids_at: Callable[[int, int], Column],
    values: NDArray[Any],
    *,
    as_column: Callable[[NDArray[Any]], Column] = lambda values: values,
    about: Mapping[str, str] | None = None,
    known_only: bool = False,
    threads: int = 1,
    force: bool = False,
) -> None:
    """Write values, and the ids they belong to; the file appears when it is complete.

    With ``known_only``, there are no rows of values below 0.

    ``ids_at(first, stop)`` gives the ids of the values first … stop-1, as all may be too many;
    ``as_column`` turns such a part of the values into what a table shows, as values may be ids too.
    """
    check_name(path, known_only=known_only)
    form, compression = form_of(path)

    def piece(first: int) -> tuple[Column, Column]:
        part = values[first : first + _ROWS_PER_PIECE]
        ids = ids_at(first, first + part.size)
        if known_only:
            known = part >= 0
            ids = ids.keep(known) if isinstance(ids, NameColumn) else ids[known]
            part = part[known]
        return ids, as_column(part)

    starts = range(0, values.size, _ROWS_PER_PIECE)
    with opened(path, force=force, streams=False) as file:
        if form == "npy":
            np.lib.format.write_array(file, values, allow_pickle=False)
        elif form == "parquet":
            _write_parquet(file, name, map(piece, starts), piece(0), about or {})
        else:
            separator = SEPARATORS[form]

            def text(first: int) -> NDArray[np.uint8]:
                return _text(*piece(first), separator)

            with packed(file, compression, threads) as (pack, write):
                write(pack(f"id{separator}{name}\n".encode()))
                blocks = ordered_map(lambda first: pack(text(first).data), starts, threads)
                for block in blocks:
                    write(block)


def _text(ids: Column, values: Column, separator: str) -> NDArray[np.uint8]:
    """Write a line for each id or name."""
    if isinstance(ids, NameColumn):
        from oocbfs.kernels.names.format import format_named_pairs, format_named_values

        names = ids.text, ids.bounds
        if isinstance(values, NameColumn):
            return format_named_pairs(*names, values.text, values.bounds, separator)
        return format_named_values(*names, values.astype(np.int64), separator)
    assert not isinstance(values, NameColumn)
    from oocbfs.kernels.results.format_text import format_pairs, format_values

    ids = ids.astype(np.uint64)
    if values.dtype == np.uint64:  # ids, which may not fit a signed number
        return format_pairs(ids, values, separator)
    return format_values(ids, values.astype(np.int64), separator)


def _write_parquet(
    file: BinaryIO,
    name: str,
    pieces: Iterator[tuple[Column, Column]],
    example: tuple[Column, Column],
    about: Mapping[str, str],
) -> None:
    types = dict(zip(("id", name), (column.dtype for column in example), strict=True))
    with parquet_rows(file, types, about, differences=["id"]) as rows:
        for piece in pieces:
            rows.write(piece)
