"""A graph on a device, ready for searches by one method."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from oocbfs.gpu.device import Device, Memory
from oocbfs.gpu.result import GpuResult
from oocbfs.gpu.rows import struct_of
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.methods.axes import METHOD_STATE_STRUCT
from oocbfs.kernels.rows import Rows
from oocbfs.methods.choice import MethodChoice
from oocbfs.methods.programs import Program, Sizes
from oocbfs.methods.rows import MethodRows
from oocbfs.methods.run import Run
from oocbfs.results.counts import Counts, sum_counts
from oocbfs.results.levels import Beside


class MethodSearch:
    """A context manager: what is pinned is let go at its end."""

    def __init__(
        self,
        device: Device,
        choice: MethodChoice,
        program: Program,
        rows: Rows,
        in_rows: Rows,
    ) -> None:
        self.device, self.choice, self.program = device, choice, program
        self.num_vertices = rows.heads.size
        with ExitStack() as stack:
            self.out_rows = self.in_rows = MethodRows(device, rows, choice.method.rows, stack)
            if program.pulls and in_rows is not rows:
                self.in_rows = MethodRows(device, in_rows, choice.method.rows, stack)
            self.num_arcs = int(self.out_rows.offsets[-1])
            self._prepare()
            self._stack = stack.pop_all()

    def _prepare(self) -> None:
        largest_block = self.program.largest_block(self.in_rows.offsets)
        sizes = Sizes(self.num_vertices, self.num_arcs, largest_block)
        shapes = self.program.arrays(sizes)
        self.memory: dict[str, Memory] = {
            # The emulator does not count the atomics of what counts.
            name: self.device.allocate(size, dtype, ".tallies" if name == "tallies" else name)
            for name, (size, dtype) in shapes.items()
        }
        self.arguments = struct_of(METHOD_STATE_STRUCT, self.memory)
        self.arguments["out_offsets"] = self.out_rows.struct["offsets"]
        self.arguments["queue_capacity"] = self.memory["next_queue"].size
        if "next_edges" in self.memory:
            self.arguments["edge_capacity"] = self.memory["next_edges"].size

    def inspect(self, memory: Memory) -> NDArray[Any]:
        """Copy back without counting that: what is counted must not change by counting."""
        usage = self.device.usage
        before = usage.read_backs, usage.read_back_bytes
        copy = self.device.download(memory)
        usage.read_backs, usage.read_back_bytes = before
        return copy

    def run(
        self,
        sources: NDArray[np.uint32],
        *,
        max_depth: int | None = None,
        target: int | None = None,
    ) -> GpuResult:
        """Search from stored vertices; stop after a level, or after the one with a vertex."""
        run = Run(self, np.unique(np.asarray(sources, np.uint32)), max_depth, target)
        self.program.loop(run)
        levels: NDArray[np.int32] = self.device.download(self.memory["levels"]).view(np.int32)
        levels = levels[: self.num_vertices]
        parents = None
        if self.program.with_parents:
            parents = self.device.download(self.memory["parents"])[: self.num_vertices]
        run.finish()
        stop = run.max_depth
        if target is not None and levels[target] >= 0:
            stop = min(stop, int(levels[target]))
        # Some methods run ahead of the level they are asked to stop at.
        beyond = levels > stop
        sizes = np.bincount(levels[levels >= 0]).astype(np.int64)
        levels[beyond] = -1
        if parents is not None:
            parents[beyond] = NO_HEAD
        depth = min(sizes.size, stop)
        records, beside = self._complete(run, sizes, depth)
        return GpuResult(
            levels=levels,
            parents=parents,
            level_sizes=sizes[: stop + 1].tolist(),
            depth=depth,
            records=records,
            tiers=run.log.tiers,
            beside=beside,
            around=run.around,
        )

    def _complete(
        self, run: Run, sizes: NDArray[np.int64], depth: int
    ) -> tuple[NDArray[np.void], list[Beside]]:
        """Bring steps and levels together: the last record takes what is left of either.

        Methods that contract first, or go on until nothing changes, need a step more than there are
        levels; passes that find several levels need fewer.
        """
        records = run.log.records
        records["seconds"] = list(map(self.device.seconds_between, run.marks, run.marks[1:]))
        counts = _count_duplicates(run, sizes)
        if not records.size:
            return records, []
        last = max(1, min(depth, records.size)) - 1
        for column in ("edges", "host_bytes", "seconds"):
            records[column][last] = records[column][last:].sum()
        records["num_levels"][last] += max(0, depth - last - 1)
        kept = [*counts[:last], sum_counts(counts[last:])]
        beside = [
            replace(one, counts=complete)
            for one, complete in zip(run.log.beside, kept, strict=False)
        ]
        return records[: last + 1], beside

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stack.close()
        self.device.close()


def _count_duplicates(run: Run, sizes: NDArray[np.int64]) -> list[Counts]:
    """Return the counts of each step, with its claims beyond the vertices that it found.

    A step that does not claim writes every vertex once. It may find some of the next level early,
    which the next step then does not find.
    """
    early, counted = 0, list[Counts]()
    first = run.level - len(run.log)
    for level, (beside, claims) in enumerate(zip(run.log.beside, run.claims, strict=True), first):
        counts = beside.counts or Counts()
        size = int(sizes[level]) if level < sizes.size else 0
        more = (counts.claims_won or 0) - (size - early)
        early = max(0, more) if claims is False else 0
        duplicates = {True: more, False: 0, None: None}[claims]
        counted.append(replace(counts, duplicates=duplicates))
    return counted
