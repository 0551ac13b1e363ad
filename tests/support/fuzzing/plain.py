"""A second, slow reader of graph files, from FORMAT.md alone, and what it takes a graph for.

It shares no code with oocbfs, so that whatever both take a damaged file for is what the file says.
"""

from __future__ import annotations

import itertools
import struct
from collections import deque
from functools import cached_property
from typing import Any

import zstandard

NO_HEAD = 2**32 - 1
IDS, ORDER, DEGREES, HEADS, BASES, STARTS, TAILS, NAMES, NAME_STARTS = range(1, 10)
FRAMES = 12
TRANSPOSED = 16
_FORMATS = {IDS: "Q", ORDER: "I", DEGREES: "I", HEADS: "I", BASES: "Q", STARTS: "I", TAILS: "B"}
_FORMATS |= {NAMES: "B", NAME_STARTS: "Q"}
_BLOCK_NAMES = 16
_FRAME_BYTES = 16384


class UndecodableError(Exception):
    """The file is no graph."""


def _unzip(frame: bytes) -> bytes:
    if zstandard.get_frame_parameters(frame).content_size > 2 * _FRAME_BYTES:
        raise struct.error("too large")
    return zstandard.ZstdDecompressor().decompress(frame, allow_extra_data=False)


def _unpack_numbers(varints: bytes, coding: int) -> bytes:
    """Return the numbers that a frame holds by value (1) or by difference (2)."""
    found, previous = b"", 0
    while varints:
        try:
            value, varints = _take_varint(varints)
        except UndecodableError:
            raise struct.error("a varint that does not end") from None
        if value >= 2**32:
            raise struct.error("a large number")
        if coding == 1:
            number = value - 1
        else:
            number = previous + (value // 2 if value % 2 == 0 else -(value // 2) - 1)
        previous = number % 2**32
        found += struct.pack("<I", previous)
    return found


class PlainGraph:
    """The graph in a file, by natural position; whatever is missing or broken is None."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        (self.num_vertices, self.num_edges, first_id) = struct.unpack_from("<QQQ", data, 24)
        (flags, order, self._shift, num_sections) = struct.unpack_from("<IIII", data, 48)
        (self.max_degree,) = struct.unpack_from("<Q", data, 64)
        self.directed = bool(flags & 1)
        self._sections: dict[int, tuple[int, int, int]] = {}
        self._frames: dict[int, tuple[int, int, int]] = {}
        for place in range(256, min(256 + 64 * num_sections, 4096 - 63), 64):
            kind, encoding, offset, stored = struct.unpack_from("<IIQQ", data, place)
            (size, first_frame, coding) = struct.unpack_from("<Q16xQI", data, place + 24)
            self._sections[kind] = (encoding, offset, stored)
            self._frames[kind] = (size, first_frame, coding)
        n = self.num_vertices
        self.is_small = n < 10**6
        self.order = self._numbers(ORDER) if order else list(range(n if self.is_small else 0))
        self.is_named = NAMES in self._sections
        self.ids: list[Any] | None = None
        if self.is_named:
            self.ids = self._decode_names()
        elif IDS in self._sections:
            self.ids = self._numbers(IDS)
        elif self.is_small:
            self.ids = list(range(first_id, first_id + n))
        # What arrays of results hold: positions where vertices have names.
        self.values = list(range(n if self.is_small else 0)) if self.is_named else self.ids

    def contents(self, kind: int) -> bytes:
        """Return what a section holds; raises what a damaged one brings about."""
        encoding, offset, stored = self._sections[kind]
        num_bytes = self._data[offset : offset + stored]
        if encoding == 1:
            with zstandard.ZstdDecompressor().stream_reader(
                num_bytes, read_across_frames=True
            ) as frames:
                num_bytes = frames.read(1 << 26)
        if encoding == 2:
            num_bytes = self._unpack(kind, num_bytes)
        return num_bytes

    def _unpack(self, kind: int, stored: bytes) -> bytes:
        """Unpack the frames of a section one after the other."""
        size, first, coding = self._frames[kind]
        lengths = [length for (length,) in struct.iter_unpack("<H", self.contents(FRAMES))]
        if size > 1 << 26 or coding > 2:
            raise struct.error("more than these files hold")
        contents, place = b"", 0
        for begin in range(0, size, _FRAME_BYTES):
            room = min(_FRAME_BYTES, size - begin)
            if first + begin // _FRAME_BYTES >= len(lengths):
                raise struct.error("no such frame")
            length = lengths[first + begin // _FRAME_BYTES] or room
            frame = stored[place : place + length]
            place += length
            if length >= room:
                contents += frame
                continue
            found = _unzip(frame)
            contents += found if coding == 0 else _unpack_numbers(found, coding)
            if len(contents) != begin + room:
                raise struct.error("a frame of another size")
        return contents

    def _numbers(self, kind: int) -> list[int] | None:
        try:
            num_bytes = self.contents(kind)
            number = struct.Struct("<" + _FORMATS[kind % TRANSPOSED])
            return [value for (value,) in number.iter_unpack(num_bytes)]
        except (KeyError, zstandard.ZstdError, struct.error):
            return None

    @property
    def has_names(self) -> bool:
        """Whether the order is a permutation and ids ascend."""
        everybody = list(range(self.num_vertices if self.is_small else 0))
        return (
            self.order is not None
            and self.ids is not None
            and len(self.ids) == len(everybody)
            and sorted(self.order) == everybody
            and all(a < b for a, b in zip(self.ids, self.ids[1:], strict=False))
        )

    def _decode_names(self) -> list[str] | None:
        """Decode all blocks of names; None if one of them is none."""
        starts = self._numbers(NAME_STARTS) or []
        num_blocks = -(-self.num_vertices // _BLOCK_NAMES)
        if not self.is_small or len(starts) != num_blocks + 1 or starts[0] != 0:
            return None
        try:
            names = self.contents(NAMES)
            found: list[str] = []
            for begin, end in itertools.pairwise(starts):
                block, name = names[begin:end], b""
                if begin > end or end > len(names):
                    return None
                for place in range(min(_BLOCK_NAMES, self.num_vertices - len(found))):
                    shared, block = _take_varint(block) if place else (0, block)
                    more, block = _take_varint(block)
                    if shared > len(name) or more > len(block):
                        return None
                    name, block = name[:shared] + block[:more], block[more:]
                    if not 0 < len(name) < 2**16 or 0 in name:
                        return None
                    found.append(name.decode())
                if block:
                    return None
            return found if starts[-1] == len(names) else None
        except (KeyError, zstandard.ZstdError, struct.error, UnicodeDecodeError, UndecodableError):
            return None

    def degrees(self, side: int = 0) -> list[int] | None:
        """Degrees of stored vertices, as they are written down."""
        return self._numbers(DEGREES + side)

    def _decode(self, side: int) -> list[list[int]]:
        """Decode all rows of stored vertices: heads first, then tails."""
        parts = [self._numbers(kind + side) for kind in (HEADS, BASES, STARTS, TAILS)]
        if any(part is None for part in parts):
            raise UndecodableError
        heads, bases, starts, tails = (part or [] for part in parts)
        n = self.num_vertices
        try:
            places = [bases[u >> self._shift] + starts[u] for u in range(n + 1)]
        except IndexError:
            raise UndecodableError from None
        ascend = all(a <= b for a, b in itertools.pairwise(places))
        if len(heads) != n or places[0] != 0 or places[n] != len(tails) or not ascend:
            raise UndecodableError
        rows = []
        for u in range(n):
            row = [] if heads[u] == NO_HEAD else [heads[u]]
            if not row and places[u] != places[u + 1]:
                raise UndecodableError
            for first in range(places[u], places[u + 1], 1024):
                row += _decode_segment(tails[first : min(first + 1024, places[u + 1])])
            if row and max(row) >= n:
                raise UndecodableError
            rows.append(row)
        return rows

    @cached_property
    def stored_rows(self) -> tuple[list[list[int]], list[list[int]]] | None:
        """Out- and in-neighbours of stored vertices, with repetitions."""
        try:
            out = self._decode(0)
            return out, self._decode(TRANSPOSED) if self.directed else out
        except UndecodableError:
            return None

    @cached_property
    def neighbours(self) -> list[set[int]] | None:
        """Neighbours by natural position; None unless rows, transpose and names fit together."""
        if self.stored_rows is None or not self.has_names or self.order is None:
            return None
        out, back = self.stored_rows
        arcs = {(u, v) for u, row in enumerate(out) for v in row}
        if arcs != {(v, u) for u, row in enumerate(back) for v in row}:
            return None
        rows: list[set[int]] = [set() for _ in out]
        for u, v in arcs:
            rows[self.order[u]].add(self.order[v])
        return rows

    @property
    def is_well_formed(self) -> bool:
        """Whether all numbers agree, no edge is a loop, and none comes twice."""
        if self.neighbours is None or self.stored_rows is None:
            return False
        for side, rows in zip((0, TRANSPOSED), self.stored_rows, strict=True):
            degrees = self.degrees(side if self.directed else 0)
            if degrees != [len(set(row) - {u}) for u, row in enumerate(rows)]:
                return False
            if degrees != [len(row) for row in rows] or sum(degrees) != self.num_edges:
                return False
        return True

    def levels(self, sources: list[int]) -> list[int]:
        """Distances of all positions from the nearest source."""
        assert self.neighbours is not None
        levels = [-1] * self.num_vertices
        for source in sources:
            levels[source] = 0
        queue = deque(dict.fromkeys(sources))
        while queue:
            u = queue.popleft()
            for v in self.neighbours[u]:
                if levels[v] < 0:
                    levels[v] = levels[u] + 1
                    queue.append(v)
        return levels

    def components(self) -> list[int]:
        """Smallest position in the weakly connected component of each."""
        assert self.neighbours is not None
        both: list[set[int]] = [set(row) for row in self.neighbours]
        for u, row in enumerate(self.neighbours):
            for v in row:
                both[v].add(u)
        labels = [-1] * self.num_vertices
        for root in range(self.num_vertices):
            if labels[root] >= 0:
                continue
            labels[root] = root
            stack = [root]
            while stack:
                for v in both[stack.pop()]:
                    if labels[v] < 0:
                        labels[v] = root
                        stack.append(v)
        return labels


def _take_varint(num_bytes: bytes) -> tuple[int, bytes]:
    """Take a number off the front."""
    value = 0
    for place, octet in enumerate(num_bytes[:9]):
        value |= (octet & 127) << 7 * place
        if octet < 128:
            return value, num_bytes[place + 1 :]
    raise UndecodableError


def _decode_segment(num_bytes: list[int]) -> list[int]:
    """Decode varints that fill a segment: a number, then distances less 1."""
    found = []
    value = shift = 0
    previous = -1
    for octet in num_bytes:
        value |= (octet & 127) << shift
        shift += 7
        if shift > 63:
            raise UndecodableError
        if octet < 128:
            previous += value + 1
            found.append(previous)
            value = shift = 0
    if shift:
        raise UndecodableError
    return found
