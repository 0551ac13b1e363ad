"""What every open graph can be asked, in one file or in parts; results hold on to it."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.edges import Ids
from oocbfs.graph.vertices import Vertices


class AnyGraph(Vertices, ABC):
    """A graph whose vertices have names, degrees and neighbours."""

    num_edges: int
    directed: bool

    @property
    @abstractmethod
    def degrees(self) -> NDArray[np.uint32]:
        """Number of neighbours of each stored vertex; out-neighbours if the graph is directed."""

    @abstractmethod
    def degree(self, vertex: int) -> int:
        """Count the neighbours of a vertex; out-neighbours if the graph is directed."""

    @abstractmethod
    def neighbors(self, vertex: int) -> Ids:
        """Ids of a vertex's neighbours, ascending; out-neighbours if the graph is directed."""

    @abstractmethod
    def in_neighbors(self, vertex: int) -> Ids:
        """Ids of a vertex's in-neighbours, ascending; its neighbours if the graph is undirected."""
