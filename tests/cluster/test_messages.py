"""Bitmaps as messages: nothing is lost, and what is sparse is small."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oocbfs.cluster.messages import pack, unpack
from oocbfs.errors import FormatError


def start(form: int, low_bits: int, count: int, words: int) -> bytes:
    """Give what a message begins with."""
    return struct.pack("<BBBII", form, low_bits, 0, count, words)


@given(words=st.lists(st.sampled_from([0, 1, 2**63, 2**64 - 1, 2**64 - 2, 12345]), max_size=200))
def test_there_and_back(words: list[int]) -> None:
    bitmap = np.array(words, np.uint64)
    np.testing.assert_array_equal(unpack(pack(bitmap), bitmap.size), bitmap)


@pytest.mark.parametrize("density", [0.0, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 1.0])
def test_messages_take_what_the_formula_says(density: float) -> None:
    bits = np.random.default_rng(2).random(1 << 16) < density
    message = pack(np.packbits(bits).view(np.uint64))
    few = min(int(bits.sum()), int((~bits).sum()))
    entropy = few * (np.log2(bits.size / few) + 1.44) / 8 if few else 0
    assert len(message) <= 11 + min(bits.size // 8, 1.05 * entropy + 8)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0",
        start(0, 0, 0, 2) + bytes(8),  # two words, and one there
        start(0, 0, 0, 3) + bytes(24),  # three words, of two
        start(1, 0, 1, 2),  # one distance, and none there
        start(1, 0, 1, 2) + bytes(17) + b"\1",  # beyond the bitmap
        start(1, 33, 1, 2) + b"\xff" * 9,
        start(2, 32, 3, 2) + b"\xff" * 20,
        start(3, 0, 0, 2),
    ],
)
def test_a_damaged_message_is_refused(message: bytes) -> None:
    with pytest.raises(FormatError, match="damaged"):
        unpack(message, 2)
