"""Kernels of components and of many sources broken on purpose, and the tests that must notice."""

from __future__ import annotations

from oocbfs.kernels.emulator.build import Checks
from tests.support.mutants.mutant import Mutant

LABELS = "gpu/test_gpu_components.py::test_labels_under_ten_schedules[1]"
LABEL_RACES = "gpu/test_gpu_components.py::test_no_races[1]"
_MANY = "gpu/test_gpu_many.py::test_levels_under_ten_schedules[{}]"
TOP_DOWN = _MANY.format("1-1e-09-False")
BOTTOM_UP = _MANY.format("5-1000000000.0-False")

OTHER_MUTANTS = [
    Mutant(
        "trees joined without an atomic",
        "components/forest.cuh",
        "above = atomicMin(&forest.labels[high], low);",
        "above = label_of(forest, high), shorten(forest, high, low);",
        LABELS,
        "Arrays are not equal",
        Checks.RACES,
    ),
    Mutant(
        "a lane that comes too late gives up",
        "components/forest.cuh",
        "if (above == high) return low;",
        "return low;",
        LABELS,
        "Arrays are not equal",
        Checks.RACES,
    ),
    Mutant(
        "labels read without volatile",
        "components/forest.cuh",
        "return *(volatile u32*)&forest.labels[v];",
        "return forest.labels[v];",
        LABEL_RACES,
        "race on device memory",
    ),
    Mutant(
        "labels shortened without volatile",
        "components/forest.cuh",
        "*(volatile u32*)&forest.labels[v] = label;",
        "forest.labels[v] = label;",
        LABEL_RACES,
        "race on device memory",
    ),
    Mutant(
        "heads larger than their vertex forgotten",
        "components/link.cu",
        "head > v || !only_larger",
        "!only_larger",
        LABELS,
        "Arrays are not equal",
    ),
    Mutant(
        "segments after the first forgotten",
        "components/tails.cu",
        "segment * SEGMENT_BYTES < row.end - row.begin; segment++",
        "segment < 1; segment++",
        "gpu/test_gpu_components.py::test_rows_outside_the_largest_are_decoded_once_and_wholly",
        "assert steps[",
    ),
    Mutant(
        "a warp stops at any tree",
        "components/tails.cu",
        "== largest || found",
        "!= vertex || found",
        "gpu/test_gpu_components.py::test_rows_outside_the_largest_are_decoded_once_and_wholly",
        "Arrays are not equal|assert steps[",
    ),
    Mutant(
        "a varint cut short in the sample",
        "components/firsts.cu",
        "span.end = span.begin + MAX_VARINT_BYTES;",
        "span.end = span.begin + 1;",
        LABELS,
        "a row is damaged",
    ),
    Mutant(
        "mark without an atomic",
        "many/many.cuh",
        "if (fresh & ~*(volatile u64*)word) atomicOr(word, fresh);",
        "*word |= fresh;",
        "gpu/test_gpu_many.py::test_no_races[1e-09]",
        "race on device memory",
    ),
    Mutant(
        "a head that answers one source is taken to answer all",
        "many/heads.cu",
        "missed = got != wanted &&",
        "missed = !got &&",
        BOTTOM_UP,
        "assert np.array_equal(spread, levels)",
    ),
    Mutant(
        "lanes keep what they found to themselves",
        "many/tails.cu",
        "found |= join_words(met);",
        "join_words(met);\n    found |= __shfl_sync(FULL_WARP, met, 0);",
        BOTTOM_UP,
        "assert np.array_equal(spread, levels)",
    ),
    Mutant(
        "segments of later hubs taken for those of the first",
        "many/top_down_hubs.cu",
        "segment - many.hub_segments[hub]",
        "segment",
        TOP_DOWN,
        "assert|Error",
    ),
    Mutant(
        "finds of the last level stay",
        "many/commit.cu",
        "      if (fresh) many.next_frontier[v] = 0;\n",
        "",
        "gpu/test_gpu_many.py::test_deep_graphs_are_given_up",
        "assert not",
    ),
]
