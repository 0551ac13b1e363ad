"""Check every byte and every promise of a container."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypedDict, Unpack

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


class How(TypedDict, total=False):
    """How many threads check, all by default, and whether bars are shown."""

    threads: int | None
    progress: bool


def verify(path: str | os.PathLike[str], **how: Unpack[How]) -> dict[str, float]:
    """Check all checksums and all structure of one file; returns the seconds each step took.

    Raises
    ------
    FormatError
        On the first thing that is not as FORMAT.md says.
    """
    with Container(path) as container, container.file.reading():
        if container.shard is not None:
            raise FormatError(f"{container.path}: is a shard of a graph: verify its folder instead")
        container.before_unpacking = partial(allow_unpacking, path)
        return verify_files(container.path, container, [container], _weights, **how)


def verify_files(
    path: str | os.PathLike[str],
    vertices: Container,
    shards: Sequence[Container],
    weigh: Callable[[Container, Sequence[Container]], NDArray[np.uint32]],
    *,
    threads: int | None = None,
    progress: bool = False,
) -> dict[str, float]:
    """Check the files of a graph: that of its vertices, and those of its rows, which may be one.

    ``weigh`` gives the degrees of all vertices, by which heads are chosen.
    """
    threads, phases = available_threads(threads), Phases(show=progress)
    files = dict.fromkeys((vertices, *shards))
    with phases("sums", sum(file.bytes.size for file in files), "B") as bar:
        for file in files:
            _check_bytes(file, threads, bar.update)
    _check_vertices(vertices, threads, phases)
    sides = [_sides(shard) for shard in shards]
    for shard, each in zip(shards, sides, strict=True):
        _check_degrees(shard, each)
    weights = weigh(vertices, shards)
    if vertices.order is Order.DEGREE and (weights[1:] > weights[:-1]).any():
        raise FormatError(f"{vertices.path}: rows are not in order of degree")
    seed = np.uint64(secrets.randbits(64))
    directed = shards[0].directed
    sums = np.zeros((2 if directed else 1, 2), np.uint64)
    with phases("rows", len(sums) * vertices.num_vertices, "row") as bar:
        for shard, each in zip(shards, sides, strict=True):
            for side, rows in enumerate(each):
                sums[side] += _check_rows(shard, rows, weights, seed, threads, bar.update)
    if not np.array_equal(sums[0], sums[-1][::-1]):
        raise FormatError(
            f"{path}: the transpose is not that of the graph"
            if directed
            else f"{path}: the graph is undirected but not symmetric"
        )
    return phases.seconds


def _sides(container: Container) -> list[Rows]:
    sides = (False, True) if container.directed else (False,)
    return [load_rows(container, transposed=side) for side in sides]


def _weights(vertices: Container, _: Sequence[Container]) -> NDArray[np.uint32]:
    """Sum up the degrees of both directions."""
    sides = _sides(vertices)
    return sides[0].degrees if len(sides) == 1 else sides[0].degrees + sides[1].degrees


def _check_bytes(container: Container, threads: int, advance: Callable[[int], object]) -> None:
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


def _check_vertices(container: Container, threads: int, phases: Phases) -> None:
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


def _check_degrees(container: Container, sides: list[Rows]) -> None:
    """Degrees add up to what the header says; those of a shard's in-neighbours are not said."""
    largest = max(int(rows.degrees.max(initial=0)) for rows in sides)
    if largest != int(container.header["max_degree"]):
        raise FormatError(f"{container.path}: the largest degree is {largest:,}, not as stated")
    for rows in sides[:1] if container.shard is not None else sides:
        total = int(rows.degrees.sum(dtype=np.uint64))
        if total != container.num_arcs:
            raise FormatError(f"{container.path}: degrees add up to {total:,} edges, not as stated")


def _check_rows(
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
