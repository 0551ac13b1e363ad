"""Tasks that any process can do that reads the files: small, stateless, and repeatable.

A process opens a shard when it first gets a task for it, and keeps it. All else is in the task.
"""

from __future__ import annotations

import atexit
from dataclasses import dataclass
from typing import Literal

import numpy as np

from oocbfs.cluster.budget import ON_DEVICES, choose_shard_engine
from oocbfs.cluster.messages import pack, unpack
from oocbfs.cluster.shard import Shard, ShardRef, VertexArray, Work, full_bitmap
from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.container.cut import Cut
from oocbfs.formats.container.reader import Container
from oocbfs.kernels.shards.merge import set_bits
from oocbfs.version import __version__

_NONE = b""


@dataclass(frozen=True)
class Task:
    """One step on one shard; bitmaps are messages, see ``cluster.messages``.

    A forest has the largest component for its frontier.
    """

    ref: ShardRef
    level: int
    step: Literal["bottom_up", "top_down", "heads", "forest"]
    frontier: bytes = _NONE
    visited: bytes = _NONE
    parents: bool = False

    @property
    def name(self) -> str:
        """Name the task, for whoever watches."""
        return f"{self.step}-{self.level}-shard-{self.ref.number}"

    @property
    def num_bytes(self) -> int:
        """Bytes of its bitmaps."""
        return len(self.frontier) + len(self.visited)


@dataclass(frozen=True)
class Reply:
    """What a task found: bottom-up, own vertices; top-down, vertices of all shards.

    Parents are 32-bit numbers; a top-down step that does not know them has none. Heads are 32-bit
    numbers, as are the vertices of a forest, and their roots, which stand for parents.
    """

    number: int
    found: bytes
    parents: bytes | None
    work: Work

    @property
    def num_bytes(self) -> int:
        """Bytes of its bitmaps and parents."""
        return len(self.found) + len(self.parents or b"")

    @property
    def parent_array(self) -> VertexArray | None:
        """The parents, one for each vertex that was found, in their order."""
        return None if self.parents is None else np.frombuffer(self.parents, np.uint32)


_open: dict[ShardRef, Shard] = {}


def shard_of(ref: ShardRef) -> Shard:
    """Open a shard, or give the one that this process has open already."""
    if ref not in _open:
        if not _open:
            atexit.register(forget)
        _open[ref] = open_shard(ref)
    return _open[ref]


def forget() -> None:
    """Close all shards that this process has open."""
    while _open:
        _open.popitem()[1].close()


def open_shard(ref: ShardRef) -> Shard:
    """Open a shard on its engine.

    Raises
    ------
    FormatError
        If there is another file in its place, or it is damaged.
    QueryError
        If this process is another version of oocbfs.
    BudgetError
        If its memory is too small; says how much is needed.
    """
    if ref.version != __version__:
        raise QueryError(
            f"{ref.path}: this worker is oocbfs {__version__}, and who asks it is {ref.version}: "
            "install the same version everywhere"
        )
    container = Container(ref.path)
    held = container.shard
    if (
        held is None
        or (held.number, held.cut) != (ref.number, Cut(ref.num_vertices, ref.num_shards))
        or int(container.header["checksum"]) != ref.checksum
    ):
        container.close()
        raise FormatError(
            f"{ref.path}: is not shard {ref.number} of {ref.num_shards} that the manifest names: "
            "cut the graph again with 'oocbfs shard'"
        )
    try:
        engine = choose_shard_engine(container, ref)
        if engine in ON_DEVICES:
            from oocbfs.cluster.shards.gpu import GpuShard

            return GpuShard(container, ref)
        if engine == "disk":
            from oocbfs.cluster.shards.disk import DiskShard

            return DiskShard(container, ref.threads)
        from oocbfs.cluster.shards.cpu import CpuShard

        return CpuShard(container, ref.threads)
    except BaseException:
        container.close()
        raise


def answer(task: Task) -> Reply:
    """Do a task, in any process."""
    shard = shard_of(task.ref)
    cut, number = shard.cut, shard.number
    if task.step == "heads":
        return Reply(number, np.concatenate(shard.heads()).tobytes(), None, Work())
    if task.step != "top_down":
        frontier = full_bitmap(cut)
        frontier[:-1] = unpack(task.frontier, cut.num_words)
    if task.step == "forest":
        forest = shard.forest(frontier)
        return Reply(number, forest.vertices.tobytes(), forest.roots.tobytes(), forest.work)
    if task.step == "bottom_up":
        visited = unpack(task.visited, cut.words_of(number))
        bottom_up = shard.bottom_up(frontier, visited, parents=task.parents)
        parents = None if bottom_up.parents is None else bottom_up.parents.tobytes()
        return Reply(number, pack(bottom_up.found), parents, bottom_up.work)
    top_down = shard.top_down(unpack(task.frontier, cut.words_of(number)), parents=task.parents)
    parents = None if top_down.parents is None else top_down.parents.tobytes()
    words = top_down.words
    if words is None:
        words = full_bitmap(cut)
        assert top_down.ids is not None
        set_bits(words, top_down.ids)
    return Reply(number, pack(words[:-1]), parents, top_down.work)
