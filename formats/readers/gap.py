"""GAP's serialized graph, ``.sg``: a flag, two counts, then offsets and neighbours, little-endian.

    bool directed, int64 num_edges, int64 num_vertices
    int64 offsets[num_vertices + 1], int32 neighbours[num_edges]
    and both once more, for incoming edges, if the graph is directed

Nothing marks such a file, so that it is recognised by its counts, which must fit its size.
"""

from __future__ import annotations

import struct
from collections.abc import Generator

import numpy as np

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.csr import read_rows
from oocbfs.formats.readers.detect import Sample

_HEADER = struct.Struct("<Bqq")
_OFFSET, _NEIGHBOUR = np.dtype("<i8"), np.dtype("<i4")


def looks_like(sample: Sample) -> bool:
    """Tell a serialized graph by counts and offsets that fit its size."""
    head = sample.head
    if len(head) < _HEADER.size + 8:
        return False
    directed, num_edges, num_vertices = _HEADER.unpack_from(head)
    if directed > 1 or num_edges < 0 or not 0 <= num_vertices < 2**31:
        return False
    sides = 1 + directed
    expected = _HEADER.size + sides * (8 * (num_vertices + 1) + 4 * num_edges)
    if sample.size is not None and sample.size != expected:
        return False
    count = min(num_vertices + 1, (len(head) - _HEADER.size) // 8)
    offsets = np.frombuffer(head, _OFFSET, count, _HEADER.size)
    rising = bool((np.diff(offsets) >= 0).all())
    return int(offsets[0]) == 0 and rising and int(offsets[-1]) <= num_edges


def read(source: Source, declared: Declared, threads: int) -> Generator[Edges]:
    """Read a serialized graph; its incoming edges repeat the outgoing ones and are passed over."""
    source.make_regular()
    with source.open() as offsets, source.open() as stream:
        head = offsets.read(_HEADER.size)
        if len(head) < _HEADER.size:
            raise InputError("ends early: no header of a serialized graph", path=source.name)
        directed, num_edges, num_vertices = _HEADER.unpack(head)
        if directed > 1 or num_edges < 0 or not 0 <= num_vertices < 2**31:
            raise InputError("not a serialized graph of GAP (.sg)", path=source.name)
        declared.directed, declared.directed_why = bool(directed), "the file's header says so"
        declared.first_id, declared.num_vertices = 0, num_vertices
        stream.skip(_HEADER.size + _OFFSET.itemsize * (num_vertices + 1))
        yield from read_rows(
            source.name, (offsets, _OFFSET), (stream, _NEIGHBOUR), num_vertices, num_edges
        )
        if directed:
            stream.skip(_OFFSET.itemsize * (num_vertices + 1) + _NEIGHBOUR.itemsize * num_edges)
        stream.expect_end()
