"""What happened in a level: one record, which the level loop of every engine fills.

What a new column takes is in ``oocbfs/README.md``: a field here, what fills it, and what shows it.
"""

from __future__ import annotations

import numpy as np

# What a level looked at, and how long it took; records of searches from many sources end with it.
WORK_FIELDS = [("edges", "i8"), ("heads", "i8"), ("tail_bytes", "i8"), ("seconds", "f8")]

# ``direction`` is a place in this. Compiled loops know the first two; a device may run several
# small levels in one launch, let heads answer before it goes one way, or both.
DIRECTIONS = (
    "top-down",
    "bottom-up",
    "small",
    "heads",
    "heads, top-down",
    "split",
    "relax",
)

# Where bytes come from that are slower to get than memory; each has a column.
TIERS = ("disk", "host", "messages")

# ``edges`` are -1 where they are not counted.
LEVEL_RECORD = np.dtype(
    [
        ("direction", "i8"),
        ("frontier", "i8"),
        ("num_levels", "i8"),
        *WORK_FIELDS,
        *((f"{tier}_bytes", "i8") for tier in TIERS),
    ]
)
