"""The public graphs in the folder that OOCBFS_GRAPHS names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.strategies import ORDERS

GRAPHS = Path(os.environ.get("OOCBFS_GRAPHS", "no folder"))
needs_graphs = pytest.mark.skipif(
    "OOCBFS_GRAPHS" not in os.environ, reason="OOCBFS_GRAPHS names no folder of public graphs"
)
# Answers, notes and settings, which are no graphs, and files that are malformed on purpose.
_NOT_GRAPHS = (".md", "-BFS", "-WCC", ".properties", "parents.txt", ".v")
_MALFORMED = ("empty", "lp_afiro", "lp_afiro_structure", "west0067_noheader")
# The same as cnr-2000.graph, which tests/formats/test_readers_real.py shows.
_TWICE = ("cnr-2000.graph-txt.gz",)


def real_graphs() -> list[Path]:
    """List the files that hold a graph."""
    files = [path for path in GRAPHS.rglob("*") if path.is_file()]
    return sorted(
        path
        for path in files
        if not path.name.endswith(_NOT_GRAPHS)
        and path.stem not in _MALFORMED
        and not path.name.startswith("mangled")
        and path.name not in _TWICE
    )


def order_of(path: Path) -> str:
    """Choose an order for a graph that is too large for all of them: they take turns."""
    order: str = ORDERS[real_graphs().index(path) % len(ORDERS)]
    return order
