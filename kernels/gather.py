"""How the ids of rows are gathered: varints are decoded, decoded rows are copied."""

from __future__ import annotations

import numpy as np

from oocbfs.kernels.atomics import (
    apart,
    count_ones,
    extracts_fast,
    inlined,
    kernel,
    leading_zeros,
    load_word,
    pack_sevens,
    prefetch,
    trailing_zeros,
)
from oocbfs.kernels.constants import ONE, SEGMENT_BYTES, ZERO
from oocbfs.kernels.rows import row_begin
from oocbfs.kernels.vectors import (
    copy_ids,
    extract_bits,
    spread_bytes,
    store_copies,
    store_ids,
)

_STOPS = np.uint64(0x8080808080808080)
_BYTE = np.uint64(8)
# Tails of so many bytes have at most 9 ids.
_SHORTEST = 9
# Shorter tails are decoded one varint after the other: guessing their number is cheaper.
_SHORT = 12
_EXTRACTS_FAST = extracts_fast()
# For each choice of four varints that have two bytes, not one: where their bytes go.
_LANES = np.array(
    [
        sum(((0xFFFF if i >> lane & 1 else 0xFF) << 16 * lane) for lane in range(4))
        for i in range(16)
    ],
    np.uint64,
)
# Ids are stored 8 at a time, and owners 16, wherever fewer are left.
SPARE = 16
# Ids that one thread gathers before it looks at what they are; a segment adds at most
# SEGMENT_BYTES + 1.
BATCH = 4096
FULL = BATCH - SEGMENT_BYTES - 1 - SPARE
# How many rows ahead a row is asked for; its start twice as far. Rows that are decoded are copied
# in less time than the memory takes for one, so that many are on their way at once: a grid takes
# 0.85 of the time that it took with 16.
_AHEAD = 6
_FAR_AHEAD = 48
# Instead of an offset in the tails: the row has not been begun.
NOT_BEGUN = -1


@inlined
def take_varint(tails, offset):
    """Decode the varint at this offset without a branch; return its value and its end.

    All bytes of a word are looked at together, as in Vigna's broadword programming (WEA 2008):
    the lowest clear top bit ends the varint, and the sevens below it are packed into one value. A
    varint of nine bytes has no such bit among its first eight: then the count of trailing zeros
    is 64, and its end comes out right as well.
    """
    word = load_word(tails, offset)
    stops = ~word & _STOPS
    word &= stops ^ (stops - ONE)
    return np.int64(pack_sevens(word)), offset + (trailing_zeros(stops) + 8 >> 3)


@inlined
def take_word(ids, count, tails, offset, end, v):
    """Append the ids of the varints that end within the next 8 bytes before ``end``.

    ``v`` is the id before. Returns the new count, the offset of the next varint and the last id.

    Where varints have at most two bytes, as most have, all are decoded at once: each is moved into
    two bytes of its own, and their gaps are summed up in a vector. Nothing is guessed, whether a
    varint has one byte or two.
    """
    num_bytes = min(end - offset, 8)
    word = load_word(tails, offset) & ~ZERO >> np.uint64(64 - 8 * num_bytes)
    stops = ~word & _STOPS & ~ZERO >> np.uint64(64 - 8 * num_bytes)
    if stops == ZERO:
        delta, offset = take_varint(tails, offset)
        ids[count] = v + delta + 1
        return count + 1, offset, v + delta + 1
    num_bits = np.uint64(64 - leading_zeros(stops))
    word &= ~ZERO >> np.uint64(64) - num_bits
    longer = word & _STOPS
    if _EXTRACTS_FAST and longer & longer << _BYTE == ZERO:
        ones = extract_bits(longer, _STOPS)
        firsts = ~(ones << ONE) & ~ZERO >> np.uint64(64) - (num_bits >> np.uint64(3))
        twos = extract_bits(ones, firsts)
        low = _LANES[twos & np.uint64(15)]
        high = _LANES[twos >> np.uint64(4)]
        used = np.uint64(4 + count_ones(twos & np.uint64(15))) * _BYTE
        rest = word >> np.uint64(32) >> used - np.uint64(32)
        num_ids = count_ones(stops)
        v += store_ids(ids, count, v, spread_bytes(word, low), spread_bytes(rest, high))
        return count + num_ids, offset + np.int64(num_bits >> np.uint64(3)), v - 8 + num_ids
    # The word stays in a register: going back to memory would take twice as long.
    offset += np.int64(num_bits >> np.uint64(3))
    while stops != ZERO:
        bits = np.uint64(trailing_zeros(stops))
        v += np.int64(pack_sevens(word & (stops ^ (stops - ONE)))) + 1
        ids[count] = v
        count += 1
        word = word >> bits >> ONE
        stops = stops >> bits >> ONE
    return count, offset, v


