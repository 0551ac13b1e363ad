"""Numbers of the row format that Python, numba and CUDA share; formats/FORMAT.md explains them."""

SEGMENT_BYTES = 1024
NO_HEAD = 0xFFFFFFFF
# Decoders may read this far beyond the end of the tails; loaders provide it.
SLACK_BYTES = 16
# No varint is longer, stretched or not.
MAX_VARINT_BYTES = 9
# Connected components: one of so many vertices is in the sample of tails.
SAMPLE_STRIDE = 8
