"""Broken on purpose: rows that the warps of a block share."""

from __future__ import annotations

from tests.support.mutants.mutant import Mutant

_SHARED = "gpu/test_shared_rows.py::{}"
_LEFT = _SHARED.format("test_more_rows_are_left_than_a_block_lists[1]")
_FEW = _SHARED.format("test_rows_of_any_number_of_segments[small-3]")
_TWICE = _SHARED.format("test_a_vertex_found_in_several_segments_is_found_once")
_NOT_EQUAL = "Arrays are not equal"
_RACE = "race on shared memory"

SHARED_MUTANTS = [
    Mutant(
        "claims begin before all is decoded",
        "bfs/small_levels.cu",
        "rows, cursor);\n    __syncthreads();\n",
        "rows, cursor);\n",
        _FEW,
        f"{_RACE}|outside every allocation",
    ),
    Mutant(
        "the last share of what is decoded is nobody's",
        "bfs/small_levels.cu",
        "if (share < sharing) {",
        "if (share + 1 < sharing) {",
        _FEW,
        _NOT_EQUAL,
    ),
    Mutant(
        "what is left is searched before all is listed",
        "bfs/search.cuh",
        "  __syncthreads();\n  for (u32 i = warp_in_block(); i < left",
        "  for (u32 i = warp_in_block(); i < left",
        _LEFT,
        _RACE,
    ),
    Mutant(
        "the last segment that is left is forgotten",
        "bfs/search.cuh",
        "i < left.num_segments();",
        "i + 1 < left.num_segments();",
        _LEFT,
        _NOT_EQUAL,
    ),
    Mutant(
        "a full list takes more rows",
        "bfs/search.cuh",
        "return place < MOST_LEFT;",
        "return true;",
        _LEFT,
        _NOT_EQUAL,
    ),
    Mutant(
        "found in two segments, visited twice",
        "bfs/search.cuh",
        "found = !(atomicOr(&search.claimed[vertex >> 5], bit) & bit);",
        "atomicOr(&search.claimed[vertex >> 5], bit);",
        _TWICE,
        "race on device memory|outside every allocation|assert",
    ),
    Mutant(
        "the list of long rows is cleared while it is read",
        "bfs/expand.cuh",
        "    __syncthreads();\n    waiting.clear();",
        "    waiting.clear();",
        "gpu/test_gpu_bfs.py::test_no_races[2-DeviceDirection.TOP_DOWN-large]",
        _RACE,
    ),
]
