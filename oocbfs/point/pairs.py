"""Tables of pairs: read a batch at a time, answered in the order given, as a table again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.conversion.objects import from_memory, names_from_memory
from oocbfs.errors import QueryError, shown
from oocbfs.formats.edges import Edges, NamedEdges
from oocbfs.formats.names import NameColumn, join_columns
from oocbfs.formats.tables.columns import TableOptions
from oocbfs.formats.tables.memory_names import as_bytes, pack_names
from oocbfs.point.ask import Asking
from oocbfs.point.search import NO_PATH
from oocbfs.results import tables
from oocbfs.results.source import column_types
from oocbfs.settings import Settings, file_name

if TYPE_CHECKING:
    from typing import Protocol

    from oocbfs.formats.output.parquet import Column
    from oocbfs.graph.any_stored import AnyStored

    class Parts(Protocol):
        """Keeps what was found about batches of pairs, and finds it again."""

        def find(self, first: int, count: int) -> dict[str, NDArray[Any]] | None:
            """Return what was found about so many pairs from this one on."""
            ...

        def keep(self, first: int, count: int, found: dict[str, NDArray[Any]]) -> None:
            """Keep what was found about them."""
            ...


OK, NO_PATH_STATUS, UNKNOWN = "ok", "no path", "unknown vertex"
STATUSES = np.array([OK, NO_PATH_STATUS, UNKNOWN], object)
_ANY = TableOptions()


class Answer(NamedTuple):
    """The answers to some pairs that follow each other: what was given, and what was found.

    ``unknown`` says which pairs name no vertex. ``ends`` and ``path`` are paths one after the
    other, in ids; both are None where paths were not asked for.
    """

    sources: Column
    targets: Column
    distances: NDArray[np.int32]
    unknown: NDArray[np.bool_]
    ends: NDArray[np.int64] | None
    path: Column | None

    @property
    def statuses(self) -> NDArray[Any]:
        """Say of each pair how it went."""
        status: NDArray[Any] = STATUSES[np.where(self.unknown, 2, self.distances == NO_PATH)]
        return status

    @property
    def paths(self) -> list[list[Any]]:
        """The paths as lists, empty where there is none."""
        assert self.ends is not None
        path: list[Any] = np.asarray(self.path).tolist()
        return [path[begin:end] for begin, end in pairwise([0, *self.ends.tolist()])]

    def columns(self, names: Iterable[str]) -> tables.Columns:
        """Return the columns of a table that are asked for."""
        made: dict[str, Callable[[], Any]] = {
            "source": lambda: self.sources,
            "target": lambda: self.targets,
            "distance": lambda: self.distances,
            "path": lambda: self.paths,
            "status": lambda: self.statuses,
        }
        return {name: made[name]() for name in names}


def types_of(graph: AnyStored, *, paths: bool, statuses: bool = False) -> dict[str, Any]:
    """Return the names of the columns of answers, and their types."""
    id_type: Any = object
    if graph.names is None:
        id_type = column_types(graph.largest_id if graph.num_vertices else 0)["source"]
    types: dict[str, Any] = {"source": id_type, "target": id_type, "distance": np.int32}
    if paths:
        types["path"] = [id_type]
    if statuses:
        types["status"] = object
    return types


class Known(NamedTuple):
    """Natural positions of pairs, two a row, and which rows name vertices."""

    positions: NDArray[np.int64]
    mask: NDArray[np.bool_]


class Answers:
    """Answers batches of pairs of one graph, one after the other."""

    def __init__(
        self,
        graph: AnyStored,
        settings: Settings,
        *,
        paths: bool,
        keep_going: bool = False,
        advice: str = "leave the row out",
        first_advice: str = "",
    ) -> None:
        self._graph = graph
        # What to do about a row that names no vertex, and what else it may be if it is the first.
        self._advice, self._first_advice = advice, first_advice
        self._paths, self._keep_going = paths, keep_going
        self._asked = Asking(graph, settings)
        self.search = self._asked.search
        self.num_pairs = self.num_unknown = self.num_connected = self.num_resumed = 0

    def of(
        self, batches: Iterable[Edges | NamedEdges], parts: Parts | None = None
    ) -> Iterator[Answer]:
        """Yield the answers to each batch, in order; ``parts`` keep what was found.

        Raises
        ------
        QueryError
            If a pair names no vertex, unless this keeps going: which row, and which vertex.
        """
        kept: tuple[int, int, dict[str, NDArray[Any]]] | None = None
        for batch in batches:
            if parts is not None and kept is not None:
                # Only now, since what is found last need not be kept.
                parts.keep(*kept)
            with self._graph.reading():
                first, known = self.num_pairs, self._known(batch)
                stored = None if parts is None else parts.find(first, known.mask.size)
                found = self._find(known) if stored is None else stored
                self.num_resumed += known.mask.size if stored is not None else 0
                kept = (first, known.mask.size, found) if stored is None else None
                answer = self._answer(batch, known, found)
            yield answer
            if self.search.from_disk:
                # Pages of ids that were looked up count as memory.
                self._graph.release()

    def _known(self, batch: Edges | NamedEdges) -> Known:
        """Say which pairs name vertices; refuse others unless this keeps going."""
        positions = self._positions(batch)
        mask: NDArray[np.bool_] = np.all(positions >= 0, axis=1)
        if not mask.all() and not self._keep_going:
            raise self._refused(batch, positions)
        return Known(positions, mask)

    def _find(self, known: Known) -> dict[str, NDArray[Any]]:
        """Search the pairs that are known; paths are of stored vertices."""
        positions, mask = known
        stored = self._asked.stored(positions[mask].reshape(-1)).reshape(-1, 2)
        sources, targets = (np.ascontiguousarray(stored[:, side]) for side in (0, 1))
        found = self.search.find(sources, targets, paths=self._paths)
        distances = np.full(mask.size, NO_PATH, np.int32)
        distances[mask] = found.distances
        if not self._paths:
            return {"distances": distances}
        sizes = np.zeros(mask.size, np.int64)
        sizes[mask] = np.diff(found.ends, prepend=0)
        return {"distances": distances, "ends": np.cumsum(sizes), "path": found.vertices}

    def _answer(
        self, batch: Edges | NamedEdges, known: Known, found: dict[str, NDArray[Any]]
    ) -> Answer:
        """Put an answer together, and count it."""
        distances = found["distances"]
        self.num_pairs += known.mask.size
        self.num_unknown += int(known.mask.size - known.mask.sum())
        self.num_connected += int((distances >= 0).sum())
        ends, path = None, None
        if self._paths:
            ends, path = found["ends"], self._column(self._asked.ids_of(found["path"]))
        return Answer(*self._given(batch), distances, ~known.mask, ends, path)

    def _positions(self, batch: Edges | NamedEdges) -> NDArray[np.int64]:
        """Return natural positions, two a row; -1 where there is no such vertex."""
        graph = self._graph
        if isinstance(batch, NamedEdges):
            assert graph.names is not None
            found = graph.names.find_packed(batch.text, batch.starts, batch.lengths)
        else:
            both = np.empty((batch.sources.size, 2), np.uint64)
            both[:, 0], both[:, 1] = batch.sources, batch.targets
            found = graph.find_positions(both.reshape(-1))
        return found.reshape(-1, 2)

    def _given(self, batch: Edges | NamedEdges) -> tuple[Column, Column]:
        """Return what was given, as columns."""
        if isinstance(batch, NamedEdges):
            return _names_of(batch, 0), _names_of(batch, 1)
        return _signed(batch.sources), _signed(batch.targets)

    def _column(self, ids: NDArray[Any]) -> Column:
        return ids if self._graph.names is not None else _signed(ids)

    def _refused(self, batch: Edges | NamedEdges, positions: NDArray[np.int64]) -> QueryError:
        """Return why a pair is refused: which row, and which vertex."""
        place = int(np.flatnonzero(positions.reshape(-1) < 0)[0])
        row = self.num_pairs + place // 2 + 1
        advice = self._advice
        if isinstance(batch, NamedEdges):
            begin, size = int(batch.starts[place]), int(batch.lengths[place])
            vertex: Any = batch.text[begin : begin + size].tobytes().decode()
            if row == 1:
                advice += self._first_advice
        else:
            vertex = int((batch.sources, batch.targets)[place % 2][place // 2])
        return QueryError(
            f"row {row:,} of the pairs: {self._graph.path} has no vertex {shown(vertex)}; {advice}"
        )


def _signed(ids: NDArray[Any]) -> NDArray[Any]:
    """Return ids as most programs expect them, if all fit."""
    if ids.dtype == np.uint64 and (ids.size == 0 or int(ids.max()) < 2**63):
        return ids.astype(np.int64)
    return ids


def _names_of(batch: NamedEdges, side: int) -> NameColumn:
    """Return the names of one side of each edge."""
    starts, lengths = batch.starts[side::2].astype(np.int64), batch.lengths[side::2]
    bounds = np.zeros(starts.size + 1, np.int64)
    np.cumsum(lengths, out=bounds[1:])
    places = np.arange(int(bounds[-1])) + np.repeat(starts - bounds[:-1], lengths)
    return NameColumn(batch.text[places], bounds)


def batches_in_memory(graph: AnyStored, pairs: Any) -> Iterator[Edges | NamedEdges]:
    """Return the batches of any object that holds pairs; refuses what holds none."""
    if pairs is None or isinstance(pairs, (str, bytes, os.PathLike)):
        raise QueryError(f"pairs are a table or pairs of ids, not {shown(pairs)}")
    named = graph.names is not None
    if _is_plain(pairs):
        # Pairs may be any iterable, as of a generator, which is read some at a time.
        return _listed_batches(iter(pairs), named=named)
    if named:
        return iter(names_from_memory(pairs, _ANY).named_batches())
    return iter(from_memory(pairs, _ANY).batches())


_PAIRS_AT_ONCE = 1 << 16


def _is_plain(pairs: object) -> bool:
    """Return whether these are pairs of Python's, one after the other, not two sequences."""
    is_two = isinstance(pairs, tuple) and len(pairs) == 2 and hasattr(pairs[0], "__len__")
    made_here = type(pairs).__module__.split(".")[0] in ("builtins", "itertools", "collections")
    return isinstance(pairs, Iterable) and made_here and not is_two


