"""The row codec against a plain twin written from FORMAT.md alone."""

from random import Random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from oocbfs.conversion.order import max_tail_bytes
from oocbfs.kernels import varint
from oocbfs.kernels.constants import NO_HEAD
from tests.support.plain_rows import encode_tail


def encode(
    rows: list[list[int]], column_bits: int, weights: NDArray[np.uint32]
) -> tuple[NDArray[np.uint32], NDArray[np.uint32], bytes]:
    keys = np.array([r << column_bits | v for r, row in enumerate(rows) for v in row], np.uint64)
    heads, lengths, degrees = (np.empty(len(rows), np.uint32) for _ in range(3))
    tails = np.empty(max_tail_bytes(keys.size), np.uint8)
    size = varint.encode_rows(tails, heads, lengths, degrees, keys, weights, 0, column_bits)
    assert degrees.tolist() == [len(row) for row in rows]
    assert int(lengths.sum()) == size
    return heads, lengths, tails[:size].tobytes()


def check(rows: list[list[int]], column_bits: int) -> None:
    heads, lengths, tails = encode(rows, column_bits, np.empty(0, np.uint32))
    expected = [encode_tail(row[1:]) for row in rows]
    assert tails == b"".join(expected)
    assert heads.tolist() == [row[0] if row else NO_HEAD for row in rows]
    offset = 0
    for row, length in zip(rows, lengths.tolist(), strict=True):
        out = np.empty(max(0, len(row) - 1), np.uint32)
        data = np.frombuffer(tails, np.uint8)
        count = varint.decode_tail(out, data, offset, offset + length, 1 << column_bits)
        assert count == out.size
        assert out.tolist() == row[1:]
        offset += length


rows_of_small_ids = st.lists(st.integers(0, 2**20 - 1), unique=True, max_size=50).map(sorted)


@given(st.lists(rows_of_small_ids, min_size=1, max_size=8))
def test_rows_match_the_plain_twin(rows: list[list[int]]) -> None:
    check(rows, 20)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=False), st.integers(1, 32), st.integers(900, 3000))
def test_hub_rows_match_the_plain_twin(random: Random, bits: int, size: int) -> None:
    size = min(size, 2**bits)
    check([sorted(random.sample(range(2**bits), size)), [0], []], bits)


@pytest.mark.parametrize("size", range(1018, 1032))
def test_lengths_around_a_segment(size: int) -> None:
    """One-byte varints fill a segment exactly; a two-byte one at its end must be stretched."""
    check([list(range(size))], 16)
    check([[*range(size), 40_000]], 16)


@pytest.mark.parametrize("step", [128, 2**14, 2**21])
def test_stretched_varints_of_every_length(step: int) -> None:
    for jitter in range(6):
        row = [jitter, *range(1000, 1000 + step * 1100, step)]
        check([row], 32)


def test_head_is_the_heaviest_neighbour_and_the_first_among_equals() -> None:
    weights = np.array([1, 5, 9, 9, 2, 0, 0, 0], np.uint32)
    heads, _, tails = encode([[0, 1, 2, 3, 4], [4]], 3, weights)
    assert heads.tolist() == [2, 4]
    assert tails == encode_tail([0, 1, 3, 4])


@given(st.binary(max_size=2100), st.integers(1, 2**32 - 2))
def test_decoding_anything_never_crashes(data: bytes, num_vertices: int) -> None:
    out = np.empty(3000, np.uint32)
    count = varint.decode_tail(out, np.frombuffer(data, np.uint8), 0, len(data), num_vertices)
    if count >= 0:
        assert (out[:count] < num_vertices).all()
