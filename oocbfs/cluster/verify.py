"""Check every byte and every promise of a sharded graph."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import ExitStack

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.manifest import Manifest
from oocbfs.errors import FormatError
from oocbfs.formats.container.layout import Kind, Order
from oocbfs.formats.container.reader import Container
from oocbfs.formats.io.ordered import available_threads
from oocbfs.graph.rows import load_rows
from oocbfs.graph.verifier import check_bytes, check_rows, check_symmetry, check_vertices
from oocbfs.kernels.rows import Rows
from oocbfs.progress import Phases


def verify(
    path: str | os.PathLike[str], *, threads: int | None = None, progress: bool = False
) -> dict[str, float]:
    """Check all files of a folder, and that they are one graph; returns the seconds of each step.

    Raises
    ------
    FormatError
        On the first thing that is not as FORMAT.md says; names the file.
    """
    threads = available_threads(threads)
    phases = Phases(show=progress)
    manifest = Manifest.read(path)
    with ExitStack() as stack:
        vertices = stack.enter_context(manifest.open(None))
        shards = [
            stack.enter_context(manifest.open(shard)) for shard in range(len(manifest.shards))
        ]
        for container in (vertices, *shards):
            stack.enter_context(container.file.reading())
        with phases("sums", sum(shard.bytes.size for shard in (vertices, *shards)), "B") as bar:
            for container in (vertices, *shards):
                check_bytes(container, threads, bar.update)
        check_vertices(vertices, threads, phases)
        weights = _weights(manifest, vertices, shards)
        seed = np.uint64(secrets.randbits(64))
        sides = 2 if manifest.directed else 1
        sums = np.zeros((sides, 2), np.uint64)
        with phases("rows", sides * manifest.num_vertices, "row") as bar:
            for shard in shards:
                sums += _check_shard(shard, weights, seed, threads, bar.update)
        check_symmetry(manifest.folder, list(sums), directed=manifest.directed)
    return phases.seconds


def _weights(
    manifest: Manifest, vertices: Container, shards: list[Container]
) -> NDArray[np.uint32]:
    """Sum up degrees, and see that files agree on them and on what the manifest says."""
    degrees = vertices.section(Kind.DEGREES)
    weights = degrees.copy()
    last = {"connected": 0, "useful": 0}
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
    if vertices.order is Order.DEGREE and (weights[1:] > weights[:-1]).any():
        raise FormatError(f"{vertices.path}: rows are not in order of degree")
    return weights


def _check_shard(
    shard: Container,
    weights: NDArray[np.uint32],
    seed: np.uint64,
    threads: int,
    advance: Callable[[int], object],
) -> NDArray[np.uint64]:
    """Check all rows of a shard; returns the fingerprint sums of each direction."""
    sides: list[Rows] = [load_rows(shard)]
    if shard.directed:
        sides.append(load_rows(shard, transposed=True))
    largest = max(int(rows.degrees.max(initial=0)) for rows in sides)
    if largest != int(shard.header["max_degree"]):
        raise FormatError(f"{shard.path}: the largest degree is {largest:,}, not as stated")
    if int(sides[0].degrees.sum(dtype=np.uint64)) != shard.num_arcs:
        raise FormatError(f"{shard.path}: degrees do not add up to its edges")
    return np.array([check_rows(shard, rows, weights, seed, threads, advance) for rows in sides])
