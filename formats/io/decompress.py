"""One decoder contract over gzip, bzip2, xz and zstd, chosen by the first bytes."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import zstandard

# What a decoder has to see of a member to tell how large its window is.
HEADER_BYTES = 18
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# A block of four bytes can stand for 128 KiB, so that no more than 2 MiB come out at once at first.
_ZSTD_LEAST_PIECE_BYTES = 1 << 6


class WindowError(Exception):
    """A member whose window is larger than is allowed."""


class Decoder(Protocol):
    """Decompresses one member; the contract of bz2.BZ2Decompressor."""

    @property
    def eof(self) -> bool:
        """Whether the end of the member was reached."""
        ...

    @property
    def needs_input(self) -> bool:
        """Whether nothing more comes out before something goes in."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What was passed in behind the end of the member."""
        ...

    def decompress(self, data: bytes, max_length: int = ..., /) -> bytes:
        """Take in all data and give out about max_length bytes."""
        ...


class _Gzip:
    def __init__(self, head: bytes, window_bytes: int) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        out = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        # What is left of the output waits inside of zlib as long as the piece came out full.
        self.needs_input = not self._inner.unconsumed_tail and len(out) < max_length
        return out


class _Zstd:
    """Feeds pieces that grow and shrink with what came out of the one before."""

    def __init__(self, head: bytes, window_bytes: int) -> None:
        if head.startswith(_ZSTD_MAGIC) and _zstd_window(head) > window_bytes:
            raise WindowError
        # The decoder's own bound is for its default of 128 MiB only; ours was kept to above.
        self._inner = zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj()
        self._waiting = b""
        self._piece = _ZSTD_LEAST_PIECE_BYTES

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._waiting

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data + self._waiting

    def decompress(self, data: bytes, max_length: int = 1 << 20, /) -> bytes:
        self._waiting += data
        piece, self._waiting = self._waiting[: self._piece], self._waiting[self._piece :]
        out = self._inner.decompress(piece)
        wanted = len(piece) * max_length // max(1, len(out))
        self._piece = max(_ZSTD_LEAST_PIECE_BYTES, min(2 * self._piece, wanted))
        return out


def _zstd_window(head: bytes) -> int:
    """Give the window that a frame asks for; of a damaged header, none."""
    try:
        return int(zstandard.get_frame_parameters(head).window_size)
    except zstandard.ZstdError:
        return 0


class _Xz:
    def __init__(self, head: bytes, window_bytes: int) -> None:
        # A stream may hold blocks with dictionaries of different sizes, so that the decoder watches.
        self._inner = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=window_bytes + (2 << 20))

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return self._inner.needs_input

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        try:
            return self._inner.decompress(data, max_length)
        except lzma.LZMAError as error:
            if "limit" in str(error):
                raise WindowError from error
            raise


@dataclass(frozen=True)
class Codec:
    """A kind of compression, its decoder made for the head of a member and the largest window allowed.

    ``padded`` where zeros may stand between and behind its members.
    """

    name: str
    new: Callable[[bytes, int], Decoder]
    errors: tuple[type[Exception], ...]
    padded: bool


_GZIP = Codec("gzip", _Gzip, (zlib.error,), True)
_BZIP2 = Codec("bzip2", lambda head, window: bz2.BZ2Decompressor(), (OSError, ValueError), False)
_XZ = Codec("xz", _Xz, (lzma.LZMAError,), True)
_ZSTD = Codec("zstd", _Zstd, (zstandard.ZstdError,), False)


def codec_of(head: bytes) -> Codec | None:
    """Name the compression that bytes begin with."""
    if head[:3] == b"\x1f\x8b\x08":
        return _GZIP
    if head[:3] == b"BZh" and head[3:4] in b"123456789" and len(head) > 3:
        return _BZIP2
    if head[:6] == b"\xfd7zXZ\0":
        return _XZ
    # The second is a skippable frame, which some writers put first.
    if head[:4] == _ZSTD_MAGIC or (head[1:4] == b"\x2a\x4d\x18" and head[0] >> 4 == 5):
        return _ZSTD
    return None