@kernel
def gather_segment(ids, count, tails, offset, end, n):
    """Append the ids of one segment; return the new count, or -1 if it is malformed.

    ``ids`` needs SPARE more elements than there are ids.
    """
    v = np.int64(-1)
    if end - offset > _SHORT:
        # A segment begins with a whole id, which is longer than the gaps that follow.
        v, offset = take_varint(tails, offset)
        ids[count] = v
        count += 1
        while offset < end:
            count, offset, v = take_word(ids, count, tails, offset, end, v)
    while offset < end:
        delta, offset = take_varint(tails, offset)
        v += delta + 1
        ids[count] = v
        count += 1
    return count if offset <= end and v < n else np.int64(-1)


@apart
def gather_row_segment(rows, u, number, ids):
    """Gather one segment of a row, with the head if it is the first.

    Returns how many ids that are (-1 if they are malformed), and the bytes of the tail.
    """
    if rows.neighbours.size != 0:
        begin = np.int64(rows.firsts[u]) + number * SEGMENT_BYTES
        size = min(np.int64(rows.firsts[u + 1]) - begin, SEGMENT_BYTES)
        copy_row(ids, np.int64(0), rows.neighbours, begin, size)
        return size, np.int64(0)
    count = np.int64(0)
    if number == 0:
        head = rows.heads[u]
        ids[0] = head
        count = np.int64(head < rows.num_ids)
    offset = row_begin(rows, u) + number * SEGMENT_BYTES
    end = min(offset + SEGMENT_BYTES, row_begin(rows, u + 1))
    return gather_segment(ids, count, rows.tails, offset, end, rows.num_ids), end - offset


@inlined
def copy_row(ids, count, neighbours, begin, size):
    """Copy ``size`` decoded ids to ids[count:], eight at a time: there is room for more."""
    for i in range(0, size, 8):
        copy_ids(ids, count + i, neighbours, begin + i)


@inlined
def fetch_first_rows(rows, queue, q, end):
    """Fetch the first rows of queue[q:end], which ``gather_rows`` looks at too late for that."""
    firsts, neighbours = rows.firsts, rows.neighbours
    if neighbours.size != 0:
        end = min(end, q + _FAR_AHEAD)
        for i in range(q, end):
            prefetch(firsts, np.int64(queue[i]))
        for i in range(q, end):
            begin = np.int64(firsts[queue[i]])
            prefetch(neighbours, begin)
            prefetch(neighbours, begin + 7)


@kernel
def _copy_rows(rows, queue, q, offset, end, ids, owners, count, with_parents):
    """Do what ``gather_rows`` does where rows are decoded."""
    firsts, neighbours = rows.firsts, rows.neighbours
    while q < end and count < FULL:
        u = np.int64(queue[q])
        begin, row_end = np.int64(firsts[u]), np.int64(firsts[u + 1])
        if offset == NOT_BEGUN:
            prefetch(firsts, np.int64(queue[min(q + 2 * _FAR_AHEAD, end - 1)]))
            ahead = np.int64(firsts[queue[min(q + _FAR_AHEAD, end - 1)]])
            prefetch(neighbours, ahead)
            prefetch(neighbours, ahead + 7)  # what is copied at a time may lie in two cache lines
        else:
            begin = offset
        size = min(row_end - begin, SEGMENT_BYTES)
        copy_row(ids, count, neighbours, begin, size)
        if with_parents:
            for i in range(0, size, 16):
                store_copies(owners, count + i, u)
        count += size
        offset = begin + size
        if offset >= row_end:
            q += 1
            offset = np.int64(NOT_BEGUN)
    return q, offset, count, np.int64(0)


