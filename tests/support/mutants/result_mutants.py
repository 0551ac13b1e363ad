"""Broken on purpose: levels in bytes, and what brings results into the order of ids."""

from __future__ import annotations

from tests.support.mutants.bfs_mutants import STAGED
from tests.support.mutants.mutant import Mutant

_RESULTS = "gpu/test_gpu_results.py::{}"
_DEEP = _RESULTS.format("test_deep_levels_in_order[small-600]")
_LEVELS = _RESULTS.format("test_every_vertex_in_order")
_TARGET = _RESULTS.format("test_nothing_after_the_target_is_told[5]")
_RACES = _RESULTS.format("test_no_races[small]")
_FROM_DISK = _RESULTS.format(
    "test_deep_levels_from_disk_read_no_row_of_long_ago[DeviceDirection.TOP_DOWN]"
)
_WRONG = "Arrays are not equal"

RESULT_MUTANTS = [
    Mutant(
        "levels of long ago are read again",
        "disk/mark_blocks.cu",
        "found == level_after(level)",
        "false",
        _FROM_DISK,
        "assert max(",
    ),
    Mutant(
        "the level that is being found is of long ago",
        "disk/mark_blocks.cu",
        "found == level_after(level)",
        "found == level",
        STAGED.format("undirected-1-DeviceDirection.AUTO"),
        _WRONG,
    ),
    Mutant(
        "a byte for each of 256 levels",
        "cuda/common.cuh",
        "level + 1 == LEVEL_PERIOD ? 0",
        "level + 1 == 256u ? 0",
        _DEEP,
        _WRONG,
    ),
    Mutant(
        "the last levels stay as they were",
        "bfs/initialise.cu",
        "(num_vertices + 3) / 4",
        "num_vertices / 4",
        _LEVELS,
        _WRONG,
    ),
    Mutant(
        "a place in the queue belongs to the level that it ends",
        "results/deep_levels.cu",
        "search.level_ends[middle] > begin + i",
        "search.level_ends[middle] >= begin + i",
        _DEEP,
        _WRONG,
    ),
    Mutant(
        "every launch begins with level 0",
        "results/deep_levels.cu",
        "first_level + low",
        "low",
        _RESULTS.format("test_more_levels_than_one_launch_runs"),
        _WRONG,
    ),
    Mutant(
        "deep levels of vertices that were not reached",
        "results/deep_levels_to_ids.cu",
        " && search.levels[vertex] != NOT_REACHED",
        "",
        _RESULTS.format("test_nothing_after_the_target_is_told[400]"),
        _WRONG,
    ),
    Mutant(
        "forgets the target's level too",
        "results/forget.cu",
        "search.queue[begin + i];",
        "search.queue[begin + i - 1];",
        _TARGET,
        _WRONG,
    ),
    Mutant(
        "forgotten vertices stay visited",
        "results/forget.cu",
        "atomicAnd(&search.visited[vertex >> 5], ~(1u << (vertex & 31u)));",
        ";",
        _TARGET,
        "assert (visited ==",
    ),
    Mutant(
        "forgets without an atomic",
        "results/forget.cu",
        "atomicAnd(&search.visited[vertex >> 5], ~(1u << (vertex & 31u)));",
        "search.visited[vertex >> 5] &= ~(1u << (vertex & 31u));",
        _RESULTS.format("test_no_races_after_the_target"),
        "race on device memory",
    ),
    Mutant(
        "forgotten vertices keep their parents",
        "results/forget.cu",
        "search.parents[vertex] = NO_VERTEX;",
        ";",
        _TARGET,
        "result.parents != ",
    ),
    Mutant(
        "a piece of the order inverted as if it were the first",
        "results/invert_order.cu",
        "(u32)(first + i)",
        "(u32)i",
        _LEVELS,
        _WRONG,
    ),
    Mutant(
        "the last positions of a piece have no level",
        "results/levels_to_ids.cu",
        "(count + 3) / 4",
        "count / 4",
        _LEVELS,
        _WRONG,
    ),
    Mutant(
        "a piece of levels begins at the first position",
        "results/levels_to_ids.cu",
        "stored_at(to_ids, first + 4 * w + k)",
        "stored_at(to_ids, 4 * w + k)",
        _LEVELS,
        _WRONG,
    ),
    Mutant(
        "bytes of a word in the wrong order",
        "results/levels_to_ids.cu",
        "level << 8 * k",
        "level << 8 * (3 - k)",
        _LEVELS,
        _WRONG,
    ),
    Mutant(
        "levels of vertices that took no part",
        "results/to_ids.cuh",
        "vertex < to_ids.num_vertices ? (u32)vertex : NO_VERTEX",
        "(u32)vertex",
        _RACES,
        "outside every allocation",
    ),
    Mutant(
        "parents as they are stored",
        "results/parents_to_ids.cu",
        "to_ids.order[parent] : parent",
        "parent : parent",
        _LEVELS,
        "Error",
    ),
    Mutant(
        "a piece of parents begins at the first position",
        "results/parents_to_ids.cu",
        "stored_at(to_ids, first + i)",
        "stored_at(to_ids, i)",
        _LEVELS,
        "Error",
    ),
]
