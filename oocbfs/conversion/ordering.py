"""Make the orders in which a graph's vertices may be stored, and choose one of them."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

import numpy as np
from numpy.typing import DTypeLike, NDArray

from oocbfs.conversion.clustering import excess_clustering
from oocbfs.conversion.community_order import LAYERS, ROUNDS, TRIAL, community_order, scattered
from oocbfs.conversion.local_order import local_order
from oocbfs.conversion.neighbours import Neighbours
from oocbfs.conversion.order import NO_ORDER, stored_at_for
from oocbfs.conversion.order_choice import (
    OrderChoice,
    choose_order,
    is_clustered,
    judge_kept_order,
    looks_like_mesh,
    may_have_communities,
    saves_much,
)
from oocbfs.conversion.order_sample import Candidate, OrderSample, Size
from oocbfs.conversion.resources import Resources
from oocbfs.conversion.sorted_edges import Side, SortedEdges
from oocbfs.formats.container.layout import Order

_log = logging.getLogger(__name__)
_BY_DEGREE = (Order.NATURAL, Order.DEGREE, Order.DBG)
Places = NDArray[np.uint32]


class Ordering:
    """Orders of the vertices of sorted edges; ``spilled_bytes`` counts what went to disk."""

    def __init__(
        self,
        resources: Resources,
        edges: SortedEdges,
        column_bits: int,
        *,
        codec: str,
        budget_bytes: int,
    ) -> None:
        self._resources, self._edges, self._column_bits = resources, edges, column_bits
        self._codec, self._budget_bytes = codec, budget_bytes
        self.spilled_bytes = 0

    def place(self, order: Order) -> Places:
        """Return the position of each vertex in an order; nothing in the natural one."""
        if order is Order.LOCAL:
            with (
                self._neighbours(NO_ORDER, np.uint64) as neighbours,
                self._resources.phases("local", None, "vertex"),
            ):
                return local_order(neighbours)
        if order is Order.COMMUNITIES:
            with self._scattered() as neighbours:
                return self._communities(neighbours, LAYERS)
        with self._resources.phases("order", None, "row"):
            return self._by_degree(order)

    def choose(self) -> tuple[OrderChoice, Places]:
        """Choose the order that is smallest, and return the positions in it."""
        edges = self._edges
        if not edges.num_edges:
            return OrderChoice(Order.NATURAL, "the graph has no edges", {}), NO_ORDER
        made: dict[Order, Places] = {}
        if looks_like_mesh(edges.total_degrees):
            made[Order.LOCAL] = self.place(Order.LOCAL)
        candidates = [Candidate(order, self._by_degree) for order in _BY_DEGREE]
        candidates += [Candidate(order, made.__getitem__) for order in made]
        with self._resources.phases("order", None, "row"):
            sample = OrderSample(edges, self._column_bits, self._codec)
            sizes = sample.measure(candidates)
            natural = sample.arcs_of(0)
            del sample
            # Who wants a file as it is does not want to wait for a smaller one.
            tries = (
                self._codec != "raw"
                and may_have_communities(sizes, edges.num_arcs(Side.BOTH))
                and is_clustered(excess_clustering(edges, self._column_bits, natural))
            )
            del natural
        if tries:
            made |= self._try_communities(sizes)
        choice = choose_order(sizes)
        order = choice.order
        return choice, made[order] if order in made else self.place(order)

    def judge(self, order: Order, stored_at: Places) -> OrderChoice:
        """Compare an order that is kept with others."""
        candidates = [Candidate(order, self._by_degree) for order in _BY_DEGREE]
        candidates.append(Candidate(order, lambda _: stored_at, "kept"))
        sample = OrderSample(self._edges, self._column_bits, self._codec)
        return judge_kept_order(sample.measure(candidates), order)

    def _by_degree(self, order: Order) -> Places:
        return stored_at_for(order, self._edges.total_degrees)

    def _try_communities(self, sizes: dict[str, Size]) -> dict[Order, Places]:
        """Order by communities if one layer of them saves much; ``sizes`` get what that takes."""
        with self._scattered() as neighbours:
            start = time.perf_counter()
            made = {Order.COMMUNITIES: self._communities(neighbours, TRIAL)}
            seconds = (time.perf_counter() - start) * len(LAYERS) / len(TRIAL)
            with self._resources.phases("order", None, "row"):
                sample = OrderSample(self._edges, self._column_bits, self._codec)
                sizes |= sample.measure([Candidate(Order.COMMUNITIES, made.__getitem__)])
            if not saves_much(sizes):
                return {}
            made.clear()
            del sample
            _log.info(
                "ordering by communities, which reads all edges %d times: about %.0f s; any other "
                "--order does without",
                len(LAYERS) * ROUNDS,
                seconds,
            )
            return {Order.COMMUNITIES: self._communities(neighbours, LAYERS)}

    def _communities(self, neighbours: Neighbours, layers: Sequence[int]) -> Places:
        total = len(layers) * ROUNDS * self._edges.num_arcs(Side.BOTH)
        with self._resources.phases("communities", total, "edge") as bar:
            return community_order(neighbours, layers, self._resources.plan.threads, bar.update)

    @contextmanager
    def _scattered(self) -> Iterator[Neighbours]:
        """Sort the arcs of vertices by numbers that say nothing about their ids."""
        numbers = scattered(self._edges.out_degrees.size)
        with self._neighbours(numbers, np.uint32) as neighbours:
            del numbers
            yield neighbours

    @contextmanager
    def _neighbours(self, stored_at: Places, lengths: DTypeLike) -> Iterator[Neighbours]:
        """Sort the arcs both ways, as an order stores them."""
        edges = self._edges
        sorter = edges.sort_arcs(
            "neighbours", Side.BOTH, stored_at, budget_bytes=self._budget_bytes, keep=True
        )
        neighbours = Neighbours(
            self._resources.folder, edges.out_degrees.size, self._column_bits, lengths
        )
        with closing(neighbours):
            with self._resources.phases("neighbours", edges.num_arcs(Side.BOTH), "edge") as bar:
                for arcs in sorter.drain(np.copy):
                    neighbours.add(arcs)
                    bar.update(arcs.size)
            self.spilled_bytes += sorter.spilled_bytes + neighbours.num_bytes
            yield neighbours
