"""The tables of a batch: a row for each source or for each pair, in the form that is asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

import numpy as np

from oocbfs.formats.names import quoted
from oocbfs.formats.output.packing import STANDARD_OUTPUT, opened, packed
from oocbfs.formats.output.parquet import parquet_rows
from oocbfs.results.source import column_types

_SEPARATORS = {"csv": ",", "tsv": "\t"}
# Rows that are written at a time.
_BLOCK = 1 << 12
Row = Mapping[str, Any]


def pair_types(largest_id: int | str) -> dict[str, Any]:
    """Return the columns of a table of pairs."""
    id_type = column_types(largest_id)["source"]
    return {"source": id_type, "target": id_type, "distance": np.int32}


def write_table(
    path: str | os.PathLike[str],
    form: str,
    types: Mapping[str, Any],
    rows: Iterable[Row],
    about: Mapping[str, str],
) -> None:
    """Write rows as ``form`` says: csv, tsv or jsonl, maybe with .gz or .zst, or parquet.

    A file appears when it is complete; ``-`` is standard output, and shows each row at once
    unless it is compressed.
    """
    kind, _, compression = form.partition(".")
    at_once = os.fspath(path) == STANDARD_OUTPUT and not compression
    blocks = _blocks(iter(rows), 1 if at_once else _BLOCK)
    with opened(path, force=True, streams=False) as file:
        if kind == "parquet":
            with parquet_rows(file, types, about) as table:
                for block in blocks:
                    table.write([[row[name] for row in block] for name in types])
            return
        # By one thread, so that the same rows make the same bytes.
        with packed(file, compression or None, 1) as (pack, write):
            line: Callable[[Row], str] = _json_line
            if kind != "jsonl":
                separator = _SEPARATORS[kind]
                write(pack((separator.join(types) + "\n").encode()))

                def line(row: Row) -> str:
                    return separator.join(_field(row[name], separator) for name in types) + "\n"

            for block in blocks:
                write(pack("".join(map(line, block)).encode()))


def _blocks(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    while block := list(islice(rows, size)):
        yield block


def _json_line(row: Row) -> str:
    return json.dumps(row) + "\n"


def _field(value: object, separator: str) -> str:
    """Write a list, such as level sizes, as one field, separated by spaces; names as CSV does."""
    if isinstance(value, str):
        return quoted(value, separator)
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
