"""Bits of a WebGraph file to successors: the BV format, one node after the other.

The record of a node x is a series of codes: its outdegree d; which earlier node's list it copies
from (x - reference); which blocks of that list are copied and which are left out, in turn;
intervals of consecutive successors; and the residual successors, as differences. What is copied,
the intervals and the residuals are disjoint and ascending, and are merged here.

A code gives a number and the position of the bit after it. A position above ``end`` means that the
bits did not suffice, a negative number that no writer makes such a code.
"""

from __future__ import annotations

import numpy as np
from numba import types

from oocbfs.kernels.array_types import I64, READ_I64, READ_U64, U64
from oocbfs.kernels.atomics import inlined, kernel, leading_zeros
from oocbfs.kernels.cache import compiled

# The codes, and the numbers that are written in one of them each. A field has two settings: its
# code, and the parameter of that code.
UNARY, GAMMA, DELTA, ZETA, GOLOMB, NIBBLE = range(6)
FIELDS = OUTDEGREES, REFERENCES, BLOCK_COUNTS, BLOCKS, INTERVALS, RESIDUALS = range(0, 12, 2)
# What follows the fields in the settings.
WINDOW, MIN_INTERVAL, NUM_NODES, NUM_SETTINGS = 12, 13, 14, 15

# Where a stream of nodes stands: the next bit, the next node, the end of the successors, and how
# much room its successors need.
POSITION, NODE, USED, NEEDED, NUM_STATE = range(5)

# Why decoding stopped.
DONE, NEEDS_BITS, NEEDS_ROOM = range(3)
BAD_CODE, BAD_DEGREE, BAD_REFERENCE, BAD_BLOCKS, BAD_INTERVALS, BAD_SUCCESSOR, TWICE = range(3, 10)

# Numbers stay below 2^62, so that no sum of two overflows.
_MAX_BITS = 61


@inlined
def _peek(words, position):
    """Return the 64 bits from a position on."""
    index, shift = position >> 6, np.uint64(position & 63)
    bits = words[index] << shift
    if shift:
        bits |= words[index + 1] >> (np.uint64(64) - shift)
    return bits


@inlined
def _bits(words, position, end, count):
    """Read a number of up to 62 bits."""
    if position + count > end:
        return np.int64(0), end + 1
    if count == 0:
        return np.int64(0), position
    return np.int64(_peek(words, position) >> np.uint64(64 - count)), position + count


@inlined
def _unary(words, position, end):
    """Count zeros before a one."""
    start = position
    while position < end:
        bits = _peek(words, position)
        if bits:
            position += leading_zeros(bits)
            return position - start, position + 1
        position += 64
    return np.int64(0), end + 1


@inlined
def _with_length(words, position, end, length):
    """Read a number of which the bits below the highest one are written."""
    if length < 0 or length > _MAX_BITS:
        return np.int64(-1), position
    low, position = _bits(words, position, end, length)
    return (np.int64(1) << length) + low - 1, position


@inlined
def _gamma(words, position, end):
    length, position = _unary(words, position, end)
    return _with_length(words, position, end, length)


@inlined
def _zeta(words, position, end, shrink):
    steps, position = _unary(words, position, end)
    if (steps + 1) * shrink > _MAX_BITS:
        return np.int64(-1), position
    left = np.int64(1) << (steps * shrink)
    value, position = _bits(words, position, end, (steps + 1) * shrink - 1)
    if value < left:
        return value + left - 1, position
    bit, position = _bits(words, position, end, 1)
    return (value << 1) + bit - 1, position


@inlined
def _golomb(words, position, end, modulus):
    quotient, position = _unary(words, position, end)
    length = 63 - leading_zeros(np.uint64(modulus))
    short = (np.int64(2) << length) - modulus
    rest, position = _bits(words, position, end, length)
    if rest >= short:
        bit, position = _bits(words, position, end, 1)
        rest = (rest << 1) + bit - short
    return quotient * modulus + rest, position


@inlined
def _nibbles(words, position, end):
    """Read three bits at a time; the last ones follow a one."""
    value = np.int64(0)
    while value >> (_MAX_BITS - 3) == 0:
        bits, position = _bits(words, position, end, 4)
        value = (value << 3) | (bits & 7)
        if bits & 8 or position > end:
            return value, position
    return np.int64(-1), position


@kernel
def _number(words, position, end, settings, field):
    """Read a number in the code of its field."""
    code, parameter = settings[field], settings[field + 1]
    if code == GAMMA:
        return _gamma(words, position, end)
    if code == ZETA:
        return _zeta(words, position, end, parameter)
    if code == UNARY:
        return _unary(words, position, end)
    if code == DELTA:
        length, position = _gamma(words, position, end)
        return _with_length(words, position, end, length)
    if code == GOLOMB:
        return _golomb(words, position, end, parameter)
    return _nibbles(words, position, end)


@inlined
def _signed(number):
    """Map 0, 1, 2, 3, 4 … to 0, -1, 1, -2, 2 …."""
    return (number >> 1) ^ -(number & 1)


@inlined
def _stopped(number, position, end):
    """Return whether a number was not read, and why."""
    if position > end:
        return NEEDS_BITS
    return BAD_CODE if number < 0 else DONE


