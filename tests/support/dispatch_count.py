"""A plugin for pytest that counts what networkx dispatches, and how its own tests end.

``python -m pytest -p tests.support.dispatch_count --pyargs networkx`` writes it as JSON to the file
that OOCBFS_DISPATCH_COUNT names. networkx itself says in its log what it calls.
"""

from __future__ import annotations

import json
import logging
import os
from collections import Counter
from pathlib import Path

import pytest

_LOG = logging.getLogger("networkx.utils.backends")
_RAN = "Using backend '%s' for call to"
_FELL_BACK = ("Falling back to use 'networkx'", "Backend '%s' raised")

ran: Counter[str] = Counter()
left_to_networkx: Counter[str] = Counter()
outcomes: Counter[str] = Counter()
reasons: Counter[str] = Counter()
failed: list[str] = []


class _Counter(logging.Handler):
    """Counts calls by the name of the function."""

    def emit(self, record: logging.LogRecord) -> None:
        message, values = str(record.msg), record.args
        if isinstance(values, tuple) and message.startswith(_RAN):
            ran[str(values[1])] += 1
        elif isinstance(values, tuple) and message.startswith(_FELL_BACK):
            left_to_networkx[str(values[1])] += 1


def pytest_configure() -> None:
    """Listen to networkx's log."""
    _LOG.setLevel(logging.DEBUG)
    _LOG.addHandler(_Counter())
    _LOG.propagate = False  # pytest would keep it all


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count how tests end."""
    outcome = f"x{report.outcome}" if hasattr(report, "wasxfail") else report.outcome
    if report.when == "call" or report.outcome != "passed":
        outcomes[outcome] += 1
    if report.outcome == "skipped" and isinstance(report.longrepr, tuple):
        reasons[report.longrepr[2]] += 1
    if outcome == "xskipped":
        reasons[f"expected to fail: {report.wasxfail}"] += 1
    if report.outcome == "failed":
        failed.append(report.nodeid)


def pytest_sessionfinish() -> None:
    """Write the counts."""
    counts = {
        "outcomes": outcomes,
        "reasons": reasons,
        "failed": failed,
        "ran": ran,
        "left_to_networkx": left_to_networkx,
    }
    Path(os.environ["OOCBFS_DISPATCH_COUNT"]).write_text(json.dumps(counts))
