"""Kernels of several devices broken on purpose, and the tests that must notice."""

from __future__ import annotations

from oocbfs.kernels.emulator.build import Checks
from tests.support.mutants.mutant import Mutant

_LEVELS = "devices/test_block_cyclic.py::test_levels_under_ten_schedules[{}]"
DOWN = _LEVELS.format("3-DeviceDirection.TOP_DOWN-2")
DOWN_OF_THREE = _LEVELS.format("4-DeviceDirection.TOP_DOWN-3")
UP = _LEVELS.format("5-DeviceDirection.BOTTOM_UP-2")
_WRONG_LEVELS = "assert np.array_equal(result.levels, expected)"

DEVICES_MUTANTS = [
    Mutant(
        "words gathered as they arrived",
        "devices/gather_words.cu",
        "cut.received[w % cut.devices * cut.stride + w / cut.devices]",
        "cut.received[w]",
        UP,
        _WRONG_LEVELS,
    ),
    Mutant(
        "own marks sent away",
        "devices/scatter_words.cu",
        "owner == cut.device ? cut.received : cut.sent",
        "cut.sent",
        DOWN,
        _WRONG_LEVELS,
    ),
    Mutant(
        "marks sorted by neighbouring words",
        "devices/scatter_words.cu",
        "pieces[owner * cut.stride + w / cut.devices] = cut.marked[w];",
        "pieces[owner * cut.stride + w / cut.devices] = cut.marked[w ^ 1];",
        DOWN,
        _WRONG_LEVELS,
    ),
    Mutant(
        "the last device alone is heard",
        "devices/merge_words.cu",
        "fresh |= received[2 * cut.stride * device + mine];",
        "fresh = received[2 * cut.stride * device + mine];",
        DOWN_OF_THREE,
        _WRONG_LEVELS,
    ),
    Mutant(
        "old marks are found again",
        "devices/merge_words.cu",
        "fresh &= ~visited;",
        "",
        DOWN,
        "outside every allocation|assert",
        Checks.RACES,
    ),
    Mutant(
        "a whole word is found",
        "devices/merge_words.cu",
        "const bool found = word >> lane_id() & 1u;",
        "const bool found = vertex < out_rows.num_vertices && word;",
        DOWN,
        "outside every allocation|assert",
        Checks.RACES,
    ),
    Mutant(
        "heads are parents, whether they are visited or not",
        "devices/find_parents.cu",
        "if (parent >= in_rows.num_ids || !is_reached(search, parent)) parent = NO_VERTEX;",
        "if (parent >= in_rows.num_ids) parent = NO_VERTEX;",
        DOWN,
        "check_parents",
    ),
    Mutant(
        "all that is queued gets a new parent",
        "devices/find_parents.cu",
        "lane_vertex(search.queue, begin, begin + count, first)",
        "lane_vertex(search.queue, 0, begin + count, first)",
        DOWN,
        "check_parents",
    ),
    Mutant(
        "neighbours looked up among the own vertices",
        "bfs/expand.cuh",
        "return test_bit(search.reached, id);",
        "return test_bit(search.visited, id);",
        UP,
        "assert|outside every allocation",
        Checks.RACES,
    ),
    Mutant(
        "heads compared with the number of rows",
        "bfs/bottom_up_heads.cu",
        "if (head < in_rows.num_ids) {",
        "if (head < n) {",
        UP,
        "a row is damaged",
    ),
]
