"""Components by SciPy, the independent answer that ours are compared with."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components


def scipy_components(matrix: Any, *, directed: bool) -> NDArray[np.int64]:
    """Smallest vertex of each vertex's (weakly connected) component."""
    num_components, numbers = connected_components(matrix, directed=directed, connection="weak")
    least = np.full(num_components, matrix.shape[0])
    np.minimum.at(least, numbers, np.arange(matrix.shape[0]))
    smallest: NDArray[np.int64] = least[numbers]
    return smallest
