"""One decoder contract over gzip, bzip2, xz and zstd, chosen by the first bytes."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import zstandard

# What a decoder must see of a member to know how large its window is.
HEADER_BYTES = 18
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# Four bytes can stand for a block of 128 KiB, so that at first at most 2 MiB come out at once.
_MIN_ZSTD_PIECE_BYTES = 1 << 6


class WindowError(Exception):
    """A member needs a larger window than is allowed."""


class Decoder:
    """Decompresses one member by the contract of bz2.BZ2Decompressor.

    What the decoder of a library lacks of that is added by subclasses.
    """

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    @property
    def eof(self) -> bool:
        """Whether the end of the member was reached."""
        return bool(self._inner.eof)

    @property
    def needs_input(self) -> bool:
        """Whether nothing more comes out before something goes in."""
        return bool(self._inner.needs_input)

    @property
    def unused_data(self) -> bytes:
        """What was passed in after the end of the member."""
        return bytes(self._inner.unused_data)

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        """Take in all data and give out about max_length bytes."""
        return bytes(self._inner.decompress(data, max_length))


class _Gzip(Decoder):
    def __init__(self, head: bytes, window_bytes: int) -> None:
        super().__init__(zlib.decompressobj(wbits=31))
        self._starved = True

    @property
    def needs_input(self) -> bool:
        return self._starved

    def decompress(self, data: bytes, max_length: int = 0, /) -> bytes:
        out: bytes = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        # The rest of the output waits inside zlib as long as the piece came out full.
        self._starved = not self._inner.unconsumed_tail and len(out) < max_length
        return out


class _Zstd(Decoder):
    """Feeds pieces whose size follows from how much the last one gave."""

    def __init__(self, head: bytes, window_bytes: int) -> None:
        if head.startswith(_ZSTD_MAGIC) and _zstd_window(head) > window_bytes:
            raise WindowError
        # The decoder's own limit is 128 MiB by default; ours was checked above.
        super().__init__(zstandard.ZstdDecompressor(max_window_size=1 << 31).decompressobj())
        self._waiting = b""
        self._piece = _MIN_ZSTD_PIECE_BYTES

    @property
    def needs_input(self) -> bool:
        return not self._waiting

    @property
    def unused_data(self) -> bytes:
        return super().unused_data + self._waiting

    def decompress(self, data: bytes, max_length: int = 1 << 20, /) -> bytes:
        self._waiting += data
        piece, self._waiting = self._waiting[: self._piece], self._waiting[self._piece :]
        out: bytes = self._inner.decompress(piece)
        wanted = len(piece) * max_length // max(1, len(out))
        self._piece = max(_MIN_ZSTD_PIECE_BYTES, min(2 * self._piece, wanted))
        return out


def _zstd_window(head: bytes) -> int:
    """Return the window that a frame asks for; 0 if its header is damaged."""
    try:
        return int(zstandard.get_frame_parameters(head).window_size)
    except zstandard.ZstdError:
        return 0


class _Xz(Decoder):
    def __init__(self, head: bytes, window_bytes: int) -> None:
        # Blocks of a stream may have dictionaries of different sizes, so the decoder checks them.
        memlimit = window_bytes + (2 << 20)
        super().__init__(lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=memlimit))

    def decompress(self, data: bytes, max_length: int = -1, /) -> bytes:
        try:
            return super().decompress(data, max_length)
        except lzma.LZMAError as error:
            if "limit" in str(error):
                raise WindowError from error
            raise


@dataclass(frozen=True)
class Codec:
    """A kind of compression; ``new`` takes the head of a member and the largest window allowed.

    ``padded`` tells whether zeros may stand between its members and after the last one.
    """

    name: str
    new: Callable[[bytes, int], Decoder]
    errors: tuple[type[Exception], ...]
    padded: bool


_GZIP = Codec("gzip", new=_Gzip, errors=(zlib.error,), padded=True)
_BZIP2 = Codec(
    "bzip2",
    new=lambda head, window_bytes: Decoder(bz2.BZ2Decompressor()),
    errors=(OSError, ValueError),
    padded=False,
)
_XZ = Codec("xz", new=_Xz, errors=(lzma.LZMAError,), padded=True)
_ZSTD = Codec("zstd", new=_Zstd, errors=(zstandard.ZstdError,), padded=False)


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
