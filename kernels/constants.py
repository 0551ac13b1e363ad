"""Numbers that kernels share."""

import numpy as np

# Beside a uint64, numba takes no other integer: of both together it makes a float.
ZERO, ONE, ALL_ONES = np.uint64(0), np.uint64(1), np.uint64(0xFFFFFFFFFFFFFFFF)
HALF_BITS, LOW_HALF = np.uint64(32), np.uint64(0xFFFFFFFF)
# 2^64 divided by the golden ratio, and odd: products with it have random upper halves.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)

# Of the row format, for Python, numba and CUDA; formats/FORMAT.md explains them.

SEGMENT_BYTES = 1024
NO_HEAD = 0xFFFFFFFF
# Decoders may read this far beyond the end of the tails; loaders provide it.
SLACK_BYTES = 16
# No varint is longer, stretched or not.
MAX_VARINT_BYTES = 9
# Connected components: one of so many vertices is in the sample of tails.
SAMPLE_STRIDE = 8
# Contents of a frame: one that a search needs is unpacked by itself.
FRAME_BYTES = 1 << 14
# How the contents of frames are packed: as bytes, as numbers by value, by difference.
BYTES, VALUES, DIFFERENCES = range(3)