def _listed_batches(pairs: Iterator[Any], *, named: bool) -> Iterator[Edges | NamedEdges]:
    what, is_one = ("a name", _is_name) if named else ("an id", _is_id)
    row = 0
    while some := list(islice(pairs, _PAIRS_AT_ONCE)):
        for pair in some:
            row += 1
            if not isinstance(pair, (tuple, list, np.ndarray)) or len(pair) != 2:
                raise QueryError(
                    f"row {row:,} of the pairs: {shown(pair)} is not a pair, each end {what}"
                )
        flat = list(chain.from_iterable(some))
        for place, vertex in enumerate(flat):
            if not is_one(vertex):
                number = row - len(some) + place // 2 + 1
                raise QueryError(f"row {number:,} of the pairs: {shown(vertex)} is not {what}")
        if named:
            yield pack_names([*map(as_bytes, flat)])
            continue
        both = np.array(flat, np.uint64)
        yield Edges(both[::2].copy(), both[1::2].copy())


def _is_name(vertex: object) -> bool:
    return isinstance(vertex, str)


def _is_id(vertex: Any) -> bool:
    is_whole = hasattr(vertex, "__index__") and not isinstance(vertex, bool)
    return is_whole and 0 <= vertex < 2**64


class PairResults(tables.Table, tables.AsArray):
    """The distances of many pairs, and their paths if those were asked for, in the order given."""

    def __init__(self, graph: AnyStored, answers: list[Answer], *, paths: bool) -> None:
        self._stored, self._with_paths = graph, paths
        self._answers = answers
        self.sources = _joined([answer.sources for answer in answers])
        self.targets = _joined([answer.targets for answer in answers])
        self.distances = np.concatenate(
            [np.empty(0, np.int32), *(answer.distances for answer in answers)]
        )

    def __len__(self) -> int:
        return self.distances.size

    @property
    def _values(self) -> NDArray[np.int32]:
        return self.distances

    @cached_property
    def paths(self) -> list[list[Any] | None]:
        """The paths of all pairs, each a list of ids, source first; None where there is none."""
        if not self._with_paths:
            raise QueryError("paths were not asked for: use graph.paths(pairs)")
        return [path or None for answer in self._answers for path in answer.paths]

    def about(self) -> dict[str, str]:
        """Say what the table is about."""
        return tables.about(self._stored, pairs=len(self))

    def _types(self) -> tables.Types:
        return types_of(self._stored, paths=self._with_paths)

    def _batches(self, *, reached_only: bool) -> Iterator[tables.Columns]:
        return (answer.columns(self._types()) for answer in self._answers)

    def __repr__(self) -> str:
        connected = int((self.distances >= 0).sum())
        name = file_name(self._stored.path)
        return f"<PairResults: {name}: {connected:,} of {len(self):,} pairs connected>"


def _joined(columns: list[Column]) -> Any:
    """Put columns together, one below the other."""
    if columns and isinstance(columns[0], NameColumn):
        return join_columns(columns)  # type: ignore[arg-type]
    arrays = [np.asarray(column) for column in columns]
    return np.concatenate(arrays) if arrays else np.empty(0, np.int64)


def results_of(graph: AnyStored, pairs: Any, settings: Settings, *, paths: bool) -> PairResults:
    """Answer all pairs of an object in memory."""
    answers = Answers(graph, settings, paths=paths)
    return PairResults(graph, list(answers.of(batches_in_memory(graph, pairs))), paths=paths)
