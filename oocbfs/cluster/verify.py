"""Check every byte and every promise of a sharded graph."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from functools import partial
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.manifest import Manifest
from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.reader import Container
from oocbfs.graph.verifier import How, verify_files


def verify(path: str | os.PathLike[str], **how: Unpack[How]) -> dict[str, float]:
    """Check all files of a folder, and that they are one graph; returns the seconds of each step.

    Raises
    ------
    FormatError
        On the first thing that is not as FORMAT.md says; names the file.
    """
    manifest = Manifest.read(path)
    with ExitStack() as stack:
        files = [
            stack.enter_context(manifest.open(number))
            for number in (None, *range(len(manifest.shards)))
        ]
        for file in files:
            stack.enter_context(file.file.reading())
        weigh = partial(_weights, manifest)
        return verify_files(manifest.folder, files[0], files[1:], weigh, **how)


def _weights(
    manifest: Manifest, vertices: Container, shards: Sequence[Container]
) -> NDArray[np.uint32]:
    """Sum up degrees, and see that files agree on them and on what the manifest says."""
    degrees = vertices.section(Kind.DEGREES)
    weights = degrees.copy()
    for number, shard in enumerate(shards):
        own = manifest.cut.vertex_of(number, np.arange(shard.num_vertices))
        if not np.array_equal(degrees[own], shard.section(Kind.DEGREES)):
            raise FormatError(f"{shard.path}: its degrees are not those of {vertices.path}")
        if manifest.directed:
            weights[own] += shard.section(Kind.IN_DEGREES)
    connected = np.flatnonzero(weights)
    useful = np.flatnonzero(degrees >= (1 if manifest.directed else 2))
    last = {
        name: int(found[-1]) + 1 if found.size else 0
        for name, found in (("connected", connected), ("useful", useful))
    }
    total = int(degrees.sum(dtype=np.uint64))
    if total != manifest.num_arcs:
        raise FormatError(f"{vertices.path}: degrees add up to {total:,} edges, not as stated")
    if last != {"connected": manifest.connected, "useful": manifest.useful}:
        raise FormatError(f"{manifest.folder}: the manifest is not about these vertices")
    return weights
