"""What the threads that find connected components share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

# Words of the control array. What several threads write has a cache line (8 words) of its own; the
# first line is that of the gate (see ``kernels.region``).
CURSOR = 8
# The vertices below this one have got their first labels.
NUM_LABELED = 16
# Sums over the threads; FAILED is set when a tail holds what no converter wrote.
EDGES, TAIL_BYTES, FAILED = range(24, 27)
# A vertex of the largest component.
LARGEST = 32
CONTROL_WORDS = 40


class ForestState(NamedTuple):
    """Labels, which are a forest (see ``kernels.components.forest``), and control words."""

    labels: NDArray[np.uint32]
    control: NDArray[np.int64]
