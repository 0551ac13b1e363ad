"""The cooperative varint decoder against a plain one, on every alignment and length."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oocbfs.gpu.emulator_device import EmulatorDevice, align_tails
from oocbfs.kernels.cuda.source import ROWS_STRUCT, KernelOptions
from oocbfs.kernels.emulator.library import Library
from tests.support.gpu.emulated import CHECKS, FOLDER

PROBE = Path(__file__).parents[1] / "cuda" / "probe_decode.cu"


@cache
def library() -> Library:
    return Library(KernelOptions(), CHECKS, FOLDER, sources=[PROBE])


def encode(ids: list[int], stretch: int = 0) -> bytes:
    """Encode one span; the last varint gets so many redundant bytes."""
    out = bytearray()
    previous = -1
    for value in ids:
        delta = value - previous - 1
        previous = value
        while delta >= 128:
            out.append(delta & 127 | 128)
            delta >>= 7
        out.append(delta)
    if stretch and out:
        out[-1] |= 128
        out += b"\x80" * (stretch - 1) + b"\0"
    return bytes(out)


def decode(
    spans: list[bytes],
    gaps: list[int],
    lanes: int,
    seed: int = 1,
    num_vertices: int = 2**32 - 1,
    damaged: int = 0,
) -> list[list[int]]:
    """Decode spans that lie in one buffer after gaps of hostile bytes; so many must be reported.

    One lane takes short spans only; none gives the first id alone, or what is no vertex.
    """
    data, begins, ends = bytearray(), [], []
    for span, gap in zip(spans, gaps, strict=True):
        data += bytes([0x85, 0x03, 0xFF, 0x00] * gap)[:gap]
        begins.append(len(data))
        data += span
        ends.append(len(data))
    max_ids = max(map(len, spans), default=0) + 1
    device = EmulatorDevice(library=library(), seed=seed)
    ids = device.allocate(len(spans) * max_ids, np.uint32)
    counts = device.copy_in(np.zeros(2 * len(spans), np.uint32))
    borders = [device.copy_in(np.array(offsets, np.uint64)) for offsets in (begins, ends)]
    rows = np.zeros((), ROWS_STRUCT)
    with device.map_host(align_tails(np.frombuffer(bytes(data), np.uint8))) as address:
        rows["slow"], rows["num_vertices"], rows["num_ids"] = address, num_vertices, num_vertices
        device.launch(
            f"probe_decode_{lanes}",
            2,
            64,
            (
                *(np.array(memory.address, np.uint64) for memory in (ids, counts)),
                rows,
                *(np.array(memory.address, np.uint64) for memory in borders),
                np.array(len(spans), np.uint32),
                np.array(max_ids, np.uint32),
            ),
        )
    found = device.download(counts)
    assert found[len(spans) :].sum() == damaged
    table = device.download(ids).reshape(len(spans), max_ids)
    return [table[i, : found[i]].tolist() for i in range(len(spans))]


SORTED = st.lists(
    st.one_of(st.integers(0, 300), st.integers(0, 2**32 - 2)), max_size=90, unique=True
).map(sorted)


@pytest.mark.parametrize("lanes", [8, 32])
@given(
    st.lists(st.tuples(SORTED, st.integers(0, 140), st.integers(0, 4)), min_size=1, max_size=9),
    st.integers(0, 2**32),
)
@settings(max_examples=60, deadline=None)
def test_decodes_what_was_encoded(
    lanes: int, rows: list[tuple[list[int], int, int]], seed: int
) -> None:
    spans = [encode(ids, stretch) for ids, _, stretch in rows]
    decoded = decode(spans, [gap for _, gap, _ in rows], lanes, seed)
    assert decoded == [ids for ids, _, _ in rows]


@pytest.mark.parametrize("lanes", [8, 32])
@pytest.mark.parametrize("stretch", range(5))
def test_longest_varints_at_every_alignment(stretch: int, lanes: int) -> None:
    ids = [5, 2**32 - 2]
    spans = [encode(ids, stretch)] * 130
    assert decode(spans, list(range(130)), lanes) == [ids] * 130


@pytest.mark.parametrize("lanes", [8, 32])
def test_a_span_that_ends_inside_a_varint_is_noticed(lanes: int) -> None:
    whole = encode([1, 2, 400])
    assert decode([whole[:-1] + b"\x80", whole], [3, 0], lanes, damaged=1)[1] == [1, 2, 400]


@pytest.mark.parametrize("lanes", [1, 8, 32])
@pytest.mark.parametrize("more", range(5, 17))
def test_varints_of_more_than_nine_bytes_are_noticed(more: int, lanes: int) -> None:
    gaps = list(range(130))
    damaged = len(gaps) if more > 8 else 0
    for value in (0, 5):
        spans = [bytes([7, 128 | value, *[128] * (more - 1), 0, 9])] * len(gaps)
        found = decode(spans, gaps, lanes, damaged=damaged)
        if not damaged:
            assert found == [[7, 8 + value, 18 + value]] * len(gaps)


@pytest.mark.parametrize("lanes", [1, 8, 32])
@pytest.mark.parametrize("num_vertices", [2**31 + 1, 3 * 10**9, 2**32 - 2])
def test_sums_that_wrap_around_are_noticed(num_vertices: int, lanes: int) -> None:
    """No value is too large for a row, but their sum leads back to a vertex that exists."""
    gaps = list(range(130))
    last = num_vertices - 1
    for first in (2**31 - 1, last - 1):
        for more in ([], [first + 1], [first + 1, first + 200]):
            ids = [first, *(id for id in more if id < last), last]
            spans = [encode(ids)] * len(gaps)
            assert decode(spans, gaps, lanes, num_vertices=num_vertices) == [ids] * len(gaps)
            # The largest value there is, and the one that leads back to vertex 0.
            for value in {last, 2**32 - 1 - ids[-2]}:
                spans = [encode([*ids[:-1], ids[-2] + value + 1])] * len(gaps)
                decode(spans, gaps, lanes, num_vertices=num_vertices, damaged=len(gaps))


@pytest.mark.parametrize("lanes", [8, 32])
@pytest.mark.parametrize("gap", range(0, 40, 7))
def test_values_that_no_row_holds_are_noticed(gap: int, lanes: int) -> None:
    # The value n - 1 is the last one a row of n vertices can hold.
    assert decode([encode([999])], [gap], lanes, num_vertices=1000) == [[999]]
    decode([encode([1000])], [gap], lanes, num_vertices=1000, damaged=1)
    # Bits that 32 cannot hold, in the fifth byte and after it.
    for bits in range(4, 7):
        decode([bytes([0x81, 0x80, 0x80, 0x80, 1 << bits])], [gap], lanes, damaged=1)
    for more in range(5, 9):
        span = bytes([0x81, *[0x80] * (more - 1), 0x01])
        decode([span], [gap], lanes, damaged=1)
    decode([bytes([0x81, 0x80, 0x80, 0x80, 0x80, 0xC0, 0x80, 0x00])], [gap], lanes, damaged=1)


def test_first_neighbours_that_no_row_holds_are_noticed() -> None:
    """Cuts skip segments by their first neighbour; no other test looks at those."""
    for ids in ([0], [127, 128], [2**32 - 2]):
        spans = [encode(ids)] * 40
        assert decode(spans, list(range(40)), 0) == [ids[:1]] * 40
    too_large, endless = bytes([0x81, 0x80, 0x80, 0x80, 0x10]), bytes([0x81] * 5 + [0])
    for span in (too_large, endless, b"\x80", encode([2**32 - 1])):
        assert decode([span] * 40, list(range(40)), 0) == [[2**32 - 1]] * 40
