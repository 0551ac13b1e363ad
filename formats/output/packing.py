"""What is written, but for its form: a file or standard output, plain or compressed text."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import PurePath
from typing import BinaryIO, cast

import zstandard

from oocbfs.errors import OutputError
from oocbfs.formats.output.atomic import atomic_output

Block = bytes | memoryview

STANDARD_OUTPUT = "-"
COMPRESSIONS = {"gz": "gz", "gzip": "gz", "zst": "zst", "zstd": "zst", "xz": "xz", "bz2": "bz2"}

# Members of these three may follow each other, so that blocks are compressed independently. The
# levels are fast ones: slow ones make random numbers hardly smaller.
_MEMBERS: dict[str, Callable[[Block], bytes]] = {
    "gz": lambda block: gzip.compress(block, compresslevel=3, mtime=0),
    "xz": lambda block: lzma.compress(block, preset=1),
    "bz2": lambda block: bz2.compress(block, compresslevel=5),
}


def endings(path: str | os.PathLike[str]) -> tuple[str, str | None]:
    """Return what a name ends in: its form in small letters, "" if it has none, and compression."""
    found = [suffix[1:].lower() for suffix in PurePath(path).suffixes]
    compression = COMPRESSIONS[found.pop()] if found and found[-1] in COMPRESSIONS else None
    return found[-1] if found else "", compression


@contextmanager
def opened(path: str | os.PathLike[str], *, force: bool, streams: bool) -> Generator[BinaryIO]:
    """Open standard output, or a file that appears when it is complete; see ``atomic_output``."""
    if os.fspath(path) != STANDARD_OUTPUT:
        with atomic_output(path, force=force, streams=streams) as file:
            yield file
        return
    try:
        yield cast(BinaryIO, _StandardOutput())
    except BrokenPipeError:
        raise  # the reader closed the pipe, which is not an error
    except OSError as error:
        reason = error.strerror or str(error)
        raise OutputError(f"standard output cannot be written: {reason}") from error


class _StandardOutput:
    """Standard output that takes whole blocks: without a buffer, a write may take only a part."""

    def write(self, block: Block) -> int:
        """Write until all is written, for whoever reads it meanwhile."""
        rest = memoryview(block)
        while rest.nbytes:
            rest = rest[sys.stdout.buffer.write(rest) :]
        sys.stdout.buffer.flush()
        return len(block)


@contextmanager
def packed(
    file: BinaryIO, compression: str | None, threads: int
) -> Generator[tuple[Callable[[Block], Block], Callable[[Block], object]]]:
    """Yield a function that compresses a block, for any thread, and one that writes in order."""
    if compression == "zst":
        # One frame, because some readers stop after the first; zstd has its own threads.
        packer = zstandard.ZstdCompressor(threads=threads if threads > 1 else 0).compressobj()
        yield lambda block: block, lambda block: file.write(packer.compress(block))
        file.write(packer.flush())
    elif compression is None:
        yield lambda block: block, file.write
    else:
        yield _MEMBERS[compression], file.write
