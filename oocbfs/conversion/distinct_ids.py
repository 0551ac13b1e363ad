"""The ids of all edges and graphs, sorted, where they are too large for a bitmap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from oocbfs.conversion.edge_runs import SAMPLE_EDGES, EdgeRuns
from oocbfs.conversion.graph_run import GraphRun
from oocbfs.conversion.plan import LISTED_BYTES, VERTEX_BYTES
from oocbfs.conversion.resources import Resources
from oocbfs.formats.edges import Ids


def distinct_ids(resources: Resources, log: EdgeRuns, runs: Sequence[GraphRun]) -> tuple[Ids, int]:
    """Sort the ids of all edges and graphs; also tells how many bytes went to disk."""
    held_bytes = resources.plan.held_bytes
    sample = log.sample(SAMPLE_EDGES)
    listed = sum(run.stored.num_vertices for run in runs)
    stride = max(1, listed // SAMPLE_EDGES)
    some = (ids[::stride].copy() for run in runs for ids in run.named_ids())
    sample_ids = np.concatenate((sample.sources, sample.targets, *some))
    num_ids = 2 * log.num_edges + listed
    sorter = resources.key_sorter(sample_ids, num_ids, held_bytes // 4)
    chunks, count = [np.empty(0, np.uint64)], 0
    id_bytes = LISTED_BYTES + VERTEX_BYTES[False]
    with resources.phases("ids", num_ids, "id") as bar:
        for ids in log.ids():
            sorter.add(ids)
            bar.update(ids.size)
        for run in runs:
            for ids in run.named_ids():
                sorter.add(ids)
        for chunk in sorter.drain(np.copy):
            count += chunk.size
            if count <= held_bytes // id_bytes:  # otherwise they are only counted
                chunks.append(chunk)
    resources.require(id_bytes * count, f"{count:,} ids with gaps")
    return np.concatenate(chunks), sorter.spilled_bytes
