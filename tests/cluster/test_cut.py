"""The cut: every vertex has one shard and one row there."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oocbfs.formats.container.cut import Cut


@given(num_vertices=st.integers(0, 2000), parts=st.integers(1, 40))
def test_parts_hold_every_vertex_once(num_vertices: int, parts: int) -> None:
    cut = Cut(num_vertices, parts)
    found = [cut.vertex_of(part, np.arange(cut.rows_of(part))) for part in range(parts)]
    np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(num_vertices))
    for part, vertices in enumerate(found):
        assert (cut.shard_of(vertices) == part).all()
        np.testing.assert_array_equal(cut.row_of(vertices), np.arange(vertices.size))
    assert sum(cut.words_of(part) for part in range(parts)) == cut.num_words


def test_a_part_of_a_bitmap_is_that_of_its_rows() -> None:
    cut = Cut(1000, 3)
    bits = np.random.default_rng(1).random(1024) < 0.5
    words = np.packbits(bits, bitorder="little").view(np.uint64)
    for part in range(3):
        own = np.ascontiguousarray(cut.own(words, part)).view(np.uint8)
        rows = np.unpackbits(own, bitorder="little")[: cut.rows_of(part)].astype(np.bool_)
        np.testing.assert_array_equal(rows, bits[cut.vertex_of(part, np.arange(rows.size))])


@pytest.mark.parametrize("parts", [1, 2, 7])
def test_hubs_are_dealt_to_all_parts(parts: int) -> None:
    cut = Cut(64 * parts, parts)
    assert [cut.rows_of(part) for part in range(parts)] == [64] * parts
