"""The end of a sharded search: levels by position and the edges of what was reached.

All threads take part, by the same steps as those of a search on one file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I32Array, I64Array, ReadU32Array, U8Array, U32Array
from oocbfs.kernels.bfs import state as words
from oocbfs.kernels.bfs.finish import (
    Results,
    ToIds,
    finish_all,
    results_at,
    to_ids_at,
)
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.region import run_together
from oocbfs.kernels.rows import freeze
from oocbfs.kernels.structs import Struct, at_address

if TYPE_CHECKING:
    from numpy.typing import NDArray


class _State(NamedTuple):
    """What of the state of a search its results follow from."""

    levels: U8Array
    deep_levels: I32Array
    parents: U32Array
    degrees: ReadU32Array
    control: I64Array


_state_at = at_address(_State)
_NONE = np.empty(0, np.uint32)
_NO_IDS = np.empty(0, np.int64)
_DONE, _PAUSED = range(2)
# Smaller results are written by one thread.
_SHARED = 1 << 16


@compiled(types.int64(*[types.int64] * 4), _nrt=False)
def run_to_ids(state, to_ids, results, thread):
    """Do one thread's part; arguments are addresses, but for the thread."""
    state = _state_at(state)
    finish_all(state, to_ids_at(to_ids), results_at(results), state.degrees, thread)
    return _DONE


def _structs_to_ids(state: Struct, to_ids: Struct, results: Struct, thread: int) -> int:
    """Run the compiled function; this call keeps its structs alive."""
    outcome: int = run_to_ids(state.address, to_ids.address, results.address, thread)
    return outcome


def levels_to_ids(
    out: NDArray[np.int32],
    levels: NDArray[np.uint8],
    deep_levels: NDArray[np.int32],
    stored_at: NDArray[np.uint32] | None,
    degrees: NDArray[np.uint32],
    num_arcs: int,
    sizes: list[int],
    threads: int,
) -> int:
    """Write whole levels, -1 of what was not reached, and sum up the degrees of what was.

    ``stored_at`` are the vertices at positions; None stands for the order in which they are stored.
    ``num_arcs`` are all degrees in sum.
    ``sizes`` says how many vertices each level has. Vertices for which there are no degrees have no
    level.
    """
    control = np.zeros(words.CONTROL_WORDS, np.int64)
    control[words.DEPTH], control[words.NUM_FOUND] = len(sizes), sum(sizes)
    stored_at = _NONE if stored_at is None else stored_at
    state = _State(levels, deep_levels, _NONE.copy(), freeze(degrees, np.uint32), control)
    to_ids = ToIds(freeze(stored_at, np.uint32), _NONE, np.empty(0, np.uint64), 0)
    structs = (
        Struct(state),
        Struct(to_ids),
        Struct(Results(out, _NO_IDS, np.empty((1, 0), np.uint32))),
    )
    others = range(1, threads if levels.size >= _SHARED else 1)
    run_together(_structs_to_ids, structs, others, control, paused=_PAUSED, wait=False)
    summed = int(control[words.SUMMED_EDGES])
    # The degrees of the fewer ones were summed up.
    few_found = 2 * sum(sizes) < degrees.size
    return summed if few_found else num_arcs - summed
