"""Broken on purpose: the cache of small levels, rows that are loaded in two steps, and counts."""

from __future__ import annotations

from tests.support.mutants.bfs_mutants import SMALL_RACES, TOP_DOWN
from tests.support.mutants.mutant import Mutant

_CACHE = "gpu/test_small_cache.py::{}"
_RACES = _CACHE.format("test_no_races[random-2]")
_MANY_TURNS = _CACHE.format("test_a_short_cache_under_schedules[2-random]")
_NOT_EQUAL = "assert np.array_equal(result.levels, expected)"
_WRONG_LOADS = "assert moved == expected"
_SECTORS = (
    "gpu/test_slow_bytes.py::test_sectors_equal_an_independent_count"
    "[2-DeviceDirection.BOTTOM_UP-32-0to0]"
)

CACHE_MUTANTS = [
    Mutant(
        "segments are shared before all longer rows are listed",
        "bfs/small_levels.cu",
        "if (__syncthreads_or(row.begin < row.end)) {",
        "if (row.begin < row.end || longer.counts) {",
        SMALL_RACES,
        "barriers|deadlock|race on",
    ),
    Mutant(
        "a level begins before all segments are done",
        "bfs/small_levels.cu",
        "        __syncthreads();\n        if (threadIdx.x == 0) longer.counts = 0;\n",
        "        if (threadIdx.x == 0) longer.counts = 0;\n",
        SMALL_RACES,
        "race on shared memory",
    ),
    Mutant(
        "neighbours of one word: the claim of the last for all",
        "bfs/expand.cuh",
        "before[k] = before[k + 1];",
        "before[k] = ~0u;",
        TOP_DOWN,
        "assert np.array_equal(result.levels, expected)",
    ),
    Mutant(
        "the frontier of small levels is measured with the one before",
        "bfs/small_levels.cu",
        "frontier_sectors[threadIdx.x] = 0;",
        "frontier_sectors[threadIdx.x] += 0;",
        _CACHE.format("test_small_levels_measure_their_last_frontier[device_range0]"),
        "Arrays are not equal",
    ),
    Mutant(
        "the first turn keeps the rows of the last one",
        "bfs/small_levels.cu",
        "for (u64 i = turns; i--;) {",
        "for (u64 i = 0; i < turns; i++) {",
        _MANY_TURNS,
        _NOT_EQUAL,
    ),
    Mutant(
        "later turns keep the rows of the first one",
        "bfs/small_levels.cu",
        "      if (i) own = lane_row(search, out_rows, begin, end, i, each);\n",
        "",
        _MANY_TURNS,
        _NOT_EQUAL,
    ),
    Mutant(
        "places are looked at before all claims are made",
        "bfs/cached.cuh",
        "    __syncthreads();\n    u32 shared = 0;",
        "    u32 shared = 0;",
        _RACES,
        "race on device memory",
    ),
    Mutant(
        "shared sectors are copied before they are there",
        "bfs/cached.cuh",
        "    do_listed(search, scratch, rows, total);\n    __syncthreads();\n",
        "    do_listed(search, scratch, rows, total);\n",
        _RACES,
        "race on device memory",
    ),
    Mutant(
        "warps that miss nothing skip the barriers",
        "bfs/cached.cuh",
        "if (__syncthreads_or((int)missing)) {",
        "__syncthreads();\n  if (__any_sync(FULL_WARP, (int)missing)) {",
        _RACES,
        "barriers|deadlock|race on",
    ),
    Mutant(
        "an empty place holds sector 0",
        "bfs/cached.cuh",
        "return tag >> TURN_BIT && ",
        "return ",
        _CACHE.format("test_a_short_cache_under_schedules[16-grid]"),
        "Error",
    ),
    Mutant(
        "every lane with a place fills it",
        "bfs/cached.cuh",
        "shared |= (u32)(has_place && !(claimed >> k & 1u)) << k;",
        "",
        _RACES,
        "race on device memory",
    ),
    Mutant(
        "the number of the turn is forgotten after a launch",
        "bfs/small_levels.cu",
        "    search.control[CONTROL_CACHE_TURNS] = turn;\n",
        "",
        _CACHE.format("test_the_cache_outlives_a_launch"),
        _WRONG_LOADS,
    ),
    Mutant(
        "who has no place loads twice",
        "bfs/cached.cuh",
        "const u64 action = has_place ? TO_FILL : TO_LOAD;",
        "const u64 action = TO_FILL;",
        _RACES,
        "race on device memory",
    ),
    Mutant(
        "tags of the search before are kept",
        "bfs/initialise.cu",
        "search.cache_tags[i] = 0;",
        "search.cache_tags[i] = search.cache_tags[i] + 0;",
        _CACHE.format("test_a_cache_that_is_large_enough_loads_every_sector_once"),
        "assert",
    ),
    Mutant(
        "what the next lane loaded is loaded again",
        "cuda/staged.cuh",
        "const bool is_there = lane_id() < 31 && right_first == first + 1;",
        "const bool is_there = false;",
        _SECTORS,
        "assert moved == expected_sectors",
    ),
    Mutant(
        "a row is not loaded for the one before it",
        "cuda/staged.cuh",
        " | (u64)(lane_id() && left_last == first);",
        ";",
        _SECTORS,
        "Error",
    ),
    Mutant(
        "a varint is read across the end of the first sector",
        "cuda/staged.cuh",
        "    while (row.length && row.bytes[row.length - 1] & 0x80u) row.length--;\n",
        "",
        _SECTORS,
        "Error",
    ),
    Mutant(
        "all second sectors are loaded",
        "bfs/search.cuh",
        "const bool goes_on = parent == NO_VERTEX && row.length",
        "const bool goes_on = row.length",
        _SECTORS,
        "Error",
    ),
    Mutant(
        "neighbours are not counted",
        "bfs/expand.cuh",
        "  tally.edges += (u32)__popc(present);\n",
        "",
        "gpu/test_gpu_counts.py::"
        "test_top_down_looks_at_every_edge_of_what_it_reached[mixed_graph-large]",
        "edges_examined ==",
    ),
    Mutant(
        "tested heads are not counted",
        "bfs/bottom_up_heads.cu",
        "          num_tested++;\n",
        "",
        "gpu/test_gpu_counts.py::test_bottom_up_looks_until_its_first_hit",
        "assert least <=",
    ),
    Mutant(
        "lost claims are not counted",
        "bfs/expand.cuh",
        "  tally.claims_lost += (u32)__popc(open & ~fresh);\n",
        "",
        "gpu/test_gpu_counts.py::test_claims_are_lost_where_two_lanes_find_a_vertex",
        "assert lost > 0",
    ),
    Mutant(
        "sectors of the pending row before are not shared in the estimate",
        "bfs/bottom_up_heads.cu",
        "if (before) bytes -= ",
        "if (false) bytes -= ",
        "plan/test_cuts.py::test_the_device_sums_up_what_decides[device_range0-mixed]",
        "Arrays are not equal",
    ),
]
