"""Passes over all vertices, which need no disk: the threads take chunks until none are left."""

from __future__ import annotations

from oocbfs.kernels.atomics import kernel
from oocbfs.kernels.disk import state as words
from oocbfs.kernels.region import take_chunk


def make_pass(chunk, run_chunk):
    """Make the kernel that calls run_chunk(rows, state, first, end, thread) for chunks of items."""

    @kernel
    def run_pass(rows, state, num_items, thread):
        while True:
            first, end = take_chunk(state.control, words.CURSOR, chunk, num_items)
            if first == end:
                return
            run_chunk(rows, state, first, end, thread)

    return run_pass
