"""The check of searches, what bounds launches, and searches that are checked, broken on purpose."""

from __future__ import annotations

from tests.support.mutants.mutant import Mutant

_CHECK = "gpu/test_verification.py::{}"
RIGHT = _CHECK.format("test_right_answers_break_no_rule[{}]")
WRONG = _CHECK.format("test_one_wrong_word_is_noticed[{}]")
ROWS = _CHECK.format("test_every_class_of_row_is_looked_at")
NOTICED = "assert count_broken(bfs) == 0|assert 0 > 0|assert count_broken(bfs) > 0"

CHECK_MUTANTS = [
    Mutant(
        "a check without long rows",
        "results/check_rows.cu",
        "!is_short && length <= SEGMENT_BYTES);",
        "!is_short && length <= 0);",
        ROWS,
        NOTICED,
    ),
    Mutant(
        "a check of the wrong segments",
        "results/check_hubs.cu",
        "begin + i - search.hub_segments[hub];",
        "0 * i;",
        ROWS,
        NOTICED,
    ),
    Mutant(
        "a check that confirms nothing",
        "results/check_found.cu",
        "if (is_inner && !test_bit(checked.confirmed, (u32)v)) broken++;",
        "",
        WRONG.format("levels--1-2"),
        NOTICED,
    ),
    Mutant(
        "a check that takes any parent",
        "results/check.cuh",
        "confirms = confirms && search.parents[to] == from;",
        "",
        WRONG.format("parents-2-17"),
        NOTICED,
    ),
    Mutant(
        "a check that forgets sources",
        "results/check_found.cu",
        "if (level == 0) broken++;",
        "if (level == 0) broken += 2;",
        RIGHT.format("1"),
        NOTICED,
    ),
    Mutant(
        "confirm without an atomic",
        "results/check.cuh",
        "atomicOr(word, bit);",
        "*word |= bit;",
        _CHECK.format("test_no_races"),
        "race on device memory",
    ),
    # Searches that are wrong, and that the check must notice.
    Mutant(
        "a search with a wrong lane mask",
        "bfs/search.cuh",
        "(FULL_WARP >> (32u - GROUP_LANES)) << group_first",
        "FULL_WARP >> (32u - GROUP_LANES)",
        RIGHT.format("2"),
        NOTICED,
    ),
    Mutant(
        "a search that leaves hubs out",
        "bfs/top_down_hubs.cu",
        "count_between(begin, end, num_segments)",
        "count_between(begin, end, num_segments / 2)",
        RIGHT.format("1"),
        NOTICED,
    ),
    Mutant(
        "a launch that begins with the first segment",
        "bfs/top_down_hubs.cu",
        "first_segment + begin + i;",
        "first_segment + i;",
        "gpu/test_watchdog.py::test_searches[DeviceDirection.TOP_DOWN]",
        "assert np.array_equal(result.levels, expected)",
    ),
    Mutant(
        "a launch that begins with the first pending vertex",
        "many/tails.cu",
        "lane_vertex(many.pending, begin, begin + count, first);",
        "lane_vertex(many.pending, 0, count, first);",
        "gpu/test_watchdog.py::test_many[1000000000.0]",
        "assert np.array_equal(spread, levels)",
    ),
]
