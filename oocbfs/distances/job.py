"""All that is asked of a graph's distances at once: bounds, sources, the top; resumable."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.distances.central import By, Central, Top
from oocbfs.distances.code import CODE
from oocbfs.distances.distribution import DistanceDistribution, distribution_of, most_distant
from oocbfs.distances.eccentricity import UNKNOWN, Eccentricities, Extremes
from oocbfs.distances.estimates import Estimate, Estimates
from oocbfs.distances.intervals import sources_for
from oocbfs.distances.measures import Measures, check_confidence
from oocbfs.distances.scope import Scope, scope_of
from oocbfs.distances.searches import Searches
from oocbfs.distances.sources import Sources, choose
from oocbfs.distances.state import read_state, take_stage, write_state
from oocbfs.errors import QueryError
from oocbfs.graph.vertices import Vertex

EXACT = ("diameter", "radius", "center", "eccentricities", "closeness")
_log = logging.getLogger(__name__)
_STAGES = {"bounds": "eccentricities", "sources": "the distribution", "top": "the most central"}
# So many searches may take long.
_MANY = 10_000
# Between two writes of what is known: at least so long, and so many times as long as one took.
SAVE_SECONDS = 5.0
_SAVING_SHARE = 20


@dataclass(frozen=True)
class Question:
    """What is asked."""

    exact: tuple[str, ...] = ("diameter", "radius")
    samples: int | None = 256
    error: float | None = None
    confidence: float = 0.95
    component: Vertex = "largest"
    top: int = 0
    by: By = "harmonic"
    # Whether closeness and harmonic centrality of all vertices are estimated from the sources.
    closeness: bool = False
    seed: int = 1

    def check(self) -> None:
        """Refuse what cannot be asked."""
        for name in self.exact:
            if name not in EXACT:
                raise QueryError(f"{name} is not found exactly: name some of {', '.join(EXACT)}")
        if self.closeness and "closeness" in self.exact:
            raise QueryError("closeness is found exactly or estimated: leave one out")
        check_confidence(self.confidence)

    def num_sources(self, num_vertices: int) -> int:
        """Return how many of the vertices of a scope are searched from."""
        if "closeness" in self.exact:
            return num_vertices
        if self.error is not None:
            return min(num_vertices, sources_for(self.error, self.confidence))
        return num_vertices if self.samples is None else self.samples

    def asked(self, checksum: int) -> dict[str, Any]:
        """Return the question as it is kept beside what is known."""
        return {"graph": checksum, **vars(self), "exact": sorted(self.exact)}


@dataclass
class Answer:
    """What was found; before the end, what is certain."""

    scope: Scope
    extremes: Extremes | None = None
    center: list[Any] = field(default_factory=list)
    distribution: DistanceDistribution | None = None
    top: list[Central] = field(default_factory=list)
    eccentricities: NDArray[np.int32] | None = None
    sources: Sources | None = None
    closeness: Estimate | None = None
    harmonic: Estimate | None = None
    searched: int = 0
    # Bytes of tails read from disk by this run.
    disk_bytes: int = 0
    seconds: float = 0.0
    resumed: bool = False
    with_closeness: bool = False
    # How far it is, in words.
    stage: str = ""


class Job:
    """A question to a graph, and how far it is."""

    def __init__(
        self,
        graph: Measures,
        question: Question,
        *,
        state: str | os.PathLike[str] | None = None,
        resume: bool = False,
        **how: Any,
    ) -> None:
        question.check()
        self._graph = graph
        self._question = question
        self._how = how
        self._path = None if state is None else Path(state)
        self._asked = question.asked(graph._stored.checksum)
        self._known: dict[str, NDArray[Any]] = {}
        plan = graph._plan_distances(CODE, question.num_sources(graph.num_vertices), **how)
        known = None
        if resume and self._path:
            known = read_state(self._path, self._asked, plan.arrays)
        if known is not None:
            self._known = known
        self._save_at = time.perf_counter() + SAVE_SECONDS
        self._stage: tuple[str, Any] | None = None
        scope = scope_of(graph, question.component, plan=plan, **how)
        self.answer = Answer(scope, resumed=known is not None, disk_bytes=scope.disk_bytes)
        if not scope.num_vertices:
            raise QueryError(f"{graph.path}: has no vertex, and so no distances")

    def run(self, tell: Callable[[Answer], object] = lambda answer: None) -> Answer:
        """Find what is left to be found; ``tell`` hears of every group of searches.

        What is known is kept now and then, and when something ends it early; the file is removed
        when all is found.
        """
        start = time.perf_counter()
        self._tell = tell
        try:
            self._find_bounds()
            self._find_distribution()
            self._find_top()
        except BaseException:
            self._save()
            raise
        if self._path is not None:
            with suppress(FileNotFoundError):
                self._path.unlink()
        self.answer.seconds = time.perf_counter() - start
        return self.answer

    @contextmanager
    def _searches(self, *, inward: bool = False) -> Iterator[Searches]:
        with Searches(self._graph, self.answer.scope, inward=inward, **self._how) as searches:
            yield searches
            self.answer.disk_bytes += searches.disk_bytes

    def _begin(self, name: str, stage: Any) -> None:
        """Begin a stage, or go on with it."""
        if known := take_stage(self._known, name):
            stage.go_on(known)
        self._stage = name, stage
        if stage.waiting > _MANY:
            _log.info("%s: at most %s searches are left", _STAGES[name], f"{stage.waiting:,}")

    def _after_group(self, stage: Any) -> None:
        """Say how far a stage is, and keep it now and then."""
        if isinstance(stage, Eccentricities):
            self.answer.extremes = stage.extremes()
            self.answer.stage = self.answer.extremes.text()
        elif isinstance(stage, Sources):
            self.answer.stage = f"{stage.done:,} of {stage.positions.size:,} sources"
        else:
            self.answer.stage = (
                f"the top: {stage.searched:,} searches, {stage.cut:,} cut short, "
                f"{stage.waiting:,} vertices may be on it"
            )
        self._tell(self.answer)
        if time.perf_counter() > self._save_at:
            self._save()

    def _end(self) -> None:
        """Keep what a stage found."""
        assert self._stage is not None
        name, stage = self._stage
        self._known |= {f"{name}.{part}": found for part, found in stage.state().items()}
        self._stage = None

    def _save(self) -> None:
        if self._path is None:
            return
        start = time.perf_counter()
        known = dict(self._known)
        if self._stage is not None:
            name, stage = self._stage
            known |= {f"{name}.{part}": found for part, found in stage.state().items()}
        if known:
            write_state(self._path, self._asked, known)
        end = time.perf_counter()
        self._save_at = end + max(SAVE_SECONDS, _SAVING_SHARE * (end - start))

    def _find_bounds(self) -> None:
        exact = set(self._question.exact)
        wanted = exact - {"closeness"}
        if not wanted:
            return
        answer = self.answer
        with self._searches() as searches:
            found = Eccentricities(searches, wanted)
            self._begin("bounds", found)
            found.run(self._after_group)
            answer.extremes = found.extremes()
            answer.searched += found.searched
        if "center" in exact and found.least != UNKNOWN:
            positions = found.positions_at(found.least)
            answer.center = self._graph._called(positions).tolist()
        if "eccentricities" in exact:
            answer.eccentricities = found.eccentricities()
        self._end()

    def _find_distribution(self) -> None:
        question, answer = self._question, self.answer
        inward = "closeness" in question.exact
        with self._searches(inward=inward) as searches:
            count = question.num_sources(answer.scope.num_vertices)
            estimates = Estimates(answer.scope, searches.threads) if question.closeness else None
            found = Sources(searches, choose(answer.scope, count, question.seed), estimates)
            self._begin("sources", found)
            found.run(self._after_group)
            most = most_distant(searches, found)
        if estimates is not None:
            # The true diameter is no more than that, and often known.
            largest = most if answer.extremes is None else min(most, answer.extremes.diameter[1])
            sampled = found.positions.size, question.confidence
            answer.closeness = estimates.closeness(*sampled, largest)
            answer.harmonic = estimates.harmonic(*sampled)
        answer.searched += found.done
        answer.sources, answer.with_closeness = found, inward
        stored = self._graph._stored
        answer.distribution = distribution_of(stored, found, question.confidence, most)
        self._end()

    def _find_top(self) -> None:
        question = self._question
        if not question.top:
            return
        with self._searches(inward=True) as searches:
            found = Top(searches, question.top, question.by)
            self._begin("top", found)
            found.run(self._after_group)
        self.answer.searched += found.searched
        self.answer.top = self._graph._named(found.top())
        self._end()
