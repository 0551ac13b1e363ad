"""What is found of distances as a table: of each vertex, or of each distance."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.arrays import pieces_of
from oocbfs.results import tables

if TYPE_CHECKING:
    from oocbfs.distances.job import Answer
    from oocbfs.distances.measures import Measures

# Values that are objects at a time: they take several times as much.
_LISTED = 1 << 12


def columns_of(
    graph: Measures, answer: Answer
) -> tuple[dict[str, Iterable[Any]], dict[str, Any], dict[str, str]]:
    """Return columns, their types, and what they are about; nothing of it tells how it was found.

    The vertices of the scope come in ascending order if something was found of each of them.
    """
    scope, found, sources = answer.scope, answer.distribution, answer.sources
    assert found is not None
    assert sources is not None
    of_all = sources.is_all and sources.done > 0 and answer.with_closeness
    if answer.eccentricities is None and answer.harmonic is None and not of_all:
        rows = {name: np.asarray(column) for name, column in found.columns().items()}
        return (
            {name: column.tolist() for name, column in rows.items()},
            {name: column.dtype for name, column in rows.items()},
            found.about(),
        )
    stored = graph._stored
    types: dict[str, Any] = {"id": np.dtype(np.int64 if stored.largest_id < 2**63 else np.uint64)}
    if graph.names is not None:
        types["id"] = np.dtype(object)
    ids = (_values(graph._called(part)) for part in scope.parts())
    columns: dict[str, Iterable[Any]] = {"id": chain.from_iterable(ids)}
    found_of_all = answer.eccentricities
    if found_of_all is not None:
        types["eccentricity"] = found_of_all.dtype
        some = (_values(found_of_all[part]) for part in scope.parts())
        columns["eccentricity"] = chain.from_iterable(some)
    arrays: dict[str, Any] = {}
    if of_all:
        arrays["closeness"] = sources.closeness()
        arrays["harmonic"] = sources.harmonic
    for name, estimate in (("closeness", answer.closeness), ("harmonic", answer.harmonic)):
        if estimate is not None:
            arrays |= {name: estimate.values, f"{name}_low": estimate.low}
            arrays[f"{name}_high"] = estimate.high
    for name, array in arrays.items():
        types[name] = array.dtype
        columns[name] = _values(array)
    about = tables.about(graph._stored, scope=scope.text, scope_vertices=scope.num_vertices)
    if answer.harmonic is not None:
        about |= tables.about(graph._stored, sources=found.num_sources, confidence=found.confidence)
    return columns, types, about


def _values(array: NDArray[Any]) -> Iterator[Any]:
    """Yield the values of an array, piece by piece."""
    for part in pieces_of(array, size=_LISTED):
        yield from array[part].tolist()
