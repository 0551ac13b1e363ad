"""Texts in columns of which only some rows are edges: read by Arrow, chosen as in other tables."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import closing
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import InputError
from oocbfs.formats.readers.chunks import Lines, parsed_chunks
from oocbfs.formats.tables.arrow import Schema, WrongRow, load, pieces
from oocbfs.formats.tables.columns import TableOptions
from oocbfs.formats.tables.delimited import BLANK, Layout, split_names

_COMMENTS = ("#", "%", "//")


def read_chosen(
    lines: Lines,
    layout: Layout,
    first_line: bytes,
    table: TableOptions,
    threads: int,
    *,
    named: bool = False,
) -> Generator[Any]:
    """Read what is left of the lines, as ids or as names; without a header, columns are numbers."""
    pa = load("--where on text")
    from pyarrow import csv

    fields = split_names(first_line, layout.delimiter)
    names = _distinct(fields if layout.has_header else [str(n + 1) for n in range(len(fields))])
    pair = layout.pair
    ends = (names[pair.source], names[pair.target])
    types = {name: pa.uint64() if name in ends and not named else pa.string() for name in names}
    schema = Schema(
        pa.schema(list(types.items())),
        lines.name,
        table=replace(table, columns=(pair.source + 1, pair.target + 1)),
        named=named,
        untyped=[name for name in names if named or name not in ends],
    )
    reading = csv.ReadOptions(column_names=names, use_threads=False)
    convert = csv.ConvertOptions(
        column_types=types,
        include_columns=schema.read,
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    delimiter = " " if layout.delimiter == BLANK else layout.delimiter

    def work(chunk: NDArray[np.uint8]) -> tuple[int, list[Any] | WrongRow]:
        num_lines = int((chunk == ord("\n")).sum())
        parse = csv.ParseOptions(delimiter=delimiter, invalid_row_handler=_pass_over_comments)
        try:
            rows = csv.read_csv(pa.BufferReader(pa.py_buffer(chunk)), reading, parse, convert)
        except pa.ArrowInvalid as error:
            if str(error).startswith("Empty CSV"):
                return num_lines, []
            reason = str(error).splitlines()[0][:120]
            raise InputError(
                f"cannot be read in columns: {reason}", path=lines.name, line=lines.number
            ) from error
        edges, row = [], 0
        for batch in rows.to_batches():
            for piece in pieces(batch, schema.batch_rows):
                try:
                    edges.append(schema.take(piece, row))
                except WrongRow as wrong:
                    return _line_of(chunk, wrong.row), wrong
                row += piece.num_rows
        return num_lines, edges

    with closing(parsed_chunks(lines, work, threads)) as parsed:
        for num_lines, edges in parsed:
            if isinstance(edges, WrongRow):
                line = lines.number + num_lines
                raise InputError(edges.problem, path=lines.name, line=line) from edges
            yield from edges
            lines.number += num_lines
    lines.finish()


def _line_of(chunk: NDArray[np.uint8], row: int) -> int:
    """Return how many lines are before a row of a chunk; rows count from 1."""
    lines = chunk.tobytes().split(b"\n")
    comments = tuple(mark.encode() for mark in _COMMENTS)
    rows = (n for n, line in enumerate(lines) if line.strip() and not line.startswith(comments))
    return next(islice(rows, row - 1, None), 0)


def _pass_over_comments(row: Any) -> str:
    return "skip" if row.text.startswith(_COMMENTS) else "error"


def _distinct(names: list[str]) -> list[str]:
    """Give columns of one name different ones; the first keeps its own."""
    return [
        name if name not in names[:place] else f"{name}, column {place + 1}"
        for place, name in enumerate(names)
    ]
