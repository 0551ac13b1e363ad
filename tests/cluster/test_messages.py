"""Bitmaps as messages: nothing is lost, and what is sparse is small."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oocbfs.cluster.messages import pack, put_set, take_set, unpack
from oocbfs.errors import FormatError
from oocbfs.plan.messages import CODED_BITS, QUICK_BITS, set_bytes


def start(count: int, words: int) -> bytes:
    """Return what a message begins with."""
    return struct.pack("<BQI", 0, count, words)


@given(words=st.lists(st.sampled_from([0, 1, 2**63, 2**64 - 1, 2**64 - 2, 12345]), max_size=200))
def test_there_and_back(words: list[int]) -> None:
    bitmap = np.array(words, np.uint64)
    np.testing.assert_array_equal(unpack(pack(bitmap), bitmap.size), bitmap)


@pytest.mark.parametrize("coded_bits", [QUICK_BITS, CODED_BITS])
@pytest.mark.parametrize("density", [0.0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0])
def test_messages_take_what_the_formula_says(density: float, coded_bits: int) -> None:
    bits = np.random.default_rng(2).random(1 << 16) < density
    words, count = np.packbits(bits, bitorder="little").view(np.uint64), int(bits.sum())
    message = put_set(words, count, coded_bits)
    assert message.size == set_bytes(bits.size, count, coded_bits)
    np.testing.assert_array_equal(take_set(message, words.size, count, coded_bits), words)


@given(st.sets(st.integers(0, 64 * 40 - 1)))
def test_any_set_has_room_in_its_length(numbers: set[int]) -> None:
    """However numbers lie, all at the end or spread out."""
    words = np.zeros(40, np.uint64)
    for v in numbers:
        words[v >> 6] |= np.uint64(1) << np.uint64(v & 63)
    for coded_bits in (QUICK_BITS, CODED_BITS):
        message = put_set(words, len(numbers), coded_bits)
        assert message.size == set_bytes(64 * 40, len(numbers), coded_bits)
        np.testing.assert_array_equal(take_set(message, 40, len(numbers), coded_bits), words)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0",
        start(64, 2) + bytes(8),  # two words, and one there
        start(64, 3) + bytes(24),  # three words, of two
        start(1, 2),  # one number, and none there
        start(1, 2) + bytes(2),  # beyond the bitmap
        start(3, 2) + b"\xff" * 4,  # too short
        start(3, 2) + b"\xff" * 6,  # the same number twice
        start(129, 2) + bytes(16),
        start(2**63, 2) + bytes(16),
    ],
)
def test_a_damaged_message_is_refused(message: bytes) -> None:
    with pytest.raises(FormatError, match="damaged"):
        unpack(message, 2)
