"""Raw pairs: little-endian ids, source and target in turn, nothing else."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial

import numpy as np

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.chunks import BATCH_EDGES


def _read(source: Source, declared: Declared, threads: int, *, width: int) -> Generator[Edges]:
    """Read pairs of ids of ``width`` bytes each; they declare nothing."""
    kind = np.dtype(f"<u{width}")
    with source.open() as stream:
        while data := stream.read(2 * width * BATCH_EDGES):
            if len(data) % (2 * width):
                raise InputError(
                    f"the size is not a multiple of {2 * width} bytes, the size of a pair",
                    path=source.name,
                )
            pairs = np.frombuffer(data, kind).reshape(-1, 2).astype(np.uint64)
            yield Edges(pairs[:, 0].copy(), pairs[:, 1].copy())


read_u32 = partial(_read, width=4)
read_u64 = partial(_read, width=8)
