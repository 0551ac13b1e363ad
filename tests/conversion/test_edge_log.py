"""Edges that wait until all ids are known."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from oocbfs.conversion.edge_log import EdgeLog
from oocbfs.formats.edges import Edges

SIZES = (0, 1, 5, 300_000, 7, 262_144, 2)


@pytest.mark.parametrize("budget_bytes", [0, 1 << 22, 1 << 30])
@pytest.mark.parametrize(("low", "high"), [(0, 2**32), (2**32 - 2, 2**32 + 2), (2**63, 2**64)])
def test_edges_come_back_in_their_order(
    tmp_path: Path, budget_bytes: int, low: int, high: int
) -> None:
    rng = np.random.default_rng(1)
    batches = [rng.integers(low, high, (2, size), np.uint64) for size in SIZES]
    # Of two ids that take 32 and 33 bits, either end may be the longer one.
    batches += [np.array(pair, np.uint64).reshape(2, 1) for pair in ((5, 2**32), (2**32, 5))]
    batches += [np.array([[2**32 - 1], [2**32 - 1]], np.uint64)]
    with closing(EdgeLog(tmp_path, budget_bytes)) as log:
        for sources, targets in batches:
            for ids in (sources, targets):
                ids.flags.writeable = False  # as those of others may be
            log.append(Edges(sources, targets))
        log.finish()
        taken = [log.take(number) for number in range(len(log))]
        assert log.num_edges == sum(SIZES) + 3
        assert (log.spilled_bytes > 0) == (budget_bytes < 1 << 30)
    sources = np.concatenate([batch.sources for batch in taken])
    targets = np.concatenate([batch.targets for batch in taken])
    assert np.array_equal(np.stack((sources, targets)), np.concatenate(batches, axis=1))
