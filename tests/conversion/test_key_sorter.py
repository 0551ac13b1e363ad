"""Sorting more keys than memory holds."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from oocbfs.conversion.key_sorter import KeySorter
from oocbfs.errors import OutputError
from oocbfs.kernels.convert import radix

RNG = np.random.default_rng(5)
SIZE = 300_000
UNIFORM = RNG.integers(0, 1 << 40, SIZE, dtype=np.uint64)
INPUTS = {
    "uniform": UNIFORM,
    "sorted": np.sort(UNIFORM),
    "skewed": UNIFORM >> RNG.integers(0, 40, SIZE, dtype=np.uint64),
    "one value": np.full(SIZE, 77, np.uint64),
    "one row": (np.uint64(9) << np.uint64(20)) + RNG.integers(0, 1 << 20, SIZE, dtype=np.uint64),
    "full range": RNG.integers(0, 2**64 - 1, SIZE, dtype=np.uint64, endpoint=True),
    "empty": np.empty(0, np.uint64),
}


def sort(
    folder: Path, keys: NDArray[np.uint64], budget: int, threads: int, align_bits: int
) -> tuple[list[NDArray[np.uint64]], KeySorter]:
    sorter = KeySorter(
        folder,
        keys[:500],
        keys.size,
        budget_bytes=budget,
        threads=threads,
        align_bits=align_bits,
    )
    for first in range(0, keys.size, 20_000):
        sorter.add(keys[first : first + 20_000])
    return list(sorter.drain(np.copy)), sorter


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("budget", [1 << 19, 1 << 30])
@pytest.mark.parametrize("align_bits", [0, 20])
def test_sorted_and_distinct(tmp_path: Path, name: str, budget: int, align_bits: int) -> None:
    keys = INPUTS[name]
    parts, sorter = sort(tmp_path, keys, budget, 2, align_bits)
    np.testing.assert_array_equal(np.concatenate(parts), np.unique(keys))
    assert (sorter.spilled_bytes > 0) == (budget < keys.nbytes)
    if align_bits:
        filled = [part >> np.uint64(align_bits) for part in parts if part.size]
        assert all(a[-1] < b[0] for a, b in itertools.pairwise(filled))
    assert not list(tmp_path.iterdir())


@given(st.lists(st.integers(0, 2**64 - 1)), st.integers(0, 40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_keys(tmp_path: Path, keys: list[int], align_bits: int) -> None:
    array = np.array(keys, np.uint64)
    parts, _ = sort(tmp_path, array, 1 << 12, 1, align_bits)
    np.testing.assert_array_equal(np.concatenate(parts), np.unique(array))


def test_errors_in_workers_come_out(tmp_path: Path) -> None:
    sorter = KeySorter(tmp_path, UNIFORM[:100], SIZE, budget_bytes=1 << 30, threads=2)
    sorter.add(UNIFORM)

    def fail(keys: NDArray[np.uint64]) -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        list(sorter.drain(fail))


def test_missing_folder_is_one_line(tmp_path: Path) -> None:
    sorter = KeySorter(tmp_path / "none", UNIFORM[:100], SIZE, budget_bytes=1 << 12, threads=1)
    with pytest.raises(OutputError, match="tmp"):
        sorter.add(UNIFORM)


@given(st.lists(st.integers(0, 2**64 - 1)), st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_scatter_groups_by_splitter(keys: list[int], splitters: list[int]) -> None:
    array, cuts = np.array(keys, np.uint64), np.unique(np.array(splitters, np.uint64))
    out, bounds = np.empty_like(array), np.zeros(cuts.size + 2, np.int64)
    radix.scatter(out, bounds, array, cuts)
    homes = np.searchsorted(cuts, array, side="right")
    for bucket in range(cuts.size + 1):
        np.testing.assert_array_equal(
            out[bounds[bucket] : bounds[bucket + 1]], array[homes == bucket]
        )
