"""Files with a number for each vertex: .npy in the order of the ids, .csv and .tsv with ids."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import OutputError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import ordered_map
from oocbfs.formats.output.atomic import atomic_output

_SEPARATORS = {".csv": ",", ".tsv": "\t"}
_ROWS_PER_PIECE = 1 << 16


def check_name(path: str | os.PathLike[str]) -> None:
    """Refuse a name whose suffix is not known, before any work is done."""
    if Path(path).suffix not in (".npy", *_SEPARATORS):
        raise OutputError(f"{path}: name it .npy, .csv or .tsv, which says how to write it")


def write_vector(
    path: str | os.PathLike[str],
    name: str,
    ids_at: Callable[[int, int], Ids],
    values: NDArray[Any],
    *,
    threads: int = 1,
    force: bool = False,
) -> None:
    """Write values, and in text the ids they belong to; the file appears when it is complete.

    ``ids_at(first, stop)`` gives the ids of the values first … stop-1, as all may be too many.
    """
    check_name(path)
    with atomic_output(path, force=force) as file:
        if Path(path).suffix == ".npy":
            np.lib.format.write_array(file, values, allow_pickle=False)
            return
        from oocbfs.kernels.results.format_text import format_pairs, format_values

        separator = _SEPARATORS[Path(path).suffix]
        file.write(f"id{separator}{name}\n".encode())

        def text(first: int) -> NDArray[np.uint8]:
            part = values[first : first + _ROWS_PER_PIECE]
            ids = ids_at(first, first + part.size)
            if part.dtype == np.uint64:  # ids, which may not fit a signed number
                return format_pairs(ids, part, separator)
            return format_values(ids, part.astype(np.int64), separator)

        for block in ordered_map(text, range(0, values.size, _ROWS_PER_PIECE), threads):
            file.write(memoryview(block))
