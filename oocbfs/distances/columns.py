"""What is found of distances as a table: of each vertex, or of each distance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from oocbfs.results import tables

if TYPE_CHECKING:
    from oocbfs.distances.job import Answer
    from oocbfs.distances.measures import Measures


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
        columns = found.columns()
        types: dict[str, Any] = {name: np.asarray(column).dtype for name, column in columns.items()}
        return (
            {name: np.asarray(one).tolist() for name, one in columns.items()},
            types,
            found.about(),
        )
    positions = scope.positions()
    named = graph._called(positions)
    if named.dtype == np.uint64 and (not named.size or named[-1] < 2**63):
        named = named.astype(np.int64)
    arrays: dict[str, Any] = {"id": named}
    if answer.eccentricities is not None:
        arrays["eccentricity"] = answer.eccentricities[positions]
    if of_all:
        arrays["closeness"] = sources.closeness()
        arrays["harmonic"] = sources.harmonic
    for name, estimate in (("closeness", answer.closeness), ("harmonic", answer.harmonic)):
        if estimate is not None:
            arrays |= {name: estimate.values, f"{name}_low": estimate.low}
            arrays[f"{name}_high"] = estimate.high
    types = {name: array.dtype for name, array in arrays.items()}
    if graph.names is not None:
        types["id"] = object
    about = tables.about(graph._stored, scope=scope.text, scope_vertices=scope.num_vertices)
    if answer.harmonic is not None:
        about |= tables.about(graph._stored, sources=found.num_sources, confidence=found.confidence)
    return {name: array.tolist() for name, array in arrays.items()}, types, about
