"""Several GPUs of this host, or as many devices of the emulator, with a shard of the graph each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from oocbfs.cluster.devices import DevicesBfs, load_shards
from oocbfs.cluster.stored_shards import StoredShards
from oocbfs.devices.cutting import cut_rows
from oocbfs.engines.base import Engine
from oocbfs.errors import BudgetError
from oocbfs.formats.container.cut import Cut
from oocbfs.gpu.result import DeviceDirection
from oocbfs.gpu.search import fill, follow_schedule, run_of, timed
from oocbfs.graph.rows import load_rows
from oocbfs.memory import format_size
from oocbfs.plan.host import pinnable_bytes
from oocbfs.plan.shape import sides_of
from oocbfs.query import Output, Query, Run
from oocbfs.settings import Settings

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.kernels.rows import Rows


class _Devices(Engine):
    def settle(self, settings: Settings) -> Settings:
        return replace(settings, engine="cuda") if settings.engine == "auto" else settings

    def refusal(self, graph: StoredGraph | StoredShards, settings: Settings) -> str | None:
        count = len(settings.devices or ())
        if graph.cluster is not None:
            return "--devices are of this machine: leave out --cluster, or --devices"
        if isinstance(graph, StoredShards) and graph.num_shards != count:
            return (
                f"{graph.path}: has {graph.num_shards} shards, and each takes a device: name so "
                f"many, or cut the graph again with 'oocbfs shard --parts {count}'"
            )
        return None

    def run(
        self, graph: StoredGraph | StoredShards, query: Query, out: Output, settings: Settings
    ) -> Run:
        """Fill levels and parents of stored vertices; the next search finds the graph there."""
        engine, names = settings.engine, settings.devices or ()
        where = (settings.vram, settings.resident_tails, settings.memory)

        def load() -> DevicesBfs:
            return _load(graph, engine, names, settings, with_parents=query.parents)

        with graph.kept_search.use((engine, names, query.parents, *where), load) as search:
            for device in search.devices:
                follow_schedule(device, settings)
            searching = partial(search.run, direction=DeviceDirection(query.direction))
            done, seconds = timed(graph, searching, query)
            fill(out, done)
            note = next((shard.note for shard in search.shards if shard.note), None)
        return run_of(engine, done, seconds)._replace(note=note)


def _load(
    graph: StoredGraph | StoredShards,
    engine: str,
    names: Sequence[int],
    settings: Settings,
    *,
    with_parents: bool,
) -> DevicesBfs:
    """Bring a shard to each device, one after the other."""
    pinnable = pinnable_bytes(graph, settings.memory, with_parents=with_parents)
    tail_bytes = graph.sizes.tail_bytes
    if tail_bytes > pinnable:
        raise BudgetError(
            f"{graph.path}: the host must hold all tails, {format_size(tail_bytes)}, to cut "
            f"them to GPUs, and {format_size(max(0, pinnable))} may be taken: leave out --devices"
        )
    cut = Cut(graph.num_vertices, len(names))

    def rows_of(shard: int) -> list[Rows]:
        if not isinstance(graph, StoredShards):
            return [cut_rows(side, cut, shard) for side in sides_of(graph)]
        sides = (False, True) if graph.directed else (False,)
        return [load_rows(graph.shard(shard), transposed=side) for side in sides]

    return load_shards(cut, rows_of, engine, names, settings, with_parents=with_parents)


ENGINES = {"devices": _Devices("devices")}
