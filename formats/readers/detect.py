"""Which format bytes are in, told by the bytes; a name decides only where they leave a choice."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property

from oocbfs.errors import InputError
from oocbfs.formats.container import layout
from oocbfs.formats.io.decompress import codec_of
from oocbfs.formats.io.streams import ZIP_MAGIC, Source, plain_name
from oocbfs.formats.readers.table import FORMATS

BOM = b"\xef\xbb\xbf"
# So much is looked at, and more if it is nothing but comments.
_SAMPLE_BYTES = 1 << 16
_MAX_SAMPLE_BYTES = 1 << 24
# What others keep in files that are no text, and what to do with it.
_NO_EDGES = {
    layout.MAGIC: ("is a graph that is compressed as a whole", "decompress it before"),
    b"ORC": ("an ORC file", "write it as Parquet before"),
    b"Obj\x01": ("an Avro file", "write it as Parquet before"),
    b"\x89HDF\r\n": ("an HDF5 file", "write its edges as .npy or Parquet before"),
    b"SQLite format 3\0": ("an SQLite database", "write the table as CSV or Parquet before"),
}
_COMMENTS = (b"#", b"%", b"//", b"c ")


@dataclass(frozen=True)
class Sample:
    """The first bytes of an input, decompressed, and what is known of the rest.

    ``whole`` tells whether this is all of it; ``name`` is that of the file, in small letters and
    without the suffix of a compression; ``size`` is that of the decompressed input, if known;
    ``path`` is that of the file, to find others beside it.
    """

    head: bytes
    whole: bool
    name: str
    size: int | None
    path: str = ""

    @cached_property
    def text(self) -> bytes:
        """The bytes without a byte order mark."""
        return self.head.removeprefix(BOM)

    @cached_property
    def lines(self) -> list[bytes]:
        """All lines whose end is known."""
        lines = self.text.split(b"\n")
        if not self.whole or not lines[-1]:
            lines.pop()
        return [line.strip(b"\r") for line in lines]

    @cached_property
    def rest(self) -> bytes:
        """The beginning of a line whose end is not known."""
        return b"" if self.whole else self.text.rsplit(b"\n", 1)[-1]

    @cached_property
    def data(self) -> list[bytes]:
        """The lines that are neither blank nor comments."""
        comments = (b"#", b"%", b"//")
        return [line for line in self.lines if line.strip() and not line.startswith(comments)]


def detect(source: Source, *, table: bool = False) -> str:
    """Name the format of an input by its content; text that is a ``table`` is an edge list."""
    sample_bytes = _SAMPLE_BYTES
    head = source.peek(sample_bytes)
    while len(head) == sample_bytes < _MAX_SAMPLE_BYTES and _only_comments(head):
        sample_bytes *= 4
        head = source.peek(sample_bytes)
    whole, size = len(head) < sample_bytes, source.plain_size()
    if sample_bytes > _SAMPLE_BYTES:
        head, cut = _shorten(head)
        whole = whole and not cut
    size = len(head) if whole else size
    sample = Sample(head, whole, plain_name(source.path), size, source.path)
    return detect_sample(sample, source.name, table=table)


def detect_sample(sample: Sample, shown: str, *, table: bool = False) -> str:
    """Name the format of a sample; errors call the input ``shown``."""
    if codec_of(sample.head) is not None or sample.head.startswith(ZIP_MAGIC):
        raise InputError("compressed twice: decompress it once before", path=shown)
    for format in FORMATS:
        if not format.is_text and format.looks_like(sample):
            return format.name
    _refuse_binary(sample, shown)
    for format in FORMATS:
        if format.is_text and not table and format.looks_like(sample):
            return format.name
    return FORMATS[0].name


def _refuse_binary(sample: Sample, shown: str) -> None:
    for mark, (kind, advice) in _NO_EDGES.items():
        if sample.head.startswith(mark):
            raise InputError(f"{kind}: {advice}", path=shown)
    if sample.head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError("UTF-16 text: convert it to UTF-8 before", path=shown)
    if sample.name.endswith(".graph") and not sample.head.isascii():
        hint = "a graph of WebGraph needs its .properties beside it"
        raise InputError(f"not text ({hint})", path=shown)
    if b"\0" in sample.head:
        serialized = sample.name.endswith("sg")
        hint = "a damaged or weighted .sg file?" if serialized else "NUL bytes in it"
        raise InputError(f"not text ({hint}); for raw pairs give --format u32 or u64", path=shown)


def comments_end(text: bytes | bytearray, begin: int, marks: tuple[bytes, ...]) -> int:
    """Return where the blank lines and the comments end that follow ``begin``."""
    match = _comments(marks).match(text, begin)
    assert match is not None  # of any length
    # What is blank before the first line of data belongs to it.
    return max(begin, text.rfind(b"\n", begin, match.end()) + 1)


@cache
def _comments(marks: tuple[bytes, ...]) -> re.Pattern[bytes]:
    begin = b"|".join(map(re.escape, marks)) or rb"(?!)"
    return re.compile(rb"(?:\s++|(?:%b)[^\n]*+\n)*+" % begin)


def _comment_bytes(head: bytes) -> int:
    """Return how many of the first bytes are blank lines and comments."""
    return comments_end(head, len(BOM) if head.startswith(BOM) else 0, _COMMENTS)


def _only_comments(head: bytes) -> bool:
    """Return whether a text has not come to its first line of data."""
    end = _comment_bytes(head)
    return end > 0 and head.rfind(b"\n") == end - 1


def _shorten(head: bytes) -> tuple[bytes, bool]:
    """Drop most of the comments that a text begins with; also tells whether data was cut off."""
    end = _comment_bytes(head)
    kept = head.rfind(b"\n", 0, min(end, _SAMPLE_BYTES)) + 1
    return head[:kept] + head[end : end + _SAMPLE_BYTES], end + _SAMPLE_BYTES < len(head)