def make_tail_walk(look):
    """Make a walk over the ids of a tail, which ends when ``look`` has seen enough.

    ``look(carry, context, v)`` gives the new carry and whether that is enough. numba compiles it
    into the walk, as if it had been written out there.
    """

    @kernel
    def walk(tails, begin, end, n, carry, context):
        """Look at the ids of tails[begin:end], whole segments.

        Returns the last carry, the number of ids looked at (-1 if the tail is malformed), bytes.
        """
        offset = begin
        num_ids = np.int64(0)
        while offset < end:
            segment_end = min(offset + SEGMENT_BYTES, end)
            v = np.int64(-1)
            while offset < segment_end:
                delta, offset = take_varint(tails, offset)
                v += delta + 1
                num_ids += 1
                if v >= n:
                    return carry, np.int64(-1), offset - begin
                carry, enough = look(carry, context, v)
                if enough:
                    return carry, num_ids, offset - begin
            if offset > segment_end:
                return carry, np.int64(-1), offset - begin
        return carry, num_ids, offset - begin

    return walk


@inlined
def _take_short_tail(ids, count, tails, begin, end):
    """Append the ids of a tail of at most _SHORTEST bytes without a branch.

    Returns the new count, the largest id, and whether this was possible: no gap after the first id
    has more than two bytes, and the tail is well formed.
    """
    v, offset = take_varint(tails, begin)
    has_tail = np.int64(begin < end)
    ids[count] = v
    count += has_tail
    half = np.uint64(4 * min(max(end - offset, 0), 8) * has_tail)
    inside = ~(~ZERO << half << half)
    word = load_word(tails, offset) & inside
    stops = ~word & _STOPS & inside
    longer = word & _STOPS
    ones = extract_bits(longer, _STOPS)
    firsts = ~(ones << ONE) & ~(~ZERO << (half >> np.uint64(2)))
    twos = extract_bits(ones, firsts)
    used = np.uint64(4 + count_ones(twos & np.uint64(15))) * _BYTE
    rest = word >> np.uint64(32) >> used - np.uint64(32)
    num_ids = count_ones(stops)
    low, high = _LANES[twos & np.uint64(15)], _LANES[twos >> np.uint64(4)]
    v += store_ids(ids, count, v, spread_bytes(word, low), spread_bytes(rest, high)) - 8 + num_ids
    ends_well = np.uint64(64 - leading_zeros(stops)) == half << ONE and offset <= end
    possible = (longer & longer << _BYTE == ZERO and ends_well) or has_tail == 0
    return count + num_ids, v * has_tail, possible


@apart
def gather_rows(rows, queue, q, offset, end, ids, owners, count, with_parents):
    """Append the ids of the rows queue[q:end] until FULL, those of the first from ``offset`` on.

    Returns where to go on (q and offset), the count of ids (-1 if a row is damaged) and the bytes
    of the tails that were begun. Owners, if parents are wanted, get the vertex of each id's row.

    Many ids are decoded before anything looks at what they are: a row's end is hard to predict,
    and a processor that guessed wrong throws away the reads it has under way.
    """
    if rows.neighbours.size != 0:
        return _copy_rows(rows, queue, q, offset, end, ids, owners, count, with_parents)
    heads, tails = rows.heads, rows.tails
    num_bytes = np.int64(0)
    while q < end and count < FULL:
        u = np.int64(queue[q])
        row_end = row_begin(rows, u + 1)
        first = count
        if offset == NOT_BEGUN:
            if q + 2 * _AHEAD < end:
                ahead = np.int64(queue[q + 2 * _AHEAD])
                prefetch(heads, ahead)
                prefetch(rows.starts, ahead)
                begin = row_begin(rows, np.int64(queue[q + _AHEAD]))
                prefetch(tails, begin)
                prefetch(tails, begin + 64)
            offset = row_begin(rows, u)
            num_bytes += row_end - offset
            head = heads[u]
            ids[count] = head
            count += np.int64(head < rows.num_ids)
            if _EXTRACTS_FAST and row_end - offset <= _SHORTEST:
                new_count, largest, possible = _take_short_tail(ids, count, tails, offset, row_end)
                if possible and largest < rows.num_ids:
                    if with_parents:
                        store_copies(owners, first, u)
                    count = new_count
                    q += 1
                    offset = np.int64(NOT_BEGUN)
                    continue
        segment_end = min(offset + SEGMENT_BYTES, row_end)
        count = gather_segment(ids, count, tails, offset, segment_end, rows.num_ids)
        if count < 0:
            break
        if with_parents:
            for i in range(first, count):
                owners[i] = u
        offset = segment_end
        if offset >= row_end:
            q += 1
            offset = np.int64(NOT_BEGUN)
    return q, offset, count, num_bytes
