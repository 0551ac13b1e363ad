"""Bitmaps as messages: nothing is lost, and what is sparse is small."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oocbfs.cluster.messages import pack, unpack
from oocbfs.errors import FormatError


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
    assert len(message) <= 6 + min(bits.size // 8, 1.05 * entropy + 8)


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0",
        b"\0" * 14,
        b"\1\0\1\0\0\0",  # one distance, and none there
        b"\1\0\1\0\0\0" + bytes(17) + b"\1",  # beyond the bitmap
        b"\1\x21\1\0\0\0" + b"\xff" * 9,
        b"\2\x20\3\0\0\0" + b"\xff" * 20,
        b"\3\0\0\0\0\0",
    ],
)
def test_a_damaged_message_is_refused(message: bytes) -> None:
    with pytest.raises(FormatError, match="damaged"):
        unpack(message, 2)
