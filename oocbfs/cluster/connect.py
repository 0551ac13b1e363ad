"""From what a user calls a cluster to an exchange; the core knows each by its name only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.exchange import Exchange
from oocbfs.cluster.here import Here
from oocbfs.cluster.shard import ShardRef
from oocbfs.errors import QueryError


class Kind(NamedTuple):
    """A kind of cluster: how it is written, and the class that reaches it, imported when used.

    The class is called with the text, references to the shards, and the degrees of all vertices.
    """

    pattern: str
    shown: str
    module: str
    name: str


EXCHANGES = (Kind(r"local:\d+", "local:N", "oocbfs.cluster.local", "LocalProcesses"),)


def connect(cluster: str | None, refs: Sequence[ShardRef], degrees: NDArray[np.uint32]) -> Exchange:
    """Reach the shards of a graph; None is in this process.

    Raises
    ------
    QueryError
        If there is no such kind of cluster.
    ClusterError
        If it cannot be reached.
    """
    if cluster is None:
        return Here(refs, degrees)
    for kind in EXCHANGES:
        if re.fullmatch(kind.pattern, cluster):
            made: Exchange = getattr(import_module(kind.module), kind.name)(cluster, refs, degrees)
            return made
    known = ", ".join(kind.shown for kind in EXCHANGES)
    raise QueryError(f"there is no cluster {cluster!r}: write it as one of {known}")
