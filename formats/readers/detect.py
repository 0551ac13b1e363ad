"""Which format bytes are in, told by the bytes; a name decides only where they leave a choice."""

from __future__ import annotations

import re

from oocbfs.errors import InputError
from oocbfs.formats.io.decompress import codec_of
from oocbfs.formats.io.streams import ZIP_MAGIC, plain_name
from oocbfs.formats.readers import gap
from oocbfs.formats.readers.metis import Header

# So much is looked at, and more where it is nothing but comments.
SAMPLE_BYTES = 1 << 16
MOST_SAMPLE_BYTES = 1 << 24
_COMMENTS = (b"#", b"%", b"//", b"c ")
_BOM = b"\xef\xbb\xbf"
_PROBLEM = re.compile(rb"p\s+\S+\s+\d+\s+\d+")
_COLON = re.compile(rb"\s*\d+[ \t]*:(\s|\d|$)")
_COMMAS = re.compile(rb"\d+\t(\d+(,\d+)*,?)?\s*")
_COMMAS_BEGUN = re.compile(rb"\d+(\t(\d+(,\d+)*,?)?)?")


def comment_bytes(head: bytes) -> int:
    """Give how many of the first bytes are blank lines and comments."""
    end = len(_BOM) if head.startswith(_BOM) else 0
    while (stop := head.find(b"\n", end)) >= 0:
        line = head[end:stop]
        if line.strip() and not line.startswith(_COMMENTS):
            break
        end = stop + 1
    return end


def only_comments(head: bytes) -> bool:
    """Tell whether a text has not come to its first line of data."""
    end = comment_bytes(head)
    return end > 0 and head.rfind(b"\n") == end - 1


def shorten(head: bytes) -> tuple[bytes, bool]:
    """Leave out most of the comments that a text begins with; also tells whether data was left out."""
    end = comment_bytes(head)
    kept = head.rfind(b"\n", 0, min(end, SAMPLE_BYTES)) + 1
    return head[:kept] + head[end : end + SAMPLE_BYTES], end + SAMPLE_BYTES < len(head)


def detect(head: bytes, *, whole: bool, name: str, size: int | None, shown: str) -> str:
    """Name the format of bytes.

    Parameters
    ----------
    head
        The first bytes of the decompressed input.
    whole
        Whether this is all of it.
    name
        The name of the file, for its suffix.
    size
        The size of the decompressed input, if that is known.
    shown
        What errors call the input.
    """
    if codec_of(head) is not None or head.startswith(ZIP_MAGIC):
        raise InputError("compressed twice: decompress it once before", path=shown)
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    size = len(head) if whole else size
    if gap.looks_like(head, size):
        return "sg"
    name = plain_name(name)
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise InputError("UTF-16 text: convert it to UTF-8 before", path=shown)
    if b"\0" in head:
        hint = "a damaged or weighted .sg file?" if name.endswith("sg") else "NUL bytes in it"
        raise InputError(f"not text ({hint}); for raw pairs give --format u32 or u64", path=shown)
    if head.removeprefix(_BOM)[:14].lower() == b"%%matrixmarket" or name.endswith(".mtx"):
        return "mtx"
    lines = head.removeprefix(_BOM).split(b"\n")
    rest = lines.pop()
    if whole and rest:
        lines.append(rest)
        rest = b""
    return _detect_text([line.strip(b"\r") for line in lines], rest, whole=whole, name=name)


def _detect_text(lines: list[bytes], rest: bytes, *, whole: bool, name: str) -> str:
    """Tell the text formats apart; ``rest`` is a line of which the end is not known."""
    problem = next((line for line in lines if line.strip() and line.split()[0] != b"c"), b"")
    if _PROBLEM.match(problem):
        return "dimacs"
    data = [line for line in lines if line.strip() and not line.startswith((b"#", b"%", b"//"))]
    first = data[0] if data else rest
    if _COLON.match(first):
        return "adjacency"
    commas = any(b"," in line for line in (*data, rest))
    if commas and all(map(_COMMAS.fullmatch, data)) and (not rest or _COMMAS_BEGUN.fullmatch(rest)):
        return "adjacency"
    if _is_metis(lines, rest, whole=whole, named=name.endswith((".graph", ".metis"))):
        return "metis"
    return "edges"


def _is_metis(lines: list[bytes], rest: bytes, *, whole: bool, named: bool) -> bool:
    """Tell a METIS graph by its header and by lines that differ in length, as degrees do."""
    rows = [line.split() for line in lines if not line.startswith(b"%")]
    while rows and not rows[0]:
        rows.pop(0)
    header = Header.parse(b" ".join(rows[0])) if rows else None
    if header is None or named:
        return header is not None
    rows = rows[1:]
    while rows and not rows[-1]:
        rows.pop()
    widths = {len(row) for row in rows}
    if len(rest.split()) > max(widths, default=2):
        widths.add(len(rest.split()))
        rows.append(rest.split()[:-1])
    if len(widths) + (not whole and not lines[1:]) < 2 or len(rows) > header.num_vertices:
        return False
    skipped = 0 if header.sizes else header.skipped
    ids = [id_ for row in rows for id_ in row[skipped :: 1 + header.weighted]]
    fit = all(word.isdigit() and 1 <= int(word) <= header.num_vertices for word in ids)
    if not whole or not fit:
        return fit
    # Loops and the sizes of vertices may make a few more of them.
    return header.num_edges <= len(ids) <= 2 * header.num_edges + header.num_vertices
