"""What packed outputs are read with: by the standard library and zstandard alone."""

from __future__ import annotations

import bz2
import gzip
import lzma
from collections.abc import Callable

import zstandard

DECOMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "": lambda data: data,
    ".gz": gzip.decompress,
    ".xz": lzma.decompress,
    ".bz2": bz2.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().stream_reader(data).read(),
}
