"""Edges of a compressed sparse row graph, read in pieces from its offsets and its neighbours."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import InputError
from oocbfs.formats.edges import Edges, Ids
from oocbfs.formats.io.streams import Stream
from oocbfs.formats.readers.chunks import BATCH_EDGES

_OFFSETS_PIECE = 1 << 16


def to_ids(values: NDArray[Any], name: str) -> Ids:
    """Convert whole numbers to ids; none may be negative."""
    if values.dtype.kind == "i" and values.size and values.min() < 0:
        raise InputError(f"negative vertex id {values.min()}", path=name)
    return values.astype(np.uint64)


def read_rows(
    name: str,
    offsets: tuple[Stream, np.dtype[Any]],
    neighbours: tuple[Stream, np.dtype[Any]],
    num_vertices: int,
    num_entries: int,
) -> Generator[Edges]:
    """Read the rows; both streams stand at their first item, and at their end afterwards."""
    stream, kind = offsets
    last = stream.read_items(kind, 1).astype(np.int64)
    if int(last[0]) != 0:
        raise InputError(f"the first offset is {int(last[0])}, not 0", path=name)
    for row in range(0, num_vertices, _OFFSETS_PIECE):
        count = min(_OFFSETS_PIECE, num_vertices - row)
        piece = np.concatenate([last[-1:], stream.read_items(kind, count).astype(np.int64)])
        if (np.diff(piece) < 0).any() or int(piece[-1]) > num_entries:
            raise InputError("offsets that decrease or point past the end", path=name)
        rows = np.arange(row, row + count, dtype=np.uint64)
        for start in range(int(piece[0]), int(piece[-1]), BATCH_EDGES):
            end = min(start + BATCH_EDGES, int(piece[-1]))
            targets = to_ids(neighbours[0].read_items(neighbours[1], end - start), name)
            if int(targets.max()) >= num_vertices:
                raise InputError(
                    f"neighbour {int(targets.max())} of {num_vertices} vertices", path=name
                )
            # How much of each row falls into this batch.
            degrees = np.diff(np.clip(piece, start, end))
            yield Edges(np.repeat(rows, degrees), targets)
        last = piece
    if int(last[-1]) != num_entries:
        raise InputError(
            f"the last offset is {int(last[-1])} where there are {num_entries} neighbours",
            path=name,
        )
