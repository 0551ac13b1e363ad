"""Any call of the operating system may fail: the answer is right, or one line and no trace.

A failure is printed with the words that repeat it: ``python -m tests.support.faults``.
"""

import shutil
import sys

import pytest

from tests.support import children
from tests.support.exhaustive import ALL

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("gcc") is None,
    reason="failing calls need Linux and a C compiler",
)
# Of each case, and all of them with --all.
SAMPLE = [] if ALL else ["--sample", "3"]


def faults(*words: str) -> str:
    """Try faults; returns what was printed if nothing was wrong."""
    done = children.run(
        [sys.executable, "-m", "tests.support.faults", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.parametrize(
    "cases",
    [["convert*", "generate"], ["bfs*"], ["batch*", "components*"], ["[deinprsuv]*"]],
    ids=["convert", "bfs", "batch", "others"],
)
def test_a_call_fails(cases: list[str]) -> None:
    total = faults(*cases, *SAMPLE).splitlines()[-1]
    assert "one line" in total
    assert "right" in total


@pytest.mark.long
def test_every_open_and_close_fails() -> None:
    """Where files and folders begin and end is where something could be left."""
    calls = [word for call in ("open", "seek", "mkdir", "close") for word in ("--call", call)]
    assert "one line" in faults("bfs-folder", *calls)


def test_one_fault_is_repeated() -> None:
    shown = faults("bfs-csv", "--call", "rename", "--nth", "1", "--error", "ENOSPC")
    assert "one line oocbfs: " in shown
    assert "l.csv: cannot be written: No space left on device" in shown
