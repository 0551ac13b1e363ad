"""Count the sectors a search moves without running its kernels.

From the order of queue and pending list, this follows which lanes load together: a sector that
several lanes of one instruction touch is moved once, a sector that two instructions touch twice.
"""

# ruff: noqa: ANN001, ANN201, ANN202
# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator"

from __future__ import annotations

import numpy as np
from numba import njit

from oocbfs.kernels.constants import SEGMENT_BYTES

SHORT_BYTES = 32
SECTORS_PER_INSTRUCTION = 16
# After every vertex.
NO_CUT = 1 << 32


@njit(cache=True)
def span(bases, starts, shift, u):
    begin = np.int64(bases[u >> shift]) + np.int64(starts[u])
    return begin, np.int64(bases[(u + 1) >> shift]) + np.int64(starts[u + 1])


@njit(cache=True)
def distinct(sectors, count):
    found = 0
    for i in range(count):
        new = True
        for j in range(i):
            new = new and sectors[j] != sectors[i]
        found += new
    return found


@njit(cache=True)
def _staged(begins, ends, fast):
    """Sectors of up to 32 short rows: listed in the order of the lanes, loaded 16 at a time."""
    listed = np.empty(64, np.int64)
    total = 0
    for i in range(begins.size):
        if 0 < ends[i] - begins[i] <= SHORT_BYTES:
            for sector in range(begins[i] >> 5, (ends[i] - 1 >> 5) + 1):
                listed[total] = sector
                total += 1
    return _loaded(listed, total, fast)


@njit(cache=True)
def _loaded(listed, total, fast):
    """Sectors that are moved for a list of them: those of one instruction once."""
    moved = 0
    for first in range(0, total, SECTORS_PER_INSTRUCTION):
        slow = listed[first : min(first + SECTORS_PER_INSTRUCTION, total)]
        slow = slow[(slow < fast[0]) | (slow >= fast[1])]
        moved += distinct(slow, slow.size)
    return moved


@njit(cache=True)
def _hits_early(tails, begin, visited):
    """Return whether a varint that ends in the first sector of a row is a visited neighbour."""
    offset, v = begin, np.int64(-1)
    border = (begin >> 5) + 1 << 5
    while True:
        delta, shift = np.int64(0), 0
        while offset < border:
            byte = np.int64(tails[offset])
            offset += 1
            delta |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        if offset == border and tails[border - 1] >= 128:
            return False
        v += delta + 1
        if visited[v]:
            return True
        if offset == border:
            return False


@njit(cache=True)
def _staged_search(begins, ends, fast, tails, visited):
    """Sectors of up to 32 short rows that search: all first ones, then what is still needed.

    A second one in which the row of the next lane begins is not loaded again.
    """
    listed = np.empty(32, np.int64)
    total = 0
    for i in range(begins.size):
        if 0 < ends[i] - begins[i] <= SHORT_BYTES:
            listed[total] = begins[i] >> 5
            total += 1
    moved = _loaded(listed, total, fast)
    total = 0
    for i in range(begins.size):
        if not 0 < ends[i] - begins[i] <= SHORT_BYTES:
            continue
        second = (begins[i] >> 5) + 1
        if ends[i] - 1 >> 5 != second or _hits_early(tails, begins[i], visited):
            continue
        j = i + 1
        if j < begins.size and 0 < ends[j] - begins[j] <= SHORT_BYTES and begins[j] >> 5 == second:
            continue
        listed[total] = second
        total += 1
    return moved + _loaded(listed, total, fast)


@njit(cache=True)
def whole(begin, end, fast):
    moved = 0
    for sector in range(begin >> 5, (end - 1 >> 5) + 1):
        moved += sector < fast[0] or sector >= fast[1]
    return moved


