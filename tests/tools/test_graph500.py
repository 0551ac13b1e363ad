"""``oocbfs graph500``: what is counted, checked and printed is what the specification asks for."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from numpy.typing import NDArray

from oocbfs import graph500
from oocbfs.errors import QueryError
from oocbfs.generate import generators
from tests.support.command_line import call

# The names that the reference code prints, in its order.
BLOCK = """\
SCALE:                          %d
edgefactor:                     %d
NBFS:                           %d
graph_generation:               %g
num_mpi_processes:              %d
construction_time:              %g
bfs  min_time:                  %g
bfs  firstquartile_time:        %g
bfs  median_time:               %g
bfs  thirdquartile_time:        %g
bfs  max_time:                  %g
bfs  mean_time:                 %g
bfs  stddev_time:               %g
min_nedge:                      %g
firstquartile_nedge:            %g
median_nedge:                   %g
thirdquartile_nedge:            %g
max_nedge:                      %g
mean_nedge:                     %g
stddev_nedge:                   %g
bfs  min_TEPS:                  %g
bfs  firstquartile_TEPS:        %g
bfs  median_TEPS:               %g
bfs  thirdquartile_TEPS:        %g
bfs  max_TEPS:                  %g
bfs  harmonic_mean_TEPS:     !  %g
bfs  harmonic_stddev_TEPS:      %g
bfs  min_validate:              %g
bfs  firstquartile_validate:    %g
bfs  median_validate:           %g
bfs  thirdquartile_validate:    %g
bfs  max_validate:              %g
bfs  mean_validate:             %g
bfs  stddev_validate:           %g
"""


def test_block() -> None:
    done = call("graph500", "--scale", 8, "--roots", 3, "--engine", "cpu")
    assert done.returncode == 0, done.stderr
    pattern = re.escape(BLOCK).replace("%d", r"\d+").replace("%g", r"[-+.e\d]+")
    assert re.fullmatch(pattern, done.stdout), done.stdout


def generated(scale: int, edge_factor: int, seed: int) -> NDArray[np.int64]:
    batches = list(generators.kron(scale, edge_factor, seed=seed, threads=1).batches())
    return np.concatenate([np.stack([b.sources, b.targets]) for b in batches], axis=1).astype(
        np.int64
    )


@pytest.mark.parametrize("engine", ["cpu", "disk", "emulator"])
def test_edges_are_counted_as_generated(engine: str) -> None:
    """With duplicates and loops, in the component of the root; here by a union of sets."""
    command = ("graph500", "--scale", 9, "--edge-factor", 1, "--roots", 40, "--seed", 5, "--json")
    done = call(*command, "--engine", engine)
    assert done.returncode == 0, done.stderr
    block = json.loads(done.stdout)
    edges = generated(9, 1, 5)
    component = np.arange(512)
    for _ in range(512):
        lowest = np.minimum(component[edges[0]], component[edges[1]])
        before = component.copy()
        np.minimum.at(component, edges[0], lowest)
        np.minimum.at(component, edges[1], lowest)
        if (before == component).all():
            break
    expected = [int((component[edges[0]] == component[root]).sum()) for root in block["roots"]]
    assert block["nedge"] == expected
    assert len(set(expected)) > 1  # so that not all roots are in one component
    # Fewer are left when each is counted once, and loops are not.
    largest = block["roots"][int(np.argmax(expected))]
    inside = edges[:, component[edges[0]] == component[largest]].T.tolist()
    assert len({frozenset(edge) for edge in inside if edge[0] != edge[1]}) < max(expected)
    assert (block["SCALE"], block["edgefactor"], block["NBFS"]) == (9, 1, 40)
    assert block["engine"] == engine
    assert len(set(block["roots"])) == 40
    teps = np.array(expected) / np.array(block["seconds"])
    assert block["bfs_harmonic_mean_TEPS"] == pytest.approx(40 / (1 / teps).sum())
    assert block["bfs_min_TEPS"] == pytest.approx(teps.min())
    assert block["bfs_max_TEPS"] == pytest.approx(teps.max())
    assert block["bfs_min_time"] <= block["bfs_median_time"] <= block["bfs_max_time"]
    assert block["construction_time"] > 0


def test_statistics_on_known_numbers() -> None:
    outcome = graph500.Graph500Result(
        scale=1,
        edge_factor=1,
        threads=1,
        engine="cpu",
        generation_seconds=0.0,
        construction_seconds=0.0,
        roots=[1, 2, 3, 4],
        seconds=np.array([1.0, 8.0, 4.0, 2.0]),
        validation_seconds=np.ones(4),
        edges=np.array([8.0, 8.0, 8.0, 8.0]),
    )
    block = outcome.statistics()
    assert block["bfs_median_time"] == 3
    assert block["bfs_firstquartile_time"] == 1.5
    assert block["bfs_thirdquartile_time"] == 6
    assert block["bfs_mean_time"] == 3.75
    # Rates by the time of an edge: the mean of two times is not that of two rates.
    assert block["bfs_median_TEPS"] == pytest.approx(8 / 3)
    assert block["bfs_firstquartile_TEPS"] == pytest.approx(8 / 6)
    assert block["bfs_min_TEPS"] == 1
    assert block["bfs_max_TEPS"] == 8
    assert block["bfs_harmonic_mean_TEPS"] == pytest.approx(8 / 3.75)
    inverse = np.array([1 / 8, 1, 1 / 2, 1 / 4])
    spread = inverse.std(ddof=1) / np.sqrt(3) / inverse.mean() ** 2
    assert block["bfs_harmonic_stddev_TEPS"] == pytest.approx(spread)


# A path 0 - 1 - 2 - 3 with a loop and a duplicate, and an edge apart from it.
ENDS = np.array([0, 1, 1, 2, 2, 1, 2, 3, 3, 3, 4, 5], np.uint64)
LEVELS, PARENTS = [0, 1, 2, 3, -1, -1], [0, 0, 1, 2, -1, -1]


def check(levels: list[int], parents: list[int]) -> int:
    arrays = np.array(levels, np.int32), np.array(parents, np.int64)
    return graph500.validate(0, *arrays, ENDS, 1)


def test_a_right_tree_passes() -> None:
    assert check(LEVELS, PARENTS) == 5


@pytest.mark.parametrize(
    ("levels", "parents", "problem"),
    [
        ([0, 1, 2, 3, -1, -1], [0, 0, 3, 2, -1, -1], "vertex 2 has a parent that is not one"),
        ([0, 1, 2, 2, -1, -1], [0, 0, 3, 2, -1, -1], "vertex 2 has a parent that is not one"),
        ([0, 1, 2, 0, -1, -1], [0, 0, 1, 3, -1, -1], "vertex 3 is the root, or is taken for it"),
        ([0, 1, 2, 3, -1, -1], [1, 0, 1, 2, -1, -1], "vertex 0 is the root, or is taken for it"),
        ([0, 1, 2, 3, -1, -1], [0, 0, 1, -1, -1, -1], "vertex 3 has a level and no parent"),
        ([0, 1, 2, -1, -1, -1], [0, 0, 1, 2, -1, -1], "vertex 3 has a level and no parent"),
        ([0, 1, 2, -1, -1, -1], [0, 0, 1, -1, -1, -1], "edge 3 leaves the tree"),
        ([0, 1, 2, 1, -1, -1], [0, 0, 1, 0, -1, -1], "no edge joins vertex 3 and its parent"),
        ([0, 1, 2, 3, 1, 2], [0, 0, 1, 2, 0, 4], "no edge joins vertex 4 and its parent"),
        ([0, 1, 2, 9, -1, -1], [0, 0, 1, 9, -1, -1], "vertex 3 has a parent that is not one"),
    ],
)
def test_wrong_trees(levels: list[int], parents: list[int], problem: str) -> None:
    """One for each rule: cycles, levels, edges that span too much or leave, edges that are not."""
    with pytest.raises(QueryError, match=f"validation of root 0 failed: .*{problem}"):
        check(levels, parents)


def test_edges_that_span_levels() -> None:
    ends = np.array([0, 1, 1, 2, 0, 2], np.uint64)
    arrays = np.array([0, 1, 2], np.int32), np.array([0, 0, 1], np.int64)
    with pytest.raises(QueryError, match="edge 2 spans more than one level"):
        graph500.validate(0, *arrays, ends, 1)
