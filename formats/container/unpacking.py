"""Unpack sections into memory, by all cores: frames, and the zstd sections of older files."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import numpy as np
import zstandard
from numpy.typing import NDArray

from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import (
    CHUNK_BYTES,
    FRAMES_PER_CHUNK,
    PAGE_BYTES,
    Encoding,
    Kind,
)
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.formats.io.temporary import unnamed_beside
from oocbfs.kernels.constants import BYTES, FRAME_BYTES, SLACK_BYTES

if TYPE_CHECKING:
    from oocbfs.formats.container.reader import Container

# At most so many chunks are unpacked in one call.
_CHUNKS_PER_PIECE = 8
_NO_NUMBERS = np.empty(0, np.uint32)


def unpack(container: Container, kind: Kind, *, to_file: bool = False) -> NDArray[np.uint8]:
    """Return the contents of a section in memory of their own, or mapped from a temporary file."""
    record = container.sections[kind]
    size = int(record["raw_bytes"])
    is_framed = int(record["encoding"]) == Encoding.FRAMES
    if not is_framed:
        _check_sizes(container, kind, size)
    # It begins at a page and fills whole pages, so that a GPU's driver can pin it as it is.
    whole = layout.pages(size + SLACK_BYTES) + PAGE_BYTES
    allocated = _map_unnamed(container, whole) if to_file else np.empty(whole, np.uint8)
    data = allocated[-allocated.ctypes.data % PAGE_BYTES :][: size + SLACK_BYTES]
    data[size:] = 0
    contents = data[:size]
    if is_framed:
        unpack_frames(container, kind, contents)
    else:
        _decompress(container, kind, contents)
    data.flags.writeable = False
    return data[:size]


def _map_unnamed(container: Container, size: int) -> NDArray[np.uint8]:
    """Map a file without a name."""
    remedy = "convert the graph again with --codec raw"
    with unnamed_beside(container.path, size, remedy) as file:
        return np.frombuffer(mmap.mmap(file.fileno(), size), np.uint8)


def load() -> None:
    """Load what frames are unpacked with, before it is measured what memory is left."""
    from oocbfs.formats.io.zstd_library import find_zstd
    from oocbfs.kernels.frames import unpack_frames as unpack_some

    find_zstd()
    unpack_some.prepare()


def unpack_frames(
    container: Container,
    kind: Kind,
    out: NDArray[np.uint8],
    first: int = 0,
    *,
    is_read: bool = False,
) -> None:
    """Unpack the frames of a section from ``first`` on, as many as fill ``out``.

    Those of whole sections come from the mapping, and their chunks are compared with checksums.
    Those that are read leave no mapped pages behind, which count as memory.
    """
    from oocbfs.formats.io.zstd_library import find_zstd, make_scratch
    from oocbfs.kernels.frames import unpack_frames as unpack_some

    record, chunks = container.sections[kind], container.section_chunks(kind)
    count = layout.num_frames(out.size)
    offsets = container.frame_offsets(kind)[first : first + count + 1]
    stored, place = container.stored(kind), int(record["offset"])
    coding, decompress = int(record["coding"]), find_zstd().decompress
    threads = available_threads()
    share = -(-count // (2 * threads * FRAMES_PER_CHUNK))
    step = FRAMES_PER_CHUNK * (1 if is_read else min(_CHUNKS_PER_PIECE, max(1, share)))

    def work(begin: int) -> None:
        end = min(begin + step, count)
        ends = offsets[begin : end + 1]
        if is_read:
            packed = container.file.read(place + int(ends[0]), int(ends[-1] - ends[0]))
        else:
            packed = stored[ends[0] : ends[-1]]
            for chunk in chunks[begin // FRAMES_PER_CHUNK : -(-end // FRAMES_PER_CHUNK)]:
                container.check_chunk(kind, chunk)
        some = out[FRAME_BYTES * begin : FRAME_BYTES * end]
        numbers = _NO_NUMBERS if coding == BYTES else some.view(np.uint32)
        scratch = make_scratch(1)[0]
        damaged = unpack_some(
            some, numbers, packed, ends - ends[0], 0, end - begin, coding, scratch, decompress
        )
        if damaged >= 0:
            raise container.damaged_frame(kind, first + begin + damaged)

    for _ in ordered_map(work, range(0, count, step), threads):
        pass


def _check_sizes(container: Container, kind: Kind, size: int) -> None:
    """Compare what frames of an archive say with the size of the section, which may be absurd."""
    for chunk, expected in zip(*_chunks(container, kind, size), strict=True):
        frame = container.chunk_bytes(chunk)[:32].tobytes()
        try:
            found = zstandard.get_frame_parameters(frame).content_size
        except zstandard.ZstdError as error:
            raise container.error(f"{kind.name.lower()}: damaged zstd frame") from error
        if found != expected:
            raise container.error(f"{kind.name.lower()}: a zstd frame has the wrong size")


def _chunks(
    container: Container, kind: Kind, size: int
) -> tuple[NDArray[np.void], NDArray[np.int64]]:
    """Return the chunks of a section, and what each of them holds."""
    chunks = container.section_chunks(kind)
    sizes = np.full(chunks.size, CHUNK_BYTES)
    sizes[-1:] = size - CHUNK_BYTES * (chunks.size - 1)
    return chunks, sizes


def _decompress(container: Container, kind: Kind, out: NDArray[np.uint8]) -> None:
    """Decompress a section of an archive, one frame for each chunk."""
    chunks, sizes = _chunks(container, kind, out.size)

    def work(i: int) -> None:
        container.check_chunk(kind, chunks[i])
        start, size = i * CHUNK_BYTES, int(sizes[i])
        try:
            raw = zstandard.ZstdDecompressor().decompress(
                memoryview(container.chunk_bytes(chunks[i])),
                max_output_size=size,
                allow_extra_data=False,
            )
        except zstandard.ZstdError as error:
            raise container.error(f"{kind.name.lower()}: damaged zstd frame") from error
        if len(raw) != size:
            raise container.error(f"{kind.name.lower()}: a zstd frame has the wrong size")
        out[start : start + size] = np.frombuffer(raw, np.uint8)

    for _ in ordered_map(work, range(chunks.size), available_threads()):
        pass
