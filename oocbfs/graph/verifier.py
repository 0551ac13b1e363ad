"""Check every byte and every promise of a container."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError
from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import Kind, Order
from oocbfs.formats.container.reader import Container
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.graph.rows import columns, load_rows
from oocbfs.kernels.names.stored import PROBLEMS as NAME_PROBLEMS
from oocbfs.kernels.names.stored import check_blocks
from oocbfs.kernels.results import checking as check
from oocbfs.kernels.rows import Rows
from oocbfs.memory import allow_unpacking
from oocbfs.progress import Phases

_ROWS_PER_PIECE = 1 << 16
_BLOCKS_PER_PIECE = 1 << 14


def verify(
    path: str | os.PathLike[str], *, threads: int | None = None, progress: bool = False
) -> dict[str, float]:
    """Check all checksums and all structure; returns the seconds each step took.

    Raises
    ------
    FormatError
        On the first thing that is not as FORMAT.md says.
    """
    threads = available_threads(threads)
    phases = Phases(show=progress)
    with Container(path) as container, container.file.reading():
        if container.shard is not None:
            raise FormatError(f"{container.path}: is a shard of a graph: verify its folder instead")
        container.before_unpacking = partial(allow_unpacking, path)
        with phases("sums", container.bytes.size, "B") as bar:
            check_bytes(container, threads, bar.update)
        check_vertices(container, threads, phases)
        sides = [load_rows(container)]
        if container.directed:
            sides.append(load_rows(container, transposed=True))
        weights = sides[0].degrees if len(sides) == 1 else sides[0].degrees + sides[1].degrees
        _check_degrees(container, sides, weights)
        seed = np.uint64(secrets.randbits(64))
        with phases("rows", len(sides) * container.num_vertices, "row") as bar:
            sums = [
                check_rows(container, rows, weights, seed, threads, bar.update) for rows in sides
            ]
        check_symmetry(container.path, sums, directed=container.directed)
    return phases.seconds


def check_symmetry(
    path: str | os.PathLike[str], sums: Sequence[NDArray[np.uint64]], *, directed: bool
) -> None:
    """Check by the sums over arcs, of one or both directions, that each has its opposite."""
    if not np.array_equal(sums[0], sums[-1][::-1]):
        raise FormatError(
            f"{path}: the transpose is not that of the graph"
            if directed
            else f"{path}: the graph is undirected but not symmetric"
        )


def check_bytes(container: Container, threads: int, advance: Callable[[int], object]) -> None:
    """Compare all chunks with their checksums, and see that there is nothing between sections."""
    for size in ordered_map(_check_chunk(container), _chunks(container), threads):
        advance(size)
    _check_padding(container)


def _chunks(container: Container) -> Iterator[tuple[Kind, np.void]]:
    for kind in container.sections:
        for chunk in container.section_chunks(kind):
            yield kind, chunk


def _check_chunk(container: Container) -> Callable[[tuple[Kind, np.void]], int]:
    """Make the function that checks one chunk and tells its size."""

    def work(item: tuple[Kind, np.void]) -> int:
        container.check_chunk(*item)
        return int(item[1]["stored_bytes"])

    return work


def _check_padding(container: Container) -> None:
    """Check that the bytes between sections are zero."""
    for kind, record in container.sections.items():
        end = int(record["offset"]) + int(record["stored_bytes"])
        if container.bytes[end : layout.pages(end)].any():
            raise FormatError(f"{container.path}: bytes after {kind.name.lower()} are not zero")


def check_vertices(container: Container, threads: int, phases: Phases) -> None:
    """Check what vertices are called: their ids or names, and their order."""
    _check_ids(container)
    if Kind.NAMES in container.sections:
        with phases("names", container.num_vertices, "name") as bar:
            _check_names(container, threads, bar.update)


def _check_ids(container: Container) -> None:
    """Ids are sorted and distinct, the order is a permutation."""
    if Kind.IDS in container.sections:
        ids = container.section(Kind.IDS)
        if (ids[1:] <= ids[:-1]).any():
            raise FormatError(f"{container.path}: ids are not sorted and distinct")
    if container.order is not Order.NATURAL:
        order = container.section(Kind.ORDER)
        seen = np.zeros(container.num_vertices, np.bool_)
        if order.size and int(order.max()) < seen.size:
            seen[order] = True
        if not seen.all():
            raise FormatError(f"{container.path}: the order is not a permutation")


def _check_names(container: Container, threads: int, advance: Callable[[int], object]) -> None:
    """Blocks of names follow each other, and hold names that ascend, as short as can be."""
    names, starts = container.section(Kind.NAMES), container.section(Kind.NAME_STARTS)
    if int(starts[0]) != 0 or int(starts[-1]) != names.size:
        raise FormatError(f"{container.path}: blocks of names do not cover them")
    num_blocks = starts.size - 1

    def work(first: int) -> int:
        stop = min(first + _BLOCKS_PER_PIECE, num_blocks)
        problem, number = check_blocks(names, starts, container.num_vertices, first, stop)
        if problem:
            raise FormatError(
                f"{container.path}: name {number} is damaged: {NAME_PROBLEMS[problem]}"
            )
        return (stop - first) * layout.NAMES_PER_BLOCK

    for count in ordered_map(work, range(0, num_blocks, _BLOCKS_PER_PIECE), threads):
        advance(count)


def _check_degrees(container: Container, sides: list[Rows], weights: NDArray[np.uint32]) -> None:
    """Degrees add up to what the header says, and descend where the order is by degree."""
    largest = max(int(rows.degrees.max(initial=0)) for rows in sides)
    if largest != int(container.header["max_degree"]):
        raise FormatError(f"{container.path}: the largest degree is {largest:,}, not as stated")
    for rows in sides:
        total = int(rows.degrees.sum(dtype=np.uint64))
        if total != container.num_arcs:
            raise FormatError(f"{container.path}: degrees add up to {total:,} edges, not as stated")
    if container.order is Order.DEGREE and (weights[1:] > weights[:-1]).any():
        raise FormatError(f"{container.path}: rows are not in order of degree")


def check_rows(
    container: Container,
    rows: Rows,
    weights: NDArray[np.uint32],
    seed: np.uint64,
    threads: int,
    advance: Callable[[int], object],
) -> NDArray[np.uint64]:
    """Check all rows of one direction; returns the fingerprint sums.

    ``weights`` are the degrees of all vertices, by which heads are chosen.
    """
    shard = container.shard
    cut = (0, 1) if shard is None else (shard.number, shard.cut.num_shards)

    def work(first: int) -> tuple[NDArray[np.uint64], int]:
        stop = min(first + _ROWS_PER_PIECE, container.num_vertices)
        sums = np.zeros(2, np.uint64)
        problem, row = check.check_rows(sums, *columns(rows), weights, cut, first, stop, seed)
        if problem:
            raise FormatError(f"{container.path}: row {row} is damaged: {check.PROBLEMS[problem]}")
        return sums, stop - first

    total = np.zeros(2, np.uint64)
    for sums, count in ordered_map(
        work, range(0, container.num_vertices, _ROWS_PER_PIECE), threads
    ):
        total += sums
        advance(count)
    return total
