"""Kernels of the papers' methods broken on purpose, and the tests that must notice."""

from __future__ import annotations

from tests.support.mutants.mutant import Mutant

_ROWS = "methods/test_levels.py::test_rows_of_every_length[{}-{}]"
_LARGE = "methods/test_levels.py::test_large_levels[{}]"
_RACES = "methods/test_levels.py::test_no_races[{}]"
_WRONG = "assert np.array_equal(result.levels, expected)"
_ON_DEVICE, _SHARED = "race on device memory", "race on shared memory"

METHOD_MUTANTS = [
    Mutant(
        "a history that knows vertex 0",
        "methods/claim.cuh",
        "scratch.history[i] = NO_VERTEX;",
        "scratch.history[i] = 0;",
        _ROWS.format("two-phase", 1),
        _WRONG,
    ),
    Mutant(
        "no barrier after clearing the history",
        "methods/claim.cuh",
        "scratch.history[i] = NO_VERTEX;\n  __syncthreads();",
        "scratch.history[i] = NO_VERTEX;",
        _RACES.format("two-phase"),
        _SHARED,
    ),
    Mutant(
        "look at levels without volatile",
        "methods/state.cuh",
        "return *(volatile u32*)&t.levels[vertex];",
        "return t.levels[vertex];",
        _RACES.format("simple"),
        _ON_DEVICE,
    ),
    Mutant(
        "claim by compare and swap without an atomic",
        "methods/claim.cuh",
        ": atomicCAS(word, NO_LEVEL, level) == NO_LEVEL;",
        ": *word == NO_LEVEL && (*word = level) == level;",
        _RACES.format("v1"),
        _ON_DEVICE,
    ),
    Mutant(
        "take queue positions without an atomic",
        "methods/emit.cuh",
        "if (chosen) queue.write(atomicAdd(queue.end, 1ull), item, NO_VERTEX);",
        "if (chosen) queue.write((*queue.end)++, item, NO_VERTEX);",
        _RACES.format("queue"),
        _ON_DEVICE,
    ),
    Mutant(
        "no barrier between the block's sums and their use",
        "methods/emit.cuh",
        "scratch.base = atomicAdd(queue.end, (u64)total);\n  __syncthreads();",
        "scratch.base = atomicAdd(queue.end, (u64)total);",
        _RACES.format("expand-contract"),
        _SHARED,
    ),
    Mutant(
        "warps of a block share their places",
        "methods/emit.cuh",
        "if (warp == warp_in_block()) before = total;\n    total += scratch.sums[warp];",
        "total += scratch.sums[warp];",
        _RACES.format("two-phase"),
        _ON_DEVICE,
    ),
    Mutant(
        "rows of one neighbour are no warp's",
        "methods/gather.cuh",
        "mine.length() >= shortest",
        "mine.length() > shortest",
        _ROWS.format("contract-expand:filter=mask,gather=warp", 2),
        _WRONG,
    ),
    Mutant(
        "blocks skip a neighbour",
        "methods/gather.cuh",
        "first < row.end; first += THREADS)",
        "first < row.end; first += THREADS + 1)",
        _ROWS.format("two-phase", 1),
        _WRONG,
    ),
    Mutant(
        "no barrier between writing places and taking them",
        "methods/gather.cuh",
        "    __syncthreads();\n    const bool present = threadIdx.x < total - done;",
        "    const bool present = threadIdx.x < total - done;",
        _RACES.format("two-phase:filter=warp,gather=scan"),
        _SHARED,
    ),
    Mutant(
        "segments go on with the sum of the one before",
        "methods/walk.cuh",
        "      sum = 0;\n",
        "",
        "methods/test_levels.py::test_the_last_segment_of_a_hub_is_searched[v3.3]",
        f"{_WRONG}|a row is damaged",
    ),
    Mutant(
        "a level found early is this one",
        "methods/pull.cu",
        "sought.later, level + 1);",
        "sought.later, level);",
        _LARGE.format("async"),
        _WRONG,
    ),
    Mutant(
        "only the frontier is visited",
        "methods/compact.cu",
        "__ballot_sync(FULL_WARP, level != NO_LEVEL);",
        "__ballot_sync(FULL_WARP, level == wanted);",
        _ROWS.format("v3.2", 1),
        _WRONG,
    ),
    Mutant(
        "all of a tile write to one place",
        "methods/prefix.cu",
        "t.counts[i] = (u32)before;",
        "t.counts[i] = 0;",
        _RACES.format("double-scan"),
        _ON_DEVICE,
    ),
    Mutant(
        "no depth yet is a small one",
        "methods/relax.cu",
        "if (theirs < NO_LEVEL - 1 && theirs + 1 < depth)",
        "if (theirs + 1 < depth)",
        _ROWS.format("edge-blocks", 1),
        _WRONG,
    ),
    Mutant(
        "flags are not moved",
        "methods/relax.cu",
        "    t.flags[v] = 1;\n",
        "",
        _ROWS.format("harish", 1),
        _WRONG,
    ),
]
