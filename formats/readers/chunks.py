"""Text in chunks of whole lines: read ahead by one thread, parsed by others, given out in order.

Memory is a few chunks for an input of any size. Only a line that is longer than a chunk makes its
chunk grow, up to the limit of the source; such a chunk is parsed alone.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

import numpy as np

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges, Ids
from oocbfs.formats.io.limits import LINE_LIMIT_BYTES
from oocbfs.formats.io.ordered import ordered_map, read_ahead
from oocbfs.formats.io.streams import Source, Stream
from oocbfs.formats.readers.detect import BOM, comments_end
from oocbfs.formats.tables.columns import NAMES_HINT
from oocbfs.formats.tables.delimited import Layout, split
from oocbfs.kernels.convert import parse as kernels
from oocbfs.kernels.convert.parse import Text
from oocbfs.kernels.convert.parse_columns import pack_columns, parse_columns

CHUNK_BYTES = 1 << 20
BATCH_EDGES = 1 << 18
MAX_ID = 2**64 - 1
_SHOWN_BYTES = 40
_NOT_BLANK = re.compile(rb"\S[^\n]*")
# As SNAP, KONECT and ``oocbfs export`` write it.
_DIRECTION = re.compile(
    rb"[#%/\s]+(?:((?:un)?directed) (?:node )?graph\b"
    rb"|(a?sym) (?:unweighted|positive|posweighted|signed|weighted|dynamic|multi\w*)\b"
    rb"|nodes: \d+ edges: \d+ \(((?:un)?directed)\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Grammar:
    """How the lines of a format are parsed; the kernels explain the fields.

    With a ``layout``, two columns of a table are the ids.
    """

    flags: int
    rows: bool = False
    layout: Layout | None = None
    columns: int = 2
    low: int = 0
    high: int = MAX_ID
    may_be_names: bool = False


@dataclass(frozen=True)
class Parsed:
    """The edges of one chunk, the number of its rows, and the last of them that is not blank."""

    sources: Ids
    targets: Ids
    rows: int
    last_row: int

    def batches(self) -> Iterator[Edges]:
        """Cut the edges into batches of bounded size."""
        return batches(self.sources, self.targets)


def batches(sources: Ids, targets: Ids) -> Iterator[Edges]:
    """Cut arrays of edges into batches of bounded size."""
    for start in range(0, sources.size, BATCH_EDGES):
        part = slice(start, start + BATCH_EDGES)
        yield Edges(sources[part], targets[part])


class Lines:
    """The lines of a text: the first ones one by one, the rest in chunks."""

    def __init__(self, source: Source, stream: Stream) -> None:
        self.name = source.name
        self.number = 1
        self.counted = False  # a comment has said how many vertices and edges there are
        self.directed: bool | None = None  # a comment has said so, and which one
        self.directed_why = ""
        self.comment = b""  # the last one, which may have the names of the columns
        self._max_bytes = source.limits.line_bytes
        self._too_long = False  # the line after the last chunk
        self._chunks = self._cut(stream)
        self._chunk = bytearray()
        self._offset = 0

    def first(self) -> bytes | None:
        """Return the next line without its end, or None after the last."""
        if self._offset >= len(self._chunk):
            self._chunk, self._offset = next(self._chunks, bytearray()), 0
            if not self._chunk:
                self.finish()
                return None
        end = self._chunk.index(b"\n", self._offset)
        return bytes(self._chunk[self._offset : end]).rstrip(b"\r")

    def second(self) -> bytes:
        """Return the line after the one that first() gave, if it was read with it."""
        begin = self._chunk.find(b"\n", self._offset) + 1
        return bytes(self._chunk[begin : max(begin, self._chunk.find(b"\n", begin))]).rstrip(b"\r")

    def drop(self) -> None:
        """Pass over the line that first() gave."""
        self._offset = self._chunk.index(b"\n", self._offset) + 1
        self.number += 1

    def read_comments(self, declared: Declared, *marks: bytes) -> bytes | None:
        """Pass over comments as skip_comments does, and declare the direction that they tell."""
        line = self.skip_comments(*marks)
        declared.directed, declared.directed_why = self.directed, self.directed_why
        return line

    def skip_comments(self, *marks: bytes) -> bytes | None:
        """Pass over blank lines and comments and give the line after them."""
        while (line := self.first()) is not None:
            end = comments_end(self._chunk, self._offset, marks)
            if end == self._offset:
                break
            text = bytes(self._chunk[self._offset : end])
            passed = 0
            for comment in _NOT_BLANK.finditer(text):
                self.number += text.count(b"\n", passed, comment.start())
                passed = comment.start()
                self._heed(comment[0].rstrip())
            self.number += text.count(b"\n", passed)
            self._offset = end
        return line

    def error(self, message: str, line: bytes | None = None) -> InputError:
        """Make an error about the line that first() gave."""
        text = None if line is None else line.decode("utf-8", "replace")
        return InputError(message, path=self.name, line=self.number, text=text)

    def chunks(self) -> Iterator[Text]:
        """Yield all that is left; the caller counts the lines, and calls finish() at the end."""
        if self._offset < len(self._chunk):
            yield np.frombuffer(self._chunk, np.uint8)[self._offset :]
        self._chunk = bytearray()
        for chunk in self._chunks:
            yield np.frombuffer(chunk, np.uint8)

    def _heed(self, comment: bytes) -> None:
        """Keep what a comment says about the graph."""
        if b"\r" in comment or b"\0" in comment:
            raise self.error(_NOT_TEXT, comment)
        self.comment = comment
        self.counted |= b"Nodes:" in comment and b"Edges:" in comment
        said = _DIRECTION.match(comment)
        if said is not None and self.directed is None:
            self.directed = said[said.lastindex or 0].lower() in (b"directed", b"asym")
            shown = comment[:_SHOWN_BYTES].decode("utf-8", "replace")
            more = "…" if len(comment) > _SHOWN_BYTES else ""
            self.directed_why = f"line {self.number} says {shown!r}{more}"

    def finish(self) -> None:
        """Refuse a line that is too long, after all others."""
        if not self._too_long:
            return
        most = f"a line is longer than {self._max_bytes / (1 << 20):.1f} MB"
        if self._max_bytes < LINE_LIMIT_BYTES:
            raise self.error(f"{most}, the limit: allow more --memory")
        raise self.error(f"{most}: not a text of edges")

    def _cut(self, stream: Stream) -> Iterator[bytearray]:
        """Cut a stream into chunks that end in a newline; the last gets one if it has none."""
        carry = bytearray()
        fresh = True
        while True:
            chunk, filled = carry, len(carry)
            chunk.extend(bytes(CHUNK_BYTES))
            with memoryview(chunk) as view:
                while filled < len(chunk) and (count := stream.readinto(view[filled:])):
                    filled += count
            ended = filled < len(chunk)
            if fresh and filled >= len(BOM):
                fresh = False
                if chunk.startswith(BOM):
                    del chunk[: len(BOM)]
                    filled -= len(BOM)
            del chunk[filled:]
            if ended:
                if chunk:
                    yield chunk if chunk.endswith(b"\n") else chunk + b"\n"
                return
            # What was carried over has no newline.
            end = chunk.rfind(b"\n", max(0, filled - CHUNK_BYTES)) + 1
            carry = chunk[end:] if end else chunk
            if end:
                del chunk[end:]
                yield chunk
            if len(carry) > self._max_bytes:
                self._too_long = True
                return


@contextmanager
def open_lines(source: Source) -> Generator[Lines]:
    """Open a source that is a text."""
    with source.open() as stream:
        yield Lines(source, stream)


def whole_numbers(words: list[bytes]) -> list[int] | None:
    """Read counts, or give None if one of them is not a whole number below 10^18."""
    if not all(word.isdigit() and len(word) <= 18 for word in words):
        return None
    return [int(word) for word in words]


Check = Callable[[Ids, Ids], int]
Result = TypeVar("Result")


def parse(
    lines: Lines, grammar: Grammar, threads: int, check: tuple[Check, str] | None = None
) -> Generator[Parsed]:
    """Parse all that is left of the lines.

    ``check`` is a function that gives the index of the first wrong edge, or -1, and its message.
    """

    def work(chunk: Text) -> _Work:
        done = _parse_chunk(chunk, grammar)
        if check is not None and (index := check[0](done.sources, done.targets)) >= 0:
            return _parse_chunk(chunk, grammar, index)
        return done

    with closing(parsed_chunks(lines, work, threads)) as parsed:
        for part in parsed:
            if part.code != kernels.DONE:
                lines.number += int(part.result[kernels.LINES])
                where = int(part.result[kernels.WHERE])
                line = part.chunk[where:].tobytes().split(b"\n", 1)[0].rstrip(b"\r")
                full = part.code == kernels.FULL and check is not None
                raise lines.error(check[1] if full and check else _explain(line, grammar), line)
            rows, last = int(part.result[kernels.ROWS]), int(part.result[kernels.LAST_ROW])
            yield Parsed(part.sources, part.targets, rows, last)
            lines.number += int(part.result[kernels.LINES])
    lines.finish()


def parsed_chunks(lines: Lines, work: Callable[[Text], Result], threads: int) -> Generator[Result]:
    """Work on the chunks that are left, by several threads; large ones are worked on alone."""
    with closing(read_ahead(lines.chunks())) as chunks:
        for alone, group in groupby(chunks, lambda chunk: chunk.size > 2 * CHUNK_BYTES):
            if alone:
                yield from map(work, group)
            else:
                with closing(ordered_map(work, group, threads)) as done:
                    yield from done


@dataclass(frozen=True)
class _Work:
    chunk: Text
    sources: Ids
    targets: Ids
    result: kernels.Result
    code: int


def _parse_chunk(chunk: Text, grammar: Grammar, capacity: int | None = None) -> _Work:
    if capacity is None:
        # The shortest lines are "1 2\n" and, where one number is enough, "1\n".
        short = grammar.rows or grammar.flags & kernels.SINGLE
        capacity = chunk.size // (2 if short else 4) + 1
    alone = chunk.size > 2 * CHUNK_BYTES
    sources, targets = np.empty((2, capacity), np.uint64) if alone else _scratch.arrays(capacity)
    result = np.zeros(kernels.RESULT_SIZE, np.int64)
    kernel = kernels.parse_rows if grammar.rows else kernels.parse_pairs
    columns = grammar.columns
    if (layout := grammar.layout) is not None:
        kernel = parse_columns
        columns = pack_columns(layout.pair.source, layout.pair.target, layout.delimiter)
    low, high = np.uint64(grammar.low), np.uint64(grammar.high)
    code = kernel(sources, targets, result, chunk, grammar.flags, columns, low, high)
    sources, targets = (ids[: int(result[kernels.COUNT])] for ids in (sources, targets))
    if not alone:
        sources, targets = sources.copy(), targets.copy()
    return _Work(chunk, sources, targets, result, int(code))


class _Scratch(threading.local):
    """Arrays for the edges of a chunk, kept by each thread: new pages cost as much as parsing."""

    def __init__(self) -> None:
        self._arrays = np.empty((2, 0), np.uint64)

    def arrays(self, size: int) -> tuple[Ids, Ids]:
        if self._arrays.shape[1] < size:
            self._arrays = np.empty((2, size), np.uint64)
        return self._arrays[0, :size], self._arrays[1, :size]


_scratch = _Scratch()


_NOT_TEXT = "NUL or lone carriage return: need UTF-8 or ASCII text with LF or CRLF line ends"


def _explain(line: bytes, grammar: Grammar) -> str:
    """Return what is wrong with a line that a kernel refused."""
    if b"\0" in line or b"\r" in line:
        return _NOT_TEXT
    if (layout := grammar.layout) is not None:
        if line.count(b'"') % 2:
            return "a quoted field does not end on its line, and rows of several lines are not read"
        if len(split(line, layout.delimiter)) <= max(layout.pair.source, layout.pair.target):
            return "too few columns"
    for field in id_fields(line, grammar):
        shown = field[:40].decode("utf-8", "replace")
        if re.fullmatch(rb"-\d+", field):
            return f"negative vertex id {shown}"
        if re.fullmatch(rb"\d+", field):
            if int(field[:40]) > MAX_ID:
                return f"vertex id {shown} is above 2^64 - 1"
            if not grammar.low <= int(field) <= grammar.high:
                return f"vertex id {shown} is outside of {grammar.low} … {grammar.high}"
        elif field:
            hint = NAMES_HINT if grammar.may_be_names else ""
            return f"vertex id {shown!r} is not a whole decimal number{hint}"
    return "too few columns" if grammar.layout is None else "no vertex id in one of the columns"


def id_fields(line: bytes, grammar: Grammar) -> list[bytes]:
    """Return the fields of a line that should be ids."""
    if (layout := grammar.layout) is not None:
        columns = split(line, layout.delimiter)
        return [columns[layout.pair.source], columns[layout.pair.target]]
    fields = [field.strip(b'"') for field in re.split(rb"[ \t]*[,:][ \t]*|[ \t]+", line.strip())]
    if grammar.flags & kernels.DIMACS and fields[0] in (b"a", b"e"):
        fields = fields[1:]
    if not grammar.rows:
        return fields[: 1 if grammar.flags & kernels.SINGLE else 2]
    return fields[grammar.columns >> 1 :: 1 + (grammar.columns & 1)]
