"""GAP's serialized graph, ``.sg``: a flag, two counts, then offsets and neighbours, little-endian.

    bool directed, int64 num_edges, int64 num_vertices
    int64 offsets[num_vertices + 1], int32 neighbours[num_edges]
    and both once more, for incoming edges, if the graph is directed

Nothing marks such a file, so that it is recognised by its counts, which must fit its size.
"""

from __future__ import annotations

import struct
from collections.abc import Generator
from typing import NamedTuple

import numpy as np

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.csr import read_rows
from oocbfs.formats.readers.detect import Sample

_HEADER = struct.Struct("<Bqq")
_OFFSET, _NEIGHBOUR = np.dtype("<i8"), np.dtype("<i4")


class _Header(NamedTuple):
    directed: bool
    num_edges: int
    num_vertices: int

    @classmethod
    def of(cls, head: bytes) -> _Header | None:
        """Read the first bytes; None if a graph cannot begin with them."""
        if len(head) < _HEADER.size:
            return None
        directed, num_edges, num_vertices = _HEADER.unpack_from(head)
        if directed > 1 or num_edges < 0 or not 0 <= num_vertices < 2**31:
            return None
        return cls(bool(directed), num_edges, num_vertices)

    @property
    def file_bytes(self) -> int:
        offsets = _OFFSET.itemsize * (self.num_vertices + 1)
        sides = 2 if self.directed else 1
        return _HEADER.size + sides * (offsets + _NEIGHBOUR.itemsize * self.num_edges)


def looks_like(sample: Sample) -> bool:
    """Recognise a serialized graph by counts and offsets that fit its size."""
    head = sample.head
    header = _Header.of(head)
    if header is None or len(head) < _HEADER.size + 8:
        return False
    # What is longer already is none, also if it never ends.
    if len(head) > header.file_bytes or sample.size not in (None, header.file_bytes):
        return False
    count = min(header.num_vertices + 1, (len(head) - _HEADER.size) // 8)
    offsets = np.frombuffer(head, _OFFSET, count, _HEADER.size)
    rising = bool((np.diff(offsets) >= 0).all())
    return int(offsets[0]) == 0 and rising and int(offsets[-1]) <= header.num_edges


def read(source: Source, declared: Declared, threads: int) -> Generator[Edges]:
    """Read a serialized graph; its incoming edges repeat the outgoing ones and are passed over."""
    head = source.peek(_HEADER.size)
    if len(head) < _HEADER.size:
        raise InputError("ends early: no header of a serialized graph", path=source.name)
    header = _Header.of(head)
    if header is None:
        raise InputError("not a serialized graph of GAP (.sg)", path=source.name)
    # One byte more tells that there are too many.
    source.make_regular(header.file_bytes + 1)
    directed, num_edges, num_vertices = header
    with source.open() as offsets, source.open() as stream:
        offsets.skip(_HEADER.size)
        declared.directed, declared.directed_why = directed, "the file's header says so"
        declared.first_id, declared.num_vertices = 0, num_vertices
        stream.skip(_HEADER.size + _OFFSET.itemsize * (num_vertices + 1))
        yield from read_rows(
            source.name, (offsets, _OFFSET), (stream, _NEIGHBOUR), num_vertices, num_edges
        )
        if directed:
            stream.skip(_OFFSET.itemsize * (num_vertices + 1) + _NEIGHBOUR.itemsize * num_edges)
        stream.expect_end()
