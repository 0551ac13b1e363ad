"""Read edge lists, or see them refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared
from oocbfs.formats.readers.open import open_edges
from tests.support.strategies import Pairs


def read(*paths: Path, format: str | None = None) -> tuple[Pairs, Declared]:
    """Return all edges, and what the input says about the graph."""
    stream = open_edges(paths, format=format)
    found: Pairs = []
    for batch in stream.batches():
        found += zip(batch.sources.tolist(), batch.targets.tolist(), strict=True)
    return found, stream.declared


def refuse(path: Path, text: str | bytes, match: str, format: str | None = None) -> None:
    """Write a file and see it refused in one line that names it."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=match) as caught:
        read(path, format=format)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
