"""Kernels broken on purpose: each mutant must be caught by the test named beside it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from oocbfs.kernels.cuda_source import FOLDER
from oocbfs.kernels.emulator.build import Checks

HERE = Path(__file__).parent
LEVELS = "test_gpu_bfs.py::test_levels_under_ten_schedules[{}]"
STAGED = "test_staging.py::test_nothing_at_home_under_ten_schedules[{}]"
RACES = "test_gpu_bfs.py::test_no_races[{}]"
LABELS = "test_gpu_components.py::test_labels_under_ten_schedules[1]"
LABEL_RACES = "test_gpu_components.py::test_no_races[1]"
MANY = "test_gpu_many.py::test_levels_under_ten_schedules[{}]"


class Mutant(NamedTuple):
    """A small change to one source, the test that must fail with it, and words of its report."""

    name: str
    source: str
    old: str
    new: str
    caught_by: str
    report: str
    checks: Checks = Checks.NONE


MUTANTS = [
    Mutant(
        "claim without an atomic",
        "expand.cuh",
        "fresh = !(atomicOr(word, bit) & bit);",
        "{ fresh = true; *word |= bit; }",
        RACES.format("1-Direction.TOP_DOWN"),
        "race on device memory",
    ),
    Mutant(
        "look at the claimed bits without volatile",
        "expand.cuh",
        "if (!(*(volatile u32*)word & bit))",
        "if (!(*word & bit))",
        RACES.format("1-Direction.TOP_DOWN"),
        "race on device memory",
    ),
    Mutant(
        "no __syncwarp between listing and loading sectors",
        "staged.cuh",
        "  __syncwarp();\n  for (u32 from",
        "  for (u32 from",
        RACES.format("1-Direction.TOP_DOWN"),
        "race on shared memory",
    ),
    Mutant(
        "lanes run ahead while staging",
        "staged.cuh",
        "    __syncwarp();   // a lane that ran ahead would load its half in another instruction\n  }",
        "  }\n  __syncwarp();",
        "test_slow_bytes.py::test_sectors_equal_an_independent_count"
        "[window0-32-Direction.TOP_DOWN-0]",
        "assert moved == expected_sectors",
    ),
    Mutant(
        "wrong lane mask for a group",
        "search.cuh",
        "(FULL_WARP >> (32u - GROUP_LANES)) << group_first",
        "FULL_WARP >> (32u - GROUP_LANES)",
        LEVELS.format("1-Direction.BOTTOM_UP"),
        "assert np.array_equal(result.levels, expected)",
    ),
    Mutant(
        "mask that leaves a lane out",
        "common.cuh",
        "const u32 lanes = __ballot_sync(FULL_WARP, chosen);",
        "const u32 lanes = __ballot_sync(0x7fffffffu, chosen);",
        LEVELS.format("1-Direction.TOP_DOWN"),
        "which does not name it",
    ),
    Mutant(
        "last byte of a five-byte varint lost",
        "decode.cuh",
        "if (more < 8)\n",
        "if (more < 4)\n",
        "test_decode.py::test_longest_varints_at_every_alignment[0-8]",
        "assert found[-1] == damaged",
    ),
    Mutant(
        "words before the chunk forgotten",
        "decode.cuh",
        "if (lane == 1) word2 = cursor.word1;",
        "",
        "test_decode.py::test_longest_varints_at_every_alignment[4-8]",
        "assert decode",
    ),
    Mutant(
        "bytes before the span taken for values",
        "decode.cuh",
        " && offset + k >= span.begin && active",
        " && active",
        "test_decode.py::test_longest_varints_at_every_alignment[4-32]",
        "race on device memory|outside every allocation",
        Checks.RACES,
    ),
    Mutant(
        "off by one in a segment",
        "decode.cuh",
        "row.begin + number * SEGMENT_BYTES;",
        "row.begin + number * (SEGMENT_BYTES - 1);",
        "test_gpu_bfs.py::test_segments_with_stretched_varints[Direction.TOP_DOWN]",
        "Error",
    ),
    Mutant(
        "queue reservation without broadcast",
        "common.cuh",
        "place = __shfl_sync(FULL_WARP, place, 0) - base;",
        "place = place - base;",
        LEVELS.format("1-Direction.TOP_DOWN"),
        "assert np.array_equal(result.levels, expected)",
    ),
    Mutant(
        "rank within the warp counts the lane itself",
        "common.cuh",
        "__popc(lanes & lanes_below())",
        "__popc(lanes & (lanes_below() << 1 | 1u))",
        LEVELS.format("1-Direction.BOTTOM_UP"),
        "race on device memory|outside every allocation",
        Checks.RACES,
    ),
    Mutant(
        "bits behind the last vertex not set",
        "initialise.cu",
        "cut ? 0xffffffffu << (u32)(num_vertices & 31) : 0;",
        "cut ? 0 : 0;",
        RACES.format("1-Direction.BOTTOM_UP"),
        "outside every allocation",
    ),
    Mutant(
        "search among what this level found",
        "search.cuh",
        "test_bit(search.visited, id)",
        "test_bit(search.claimed, id)",
        RACES.format("1-Direction.BOTTOM_UP"),
        "race on device memory",
    ),
    Mutant(
        "heads pass forgets who was visited",
        "bottom_up_heads.cu",
        "visited |= hits;",
        "visited = hits;",
        LEVELS.format("1-Direction.BOTTOM_UP"),
        "race on device memory|outside every allocation",
        Checks.RACES,
    ),
    Mutant(
        "found by its head, but not claimed",
        "bottom_up_heads.cu",
        "if (lane_id() == owner) visited |= hits;",
        "",
        LEVELS.format("1-Direction.BOTTOM_UP"),
        "race on device memory|outside every allocation",
        Checks.RACES,
    ),
    Mutant(
        "no barrier after the next level is announced",
        "small_levels.cu",
        "    }\n    __syncthreads();\n    const u64 end",
        "    }\n    const u64 end",
        RACES.format("1-Direction.TOP_DOWN"),
        "race on shared memory",
    ),
    Mutant(
        "a level begins before the last has ended",
        "small_levels.cu",
        "    levels_run++;\n    __syncthreads();\n",
        "    levels_run++;\n",
        RACES.format("1-Direction.TOP_DOWN"),
        "race on shared memory",
    ),
    Mutant(
        "a lane leaves the loop alone",
        "expand.cuh",
        "while (__any_sync(FULL_WARP, !row.done())) {",
        "while (!row.done()) {",
        LEVELS.format("1-Direction.TOP_DOWN"),
        "small_levels: |top_down: ",
    ),
    Mutant(
        "bisection one hub too low",
        "hubs.cuh",
        "hub_segments[middle] <= segment",
        "hub_segments[middle] < segment",
        LEVELS.format("1-Direction.TOP_DOWN"),
        "Error",
    ),
    Mutant(
        "hubs and segments mixed up",
        "hubs.cuh",
        "1ull << 32 | num_segments",
        "1ull << 32 | (num_segments - 1)",
        LEVELS.format("1-Direction.TOP_DOWN"),
        "assert np.array_equal(result.levels, expected)",
    ),
    Mutant(
        "neighbours not compared with n",
        "expand.cuh",
        "if (active && vertex < rows.num_vertices) {",
        "if (active) {",
        "test_gpu_bfs.py::test_damaged_tails_are_reported[Direction.TOP_DOWN]",
        "outside every allocation",
        Checks.RACES,
    ),
    Mutant(
        "gaps of short rows not compared with n",
        "staged.cuh",
        "whole = !(byte & 0x80u) && value < n;",
        "whole = !(byte & 0x80u);",
        "test_gpu_bfs.py::test_values_that_wrap_around_are_reported[Direction.TOP_DOWN]",
        "DID NOT RAISE",
    ),
    Mutant(
        "gaps of long rows not compared with n",
        "decode.cuh",
        "whole = whole && value < rows.num_vertices;",
        "",
        "test_gpu_bfs.py::test_values_that_wrap_around_are_reported[Direction.TOP_DOWN]",
        "DID NOT RAISE",
    ),
    Mutant(
        "bits beyond 32 dropped silently",
        "decode.cuh",
        "return whole && !lost;",
        "return whole;",
        "test_decode.py::test_values_that_no_row_holds_are_noticed[0-8]",
        "assert found[-1] == damaged",
    ),
    Mutant(
        "resident window one byte too long",
        "rows.cuh",
        "offset - rows.fast_begin < rows.fast_end - rows.fast_begin",
        "offset - rows.fast_begin <= rows.fast_end - rows.fast_begin",
        "test_gpu_bfs.py::test_resident_windows[Direction.TOP_DOWN-window1]",
        "outside every allocation",
        Checks.RACES,
    ),
    Mutant(
        "a segment that began in the piece before",
        "rows.cuh",
        "(offset - row.begin + SEGMENT_BYTES - 1) / SEGMENT_BYTES",
        "(offset - row.begin) / SEGMENT_BYTES",
        STAGED.format("undirected-1-Direction.TOP_DOWN"),
        "assert_array_equal|damaged|outside every allocation",
        Checks.RACES,
    ),
    Mutant(
        "last block of a row not marked",
        "mark_blocks.cu",
        "block <= (end - 1) / DISK_BLOCK_BYTES",
        "block < (end - 1) / DISK_BLOCK_BYTES",
        STAGED.format("undirected-2-Direction.BOTTOM_UP"),
        "assert_array_equal|damaged",
    ),
    Mutant(
        "blocks of the wrong level",
        "mark_blocks.cu",
        "found == level - 1",
        "found == level",
        STAGED.format("directed-1-Direction.TOP_DOWN"),
        "assert_array_equal|damaged",
    ),
    Mutant(
        "levels looked at without volatile",
        "on_level.cuh",
        "*(volatile u32*)&search.levels",
        "search.levels",
        "test_staging.py::test_no_races[undirected-Direction.TOP_DOWN]",
        "race on device memory",
    ),
    Mutant(
        "trees joined without an atomic",
        "components_forest.cuh",
        "above = atomicMin(&forest.labels[high], low);",
        "above = label_of(forest, high), shorten(forest, high, low);",
        LABELS,
        "Arrays are not equal",
        Checks.RACES,
    ),
    Mutant(
        "who was overtaken gives up",
        "components_forest.cuh",
        "if (above == high) return low;",
        "return low;",
        LABELS,
        "Arrays are not equal",
        Checks.RACES,
    ),
    Mutant(
        "labels read without volatile",
        "components_forest.cuh",
        "return *(volatile u32*)&forest.labels[v];",
        "return forest.labels[v];",
        LABEL_RACES,
        "race on device memory",
    ),
    Mutant(
        "labels shortened without volatile",
        "components_forest.cuh",
        "*(volatile u32*)&forest.labels[v] = label;",
        "forest.labels[v] = label;",
        LABEL_RACES,
        "race on device memory",
    ),
    Mutant(
        "heads behind a vertex forgotten",
        "components_link.cu",
        "head > v || !only_larger",
        "!only_larger",
        LABELS,
        "Arrays are not equal",
    ),
    Mutant(
        "segments behind the first forgotten",
        "components_tails.cu",
        "segment * SEGMENT_BYTES < row.end - row.begin; segment++",
        "segment < 1; segment++",
        "test_gpu_components.py::test_rows_outside_the_giant_are_decoded_once_and_wholly",
        "assert steps[",
    ),
    Mutant(
        "a warp stops at any tree",
        "components_tails.cu",
        "== giant || found",
        "!= vertex || found",
        "test_gpu_components.py::test_rows_outside_the_giant_are_decoded_once_and_wholly",
        "Arrays are not equal|assert steps[",
    ),
    Mutant(
        "a varint cut short in the sample",
        "components_firsts.cu",
        "span.end = span.begin + MAX_VARINT_BYTES;",
        "span.end = span.begin + 1;",
        LABELS,
        "a row is damaged",
    ),
    Mutant(
        "mark without an atomic",
        "many.cuh",
        "if (fresh & ~*(volatile u64*)word) atomicOr(word, fresh);",
        "*word |= fresh;",
        "test_gpu_many.py::test_no_races[1e-09]",
        "race on device memory",
    ),
    Mutant(
        "a head that answers one source is taken to answer all",
        "many_heads.cu",
        "missed = got != wanted &&",
        "missed = !got &&",
        MANY.format("1-1000000000.0"),
        "assert np.array_equal(spread, levels)",
    ),
    Mutant(
        "lanes keep what they found to themselves",
        "many_tails.cu",
        "found |= join_words(met);",
        "join_words(met);\n    found |= __shfl_sync(FULL_WARP, met, 0);",
        MANY.format("1-1000000000.0"),
        "assert np.array_equal(spread, levels)",
    ),
    Mutant(
        "segments of later hubs taken for those of the first",
        "many_push_hubs.cu",
        "segment - many.hub_segments[hub]",
        "segment",
        MANY.format("1-1e-09"),
        "assert|Error",
    ),
    Mutant(
        "finds of the last level stay",
        "many_settle.cu",
        "      if (fresh) many.next[v] = 0;\n",
        "",
        MANY.format("1-30.0"),
        "assert",
    ),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_mutants_are_caught(mutant: Mutant, tmp_path: Path) -> None:
    folder = tmp_path / "kernels"
    folder.mkdir()
    for path in (*FOLDER.glob("*.cu"), *FOLDER.glob("*.cuh")):
        shutil.copy(path, folder)
    path = folder / mutant.source
    text = path.read_text()
    assert text.count(mutant.old) == 1, "the mutant does not fit its source any more"
    path.write_text(text.replace(mutant.old, mutant.new))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"),
            str(HERE / mutant.caught_by),
        ],
        env={
            **os.environ,
            "OOCBFS_TEST_KERNELS": str(folder),
            "OOCBFS_TEST_CHECKS": mutant.checks.value,
        },
        cwd=HERE.parent,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert "could not be compiled" not in done.stdout, done.stdout
    assert done.returncode != 0
    assert any(words in done.stdout for words in mutant.report.split("|")), done.stdout
