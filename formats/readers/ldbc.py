"""LDBC Graphalytics: ``X.e`` with a line ``u v [weight]`` per edge, ``X.v`` with a vertex per line.

``X.properties`` beside them says whether the graph is directed. The files belong together by name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import BudgetError
from oocbfs.formats.edges import Declared, Edges, Ids
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.chunks import open_lines, parse
from oocbfs.formats.readers.edge_list import COMMENTS, GRAMMAR
from oocbfs.kernels.convert.parse import SINGLE

_MISSING = "an end of the edge is not in the vertex file"
_PROPERTIES_CHARACTERS = 1 << 20


def read(
    source: Source, declared: Declared, threads: int, *, vertices: Source | None = None
) -> Generator[Edges]:
    """Read an edge file and the vertex file that belongs to it."""
    assert vertices is not None
    declared.vertex_ids = known = _read_vertices(vertices, threads)
    declared.directed = _read_directed(vertices)
    declared.directed_why = "the .properties beside it say so"
    with open_lines(source) as lines:
        lines.skip_comments(*COMMENTS)
        for parsed in parse(lines, GRAMMAR, threads, (_membership(known), _MISSING)):
            yield from parsed.batches()


def _read_vertices(source: Source, threads: int) -> Ids:
    grammar = type(GRAMMAR)(GRAMMAR.flags | SINGLE)
    with open_lines(source) as lines:
        lines.skip_comments(*COMMENTS)
        parts, count = [np.empty(0, np.uint64)], 0
        for parsed in parse(lines, grammar, threads):
            parts.append(parsed.sources)
            count += parsed.sources.size
            if count > source.limits.num_ids:
                raise BudgetError(
                    f"{source.name}: a list of more than {source.limits.num_ids:,} vertices does "
                    "not fit in memory: allow more --memory"
                )
    ids = np.concatenate(parts)
    parts.clear()
    ids.sort()
    return ids[np.concatenate(([True], ids[1:] != ids[:-1]))] if ids.size else ids


def _membership(known: Ids) -> Callable[[Ids, Ids], int]:
    """Make the test that gives the first edge with an unknown end, or -1."""
    dense = known.size > 0 and int(known[-1]) - int(known[0]) + 1 == known.size

    def unknown(ids: Ids) -> NDArray[np.bool_]:
        if not known.size:
            return np.ones(ids.size, np.bool_)
        if dense:
            outside: NDArray[np.bool_] = (ids < known[0]) | (ids > known[-1])
            return outside
        positions = np.minimum(np.searchsorted(known, ids), known.size - 1)
        absent: NDArray[np.bool_] = known[positions] != ids
        return absent

    def first_unknown(sources: Ids, targets: Ids) -> int:
        bad = unknown(sources) | unknown(targets)
        return int(bad.argmax()) if bad.any() else -1

    return first_unknown


def _read_directed(vertices: Source) -> bool | None:
    """Look for ``graph.<name>.directed`` in the properties beside the vertex file."""
    stem = re.sub(r"\.v(\.\w+)?$", "", vertices.path)
    try:
        with open(stem + ".properties", encoding="utf-8", errors="replace") as file:
            found = re.search(
                r"^graph\.\S+\.directed\s*[=:]\s*(true|false)\s*$",
                file.read(_PROPERTIES_CHARACTERS),
                re.MULTILINE,
            )
    except OSError:
        return None
    return None if found is None else found[1] == "true"
