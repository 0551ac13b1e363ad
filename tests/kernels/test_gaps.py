"""Ascending keys as gaps of few bits, there and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oocbfs.kernels.convert import gaps

RNG = np.random.default_rng(5)
# Gaps of any size among small ones, and many of about one size.
_mixed = st.lists(
    st.integers(0, 64).flatmap(lambda bits: st.integers(0, 2**bits - 1)), max_size=300
)
_alike = st.integers(0, 64).flatmap(
    lambda bits: st.lists(st.integers(0, 2**bits - 1), max_size=300)
)


@given((_mixed | _alike).map(sorted))
def test_packed_keys_round_trip(keys: list[int]) -> None:
    array = np.array(keys, np.uint64)
    packed = gaps.packed(array)
    assert packed.size <= gaps._most_words(array.size)
    np.testing.assert_array_equal(gaps.unpacked(packed, array.size), array)


@pytest.mark.parametrize("gap", [1, 24, 25, 2**32, 2**40, 2**57])
@pytest.mark.parametrize("every", [2, 64, 65])
def test_one_gap_unlike_the_others(gap: int, every: int) -> None:
    some = np.ones(128, np.uint64)
    some[::every] = min(gap, 2**64 // 140)
    keys = np.cumsum(some)
    np.testing.assert_array_equal(gaps.unpacked(gaps.packed(keys), keys.size), keys)


@pytest.mark.parametrize("bits", [20, 33, 50, 64])
def test_random_keys_take_two_bits_more_than_their_gaps(bits: int) -> None:
    keys = np.sort(RNG.integers(0, 2**bits - 1, 1 << 14, dtype=np.uint64, endpoint=True))
    assert 64 * gaps.packed(keys).size / keys.size < bits - 14 + 2
