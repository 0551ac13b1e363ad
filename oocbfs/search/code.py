"""Which compiled code a search within a budget runs, whichever engine it is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from oocbfs.kernels import frames
from oocbfs.kernels.bfs import search as bfs
from oocbfs.kernels.compiling import Code, code_of
from oocbfs.kernels.components import connect
from oocbfs.kernels.many import search as many
from oocbfs.kernels.many import spread
from oocbfs.kernels.results import checking, components, levels, validation
from oocbfs.settings import Emit, Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph


def search_code(graph: StoredGraph, parents: bool, settings: Settings) -> Iterator[Code]:
    """Yield the code of a search from one source, or from the nearest of several."""
    from oocbfs.disk import bfs as disk

    yield from _engines(bfs.CODE, disk.CODE, settings)
    kernels = [levels.count_levels, levels.count_reached]
    kernels += [levels.parents_to_ids] if parents else []
    kernels += [validation.check_levels] if settings.checks else []
    yield from _used(graph, kernels, reordering=[levels.levels_to_ids])


def components_code(graph: StoredGraph, settings: Settings) -> Iterator[Code]:
    """Yield the code that finds components."""
    from oocbfs.disk import components as disk

    # From disk, heads are joined as they are in memory.
    yield from (*connect.CODE, *(disk.CODE if settings.engine != "cpu" else ()))
    checks = [validation.join_rows, validation.check_labels] if settings.checks else []
    yield from _used(
        graph,
        [components.count_members, components.components_to_ids, *checks],
        reordering=[components.find_least, components.replace_labels],
    )


def many_code(graph: StoredGraph, emit: Emit, settings: Settings) -> Iterator[Code]:
    """Yield the code of searches from many sources on the mapping, together or each alone."""
    yield from (*many.CODE, *bfs.CODE)
    spreading = [spread.spread_bytes, spread.spread_deep] if emit == "levels" else []
    checks = [validation.check_levels] if settings.checks else []
    kernels = [levels.count_levels, *spreading, *checks]
    yield from _used(graph, kernels, reordering=[levels.levels_to_ids])


def _engines(on_cpu: tuple[Code, ...], on_disk: tuple[Code, ...], settings: Settings) -> list[Code]:
    """Return the code of the engines that may be chosen."""
    return [
        *(on_cpu if settings.engine != "disk" else ()),
        *(on_disk if settings.engine != "cpu" else ()),
    ]


def _used(graph: StoredGraph, kernels: list[Any], *, reordering: list[Any]) -> Iterator[Code]:
    """Yield the code that opens rows and names results, less where vertices are in order."""
    yield from map(code_of, (checking.check_index, *kernels))
    if graph.is_reordered:
        yield from map(code_of, (checking.sum_order, *reordering))
    if graph.sizes.has_frames:
        yield code_of(frames.unpack_frames)
