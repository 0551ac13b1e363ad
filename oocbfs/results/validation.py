"""Check what searches found before it is handed out: levels by the rules of Graph500, components.

Everything is checked as a user gets it, in positions and ids, with the rows of the file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import QueryError
from oocbfs.formats.edges import Ids
from oocbfs.formats.io.ordered import over_ranges
from oocbfs.graph.rows import rows_before
from oocbfs.kernels.results import validation as kernels
from oocbfs.kernels.results.levels import count_levels
from oocbfs.plan.host import PIECE_BYTES
from oocbfs.results.source import SourceResult
from oocbfs.settings import Emit

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored

_NO_PARENTS = np.empty(0, np.int64)
_NO_ORDER = np.empty(0, np.uint32)
_NO_IDS = np.empty(0, np.uint64)


class Levels(NamedTuple):
    """What a search found, by position: levels, ids of parents if there are any, level sizes.

    Vertices at ``last_level`` were not expanded.
    """

    levels: NDArray[Any]
    parents: NDArray[np.int64] | None
    sizes: NDArray[np.int64]
    last_level: int


def validate(
    graph: AnyStored, sources: Ids, found: Levels, *, threads: int, bounded: bool = False
) -> None:
    """Check a search by the rules of Graph500; if memory is ``bounded``, keep few pages.

    1. the sources are on level 0, alone, and their own parents;
    2. every other vertex reached has a parent one level up, to which an edge leads;
    3. every edge spans at most one level;
    4. no edge leads from the reached set out of it.

    Raises
    ------
    QueryError
        If a rule is broken.
    """
    levels = np.asarray(found.levels, np.int32)
    tree = _NO_PARENTS if found.parents is None else np.asarray(found.parents)
    places = graph.positions(sources)
    if not np.array_equal(np.flatnonzero(levels == 0), np.unique(places)):
        raise _failed(graph, "level 0 is not the set of sources")
    if levels.min() < -1 or levels.max() > found.last_level:
        raise _failed(graph, "there are levels that cannot be")
    if tree.size and not (tree[places].astype(np.uint64) == sources).all():
        raise _failed(graph, "a source is not its own parent")
    if tree.size and not np.array_equal(tree < 0, levels < 0):
        raise _failed(graph, "parents and levels do not cover the same vertices")
    confirmed = np.zeros(levels.size, np.uint8)
    order, ids = _names(graph)
    # Ids of parents have 63 bits; others may have more, and are not looked at.
    columns = confirmed, levels, tree, order, ids, graph.first_id if tree.size else 0
    rules = found.last_level, not graph.directed
    for rows, first, stop in _pieces(graph, bounded=bounded):
        arguments = kernels.check_levels, first, *columns, *rows, *rules
        # Few rows may have many tails.
        some = over_ranges(_from_row, stop - first, threads, *arguments, least=64)
        for problem, position in some:
            if problem:
                raise _failed(graph, kernels.PROBLEMS[problem], position)
    orphans = np.flatnonzero((levels > 0) & (confirmed == 0))
    if orphans.size:
        raise _failed(graph, "no edge from a parent one level up", orphans[0])
    sizes = np.zeros(int(levels.max()) + 1, np.int64)
    count_levels(sizes, levels, 0, levels.size)
    if not np.array_equal(sizes, found.sizes):
        raise _failed(graph, "the sizes of levels do not count their vertices")


def checked(
    result: SourceResult,
    emit: Emit,
    targets: NDArray[np.int64] | None,
    *,
    threads: int,
    bounded: bool,
) -> SourceResult:
    """Check the levels of one source of many, and give what was asked for of them.

    ``targets`` are stored vertices, whose distances are in the result.

    Raises
    ------
    QueryError
        If a rule is broken.
    """
    graph, levels = result._stored, result.levels
    assert levels is not None
    found = Levels(levels, None, result.level_sizes, result.level_sizes.size)
    validate(graph, graph.as_ids([result.source]), found, threads=threads, bounded=bounded)
    if targets is not None and result.distances is not None:
        positions = targets if graph.order is None else graph.order[targets]
        if not np.array_equal(levels[positions], result.distances):
            raise _failed(graph, f"distances from {result.source} are not its levels")
    return result if emit == "levels" else replace(result, levels=None)


def validate_components(
    graph: AnyStored,
    labels: Ids,
    counts: NDArray[np.uint32],
    *,
    bounded: bool = False,
    strong: bool = False,
) -> None:
    """Check components by joining the ends of all edges, plainly.

    The label of a vertex is the smallest id among those that edges join it with, whatever their
    direction, and ``counts`` says at the position of a label how many have it. Strongly connected
    components are checked for lying within those.

    Raises
    ------
    QueryError
        If it is not so.
    """
    forest = np.arange(labels.size, dtype=np.uint32)
    sizes = np.zeros_like(forest)
    order, ids = _names(graph)
    for rows, first, stop in _pieces(graph, bounded=bounded):
        problem, position = kernels.join_rows(forest, order, *rows, first, stop)
        if problem:
            raise _failed(graph, kernels.PROBLEMS[problem], position)
    first_id = np.uint64(graph.first_id)
    if strong:
        positions = graph.positions(labels)
        outside = np.flatnonzero(roots_of(forest)[positions] != roots_of(forest))
        if outside.size:
            raise _failed(graph, "its component is not connected", outside[0])
        return
    wrong = kernels.check_labels(forest, sizes, np.asarray(labels), ids, first_id)
    if wrong >= 0:
        raise _failed(graph, "its label is not the smallest id of its component", wrong)
    differing = np.flatnonzero(sizes != counts)
    if differing.size:
        raise _failed(graph, "the size of its component is wrong", differing[0])


def roots_of(forest: NDArray[np.uint32]) -> NDArray[np.uint32]:
    """Return the root of every vertex of a forest of labels."""
    above = forest[forest]
    while not np.array_equal(forest, above):
        forest, above = above, above[above]
    return forest


def _from_row(kernel: Callable[..., Any], row: int, *arguments: Any) -> Any:
    """Run a kernel on a range that is counted from a row on."""
    *others, first, stop = arguments
    return kernel(*others, row + first, row + stop)


def _names(graph: AnyStored) -> tuple[NDArray[np.uint32], Ids]:
    return (
        _NO_ORDER if graph.order is None else np.asarray(graph.order),
        _NO_IDS if graph.listed_ids is None else graph.listed_ids,
    )


def _pieces(graph: AnyStored, *, bounded: bool) -> Iterator[tuple[tuple[Any, ...], int, int]]:
    """Yield all rows of out-neighbours: what kernels take of them, the first one and the end."""
    for rows, shard in graph.rows_by_shard():
        columns = rows.heads, rows.bases, rows.starts, rows.shift, rows.tails
        bounds = [0, rows.heads.size]
        if bounded:
            # Of so many tails, pages are let go before the next are read.
            bounds[1:1] = rows_before(rows, np.arange(PIECE_BYTES, rows.tails.size, PIECE_BYTES))
        for first, stop in pairwise(bounds):
            yield (*columns, (shard, graph.num_shards)), first, stop
            if bounded:
                graph.release()


def _failed(graph: AnyStored, problem: str, position: int | None = None) -> QueryError:
    where = ""
    if position is not None:
        vertex = graph.given_one(int(graph.ids_at(position, position + 1)[0]))
        where = f" at vertex {vertex}"
    return QueryError(
        f"{graph.path}: validation failed{where}: {problem}: run 'oocbfs verify'; if the file is "
        "whole, this is a mistake of oocbfs"
    )
