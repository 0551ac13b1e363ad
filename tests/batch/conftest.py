"""The graph of all test modules of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from oocbfs.generate import generators
from tests.support.shared import SharedGraphs


@pytest.fixture(scope="session")
def graph(shared_graphs: SharedGraphs) -> Path:
    """Return a small Kronecker graph."""
    return shared_graphs.make("batch-kron12", lambda: generators.kron(12))
