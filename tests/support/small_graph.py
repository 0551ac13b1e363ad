"""A small graph in a file, whose levels can be told by heart."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import oocbfs


def convert_small(path: Path) -> Path:
    """Convert 1 – 2 – 3 – 10, 2 – 4, and 50 – 60 apart; return the path."""
    edges = np.array([[1, 2], [2, 3], [3, 10], [2, 4], [50, 60]])
    oocbfs.convert(edges, path, ids="compact", order="degree")
    return path