@njit(cache=True)
def _skip_segments(tails, begin, end, cut, fast):
    """Bisect for the segment with the cut; return its begin and the sectors that this moved."""
    low, high = 0, (end - begin + SEGMENT_BYTES - 1) // SEGMENT_BYTES
    moved = 0
    while high - low > 1:
        middle = (low + high) // 2
        offset = begin + middle * SEGMENT_BYTES
        first, length = np.int64(0), 0
        while True:
            # Every word is an instruction of its own.
            if length == 0 or offset % 4 == 0:
                moved += whole(offset, offset + 1, fast)
            first |= (np.int64(tails[offset]) & 127) << (7 * length)
            length += 1
            offset += 1
            if tails[offset - 1] < 128:
                break
        if first <= cut:
            low = middle
        else:
            high = middle
    return begin + low * SEGMENT_BYTES, moved


@njit(cache=True)
def count_top_down(bases, starts, shift, tails, frontier, fast, cut=0):
    """Sectors of expanding a frontier; fast is the device range in sectors.

    Segments of hubs that lead to vertices before the cut alone are skipped; none lies before 0,
    which is no cut.
    """
    moved = 0
    each = min(32, max(1, frontier.size // 512))  # vertices of a warp
    begins, ends = np.empty(32, np.int64), np.empty(32, np.int64)
    for first in range(0, frontier.size, each):
        piece = frontier[first : first + each]
        for i in range(piece.size):
            begins[i], ends[i] = span(bases, starts, shift, piece[i])
            if ends[i] - begins[i] > SHORT_BYTES:
                begin = begins[i]
                if cut > 0:
                    begin, probed = _skip_segments(tails, begin, ends[i], cut, fast)
                    moved += probed
                for segment in range(begin, ends[i], SEGMENT_BYTES):
                    moved += whole(segment, min(segment + SEGMENT_BYTES, ends[i]), fast)
        moved += _staged(begins[: piece.size], ends[: piece.size], fast)
    return moved


@njit(cache=True)
def _probes(tails, begin, end, visited, probe, out):
    """Offsets of the chunks that a search of a segment loads, up to its first hit.

    Return how many there are, and whether there is a hit.
    """
    count = 0
    chunk = begin // probe * probe
    offset = begin
    v = np.int64(-1)
    hit_chunk = np.int64(-1)
    while offset < end and hit_chunk < 0:
        delta = np.int64(0)
        shift = 0
        while True:
            byte = np.int64(tails[offset])
            offset += 1
            if shift < 35:
                delta |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                break
        v += delta + 1
        if visited[v]:
            hit_chunk = (offset - 1) // probe * probe
    last = hit_chunk if hit_chunk >= 0 else (end - 1) // probe * probe
    while chunk <= last:
        out[count, 0] = max(chunk, begin)
        out[count, 1] = min(chunk + probe, end)
        count += 1
        chunk += probe
    return count, hit_chunk >= 0


@njit(cache=True)
def count_bottom_up(bases, starts, shift, tails, pending, visited, fast, probe, cut=NO_CUT):
    """Sectors of searching the tails of pending vertices before the cut for a visited neighbour.

    A group of lanes searches the first segment of a row. If that holds nothing, a warp searches
    each of the others, 128 bytes at a time.
    """
    moved = 0
    groups = 128 // probe
    chunks = np.empty((groups, SEGMENT_BYTES // probe + 1, 2), np.int64)
    others = np.empty((SEGMENT_BYTES // 128 + 1, 2), np.int64)
    counts = np.zeros(groups, np.int64)
    begins, ends = np.empty(32, np.int64), np.empty(32, np.int64)
    together = np.empty(4 * groups, np.int64)
    for first in range(0, pending.size, 32):
        piece = pending[first : first + 32]
        for i in range(piece.size):
            begins[i], ends[i] = span(bases, starts, shift, piece[i])
            if piece[i] >= cut:
                ends[i] = begins[i]
        moved += _staged_search(begins[: piece.size], ends[: piece.size], fast, tails, visited)
        waiting = 0
        for i in range(piece.size + 1):
            if i < piece.size and ends[i] - begins[i] > SHORT_BYTES:
                first_end = min(begins[i] + SEGMENT_BYTES, ends[i])
                counts[waiting], hits = _probes(
                    tails, begins[i], first_end, visited, probe, chunks[waiting]
                )
                waiting += 1
                for segment in range(first_end, ends[i] if not hits else first_end, SEGMENT_BYTES):
                    segment_end = min(segment + SEGMENT_BYTES, ends[i])
                    count, _ = _probes(tails, segment, segment_end, visited, 128, others)
                    for k in range(count):
                        moved += whole(others[k, 0], others[k, 1], fast)
            if waiting == groups or (i == piece.size and waiting):
                for step in range(counts[:waiting].max()):
                    total = 0
                    for g in range(waiting):
                        if step < counts[g]:
                            low, high = chunks[g, step, 0], chunks[g, step, 1]
                            for sector in range(low >> 5, (high - 1 >> 5) + 1):
                                if sector < fast[0] or sector >= fast[1]:
                                    together[total] = sector
                                    total += 1
                    moved += distinct(together, total)
                waiting = 0
    return moved


@njit(cache=True)
def _by_memory(begin, end, fast):
    """Count the sectors of a row outside the device range, and inside."""
    touched = (end - 1 >> 5) - (begin >> 5) + 1 if begin < end else 0
    slow = whole(begin, end, fast) if begin < end else 0
    return slow, touched - slow


@njit(cache=True)
def frontier_sectors(bases, starts, shift, frontier, fast):
    """Count the sectors of a frontier's rows by memory, and those that a cut may save."""
    sectors = np.zeros(4, np.int64)
    for u in frontier:
        begin, end = span(bases, starts, shift, u)
        last_segment = begin + max(0, end - begin - 1) // SEGMENT_BYTES * SEGMENT_BYTES
        for first, last in ((0, end), (2, last_segment)):
            slow, in_fast = _by_memory(begin, last, fast)
            sectors[first] += slow
            sectors[first + 1] += in_fast
    return sectors


@njit(cache=True)
def tail_bytes(bases, starts, shift, frontier):
    """Count the bytes of a frontier's rows."""
    total = 0
    for u in frontier:
        begin, end = span(bases, starts, shift, u)
        total += end - begin
    return total


@njit(cache=True)
def look_at_heads(heads, bases, starts, shift, visited, fast, expected_search, pending, cuts):
    """Count pending vertices; estimate the bytes that searching reads, by memory, between cuts."""
    count = number = 0
    read = np.zeros((2, cuts.size + 1), np.int64)
    last_word = left_first = left_last = np.int64(-1)
    for u in range(heads.size):
        if visited[u] or heads[u] >= heads.size or visited[heads[u]]:
            continue
        begin, end = span(bases, starts, shift, u)
        if begin == end:
            continue
        while number < cuts.size and u >= cuts[number]:
            number += 1
        pending[count] = u
        count += 1
        if u >> 5 != last_word:  # lanes see what is pending in their word of the bitmap alone
            left_first = left_last = np.int64(-1)
        first, last = begin >> 5, end - 1 >> 5
        if end - begin > SHORT_BYTES:
            row_bytes = min(32 * (last - first + 1), expected_search)
        else:
            shared = 32 if first == left_first else 16 if first == left_last else 0
            row_bytes = 32 - shared + 16 * (last - first)
            left_first, left_last = first, last
        read[np.int64(fast[0] <= first < fast[1]), number] += row_bytes
        last_word = np.int64(u >> 5)
    return count, read


@njit(cache=True)
def count_heads_pass(visited):
    """Sectors of heads that a heads pass would move: those with a vertex not visited."""
    moved = 0
    for first in range(0, visited.size, 8):
        moved += not visited[first : first + 8].all()
    return moved


@njit(cache=True)
def count_frontier_heads(frontier):
    """Sectors of heads that expanding a frontier would move, 32 vertices an instruction."""
    moved = 0
    for first in range(0, frontier.size, 32):
        sectors = frontier[first : first + 32] >> 3
        moved += distinct(sectors, sectors.size)
    return moved