@kernel
def _copy_blocks(successors, at, degree, source, stop, words, position, end, settings):
    """Copy blocks of the list in [source, stop); returns why it stopped, how many, and where."""
    count, position = _number(words, position, end, settings, BLOCK_COUNTS)
    why = _stopped(count, position, end)
    if why != DONE:
        return why, np.int64(0), position
    if count > stop - source + 1:
        return BAD_BLOCKS, np.int64(0), position
    copied = np.int64(0)
    for block in range(count + 1):
        length = stop - source
        if block < count:
            number, position = _number(words, position, end, settings, BLOCKS)
            why = _stopped(number, position, end)
            if why != DONE:
                return why, copied, position
            length = number + (block > 0)
        elif block & 1:
            break
        if length > stop - source:
            return BAD_BLOCKS, copied, position
        if block & 1 == 0:
            if length > degree - copied:
                return BAD_BLOCKS, copied, position
            for index in range(length):
                successors[at + copied + index] = successors[source + index]
            copied += length
        source += length
    return DONE, copied, position


@kernel
def _read_intervals(extra, count, node, words, position, end, settings):
    """Write the successors that come in intervals to the end of extra[:count]; returns how many."""
    least = settings[MIN_INTERVAL]
    num_intervals, position = _number(words, position, end, settings, INTERVALS)
    why = _stopped(num_intervals, position, end)
    if why != DONE:
        return why, np.int64(0), position
    if num_intervals > count // least:
        return BAD_INTERVALS, np.int64(0), position
    total, following = np.int64(0), np.int64(0)
    for interval in range(num_intervals):
        gap, position = _number(words, position, end, settings, INTERVALS)
        why = _stopped(gap, position, end)
        if why != DONE:
            return why, total, position
        left = following + gap + 1 if interval else node + _signed(gap)
        length, position = _number(words, position, end, settings, INTERVALS)
        why = _stopped(length, position, end)
        if why != DONE:
            return why, total, position
        length += least
        if length > count - total:
            return BAD_INTERVALS, total, position
        following = left + length
        if left < 0 or following > settings[NUM_NODES]:
            return BAD_SUCCESSOR, total, position
        for index in range(length):
            extra[total + index] = np.uint64(left + index)
        total += length
    for index in range(total):
        extra[count - 1 - index] = extra[total - 1 - index]
    return DONE, total, position


@kernel
def _read_residuals(extra, count, merged, node, words, position, end, settings):
    """Merge the residuals into extra[:count], of which the last ``merged`` are there already."""
    out, waiting = np.int64(0), count - merged
    successor = np.int64(0)
    for residual in range(count - merged):
        number, position = _number(words, position, end, settings, RESIDUALS)
        why = _stopped(number, position, end)
        if why != DONE:
            return why, position
        successor = successor + number + 1 if residual else node + _signed(number)
        if not 0 <= successor < settings[NUM_NODES]:
            return BAD_SUCCESSOR, position
        while waiting < count and extra[waiting] < np.uint64(successor):
            extra[out] = extra[waiting]
            out += 1
            waiting += 1
        if waiting < count and extra[waiting] == np.uint64(successor):
            return TWICE, position
        extra[out] = np.uint64(successor)
        out += 1
    return DONE, position


@inlined
def _merge(successors, at, copied, extra, count):
    """Merge extra[:count] into the ``copied`` successors at a place, from the back."""
    left, right = copied - 1, count - 1
    while right >= 0:
        if left >= 0 and successors[at + left] == extra[right]:
            return TWICE
        if left >= 0 and successors[at + left] > extra[right]:
            successors[at + left + right + 1] = successors[at + left]
            left -= 1
        else:
            successors[at + left + right + 1] = extra[right]
            right -= 1
    return DONE


@kernel
def _read_node(successors, extra, starts, node, at, degree, words, position, end, settings):
    """Read the successors of a node whose degree is known; returns why it stopped, and where."""
    copied = np.int64(0)
    if settings[WINDOW]:
        reference, position = _number(words, position, end, settings, REFERENCES)
        why = _stopped(reference, position, end)
        if why != DONE:
            return why, position
        if reference > min(settings[WINDOW], node):
            return BAD_REFERENCE, position
        if reference:
            source = starts[(node - reference) % starts.size]
            stop = starts[(node - reference + 1) % starts.size]
            why, copied, position = _copy_blocks(
                successors, at, degree, source, stop, words, position, end, settings
            )
            if why != DONE:
                return why, position
    count, merged = degree - copied, np.int64(0)
    if count and settings[MIN_INTERVAL]:
        why, merged, position = _read_intervals(extra, count, node, words, position, end, settings)
        if why != DONE:
            return why, position
    why, position = _read_residuals(extra, count, merged, node, words, position, end, settings)
    if why == DONE:
        why = _merge(successors, at, copied, extra, count)
    return why, position


@compiled(
    types.int64(U64, U64, U64, I64, I64, READ_U64, types.int64, READ_I64),
)
def decode(sources, successors, extra, starts, state, words, end, settings):
    """Decode nodes until bits or room run out; after any code, state is that before a node.

    Arcs are appended at state[USED]; the lists of the last nodes lie before it, that of a node x at
    starts[x % starts.size]. ``extra`` is as long as ``successors``. Two words follow the last bit.
    """
    while state[NODE] < settings[NUM_NODES]:
        node, at = state[NODE], state[USED]
        starts[node % starts.size] = at
        degree, position = _number(words, state[POSITION], end, settings, OUTDEGREES)
        why = _stopped(degree, position, end)
        if why != DONE:
            return why
        if degree > settings[NUM_NODES]:
            return BAD_DEGREE
        if degree:
            if at + degree > successors.size:
                state[NEEDED] = degree
                return NEEDS_ROOM
            why, position = _read_node(
                successors, extra, starts, node, at, degree, words, position, end, settings
            )
            if why != DONE:
                return why
            for index in range(at, at + degree):
                sources[index] = np.uint64(node)
        state[POSITION], state[NODE], state[USED] = position, node + 1, at + degree
    return DONE
