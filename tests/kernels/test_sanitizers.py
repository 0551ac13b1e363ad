"""The kernels under AddressSanitizer and UndefinedBehaviorSanitizer, in a process made for that."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from oocbfs.kernels.emulator.build import Checks, find_compiler
from tests.support import children
from tests.support.exhaustive import some

TESTS = Path(__file__).parents[1]


def run_with_asan(*arguments: str, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run pytest with libasan preloaded: python itself is not built with it."""
    asan = children.run(
        [find_compiler(), "-print-file-name=libasan.so"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if not Path(asan).is_absolute():
        pytest.skip("the compiler comes without libasan")
    environment = {
        **os.environ,
        "LD_PRELOAD": asan,
        # Python frees little at its end; stacks that fibers have left look used after return.
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=0:abort_on_error=0",
        "OOCBFS_TEST_CHECKS": Checks.MEMORY.value,
        # Zarr's would import all of Zarr and CuPy.
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        **extra,
    }
    return children.run(
        [sys.executable, "-m", "pytest", "-q", "-x", "-s", "-p", "no:cacheprovider", *arguments],
        env=environment,
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("module", "chosen"),
    some(
        [
            ("gpu/test_gpu_bfs.py", "device_range1 or schedules and (2- or 6-)"),
            ("gpu/test_staging.py", "schedules and 1-"),
            ("gpu/test_gpu_many.py", "damaged or device_ranges or schedules and (1- or 3- or 5-)"),
            (
                "gpu/test_gpu_components.py",
                "outside or damaged or device_ranges or schedules and 1",
            ),
            ("gpu/test_gpu_bfs.py", "stretched or every_class or damaged"),
            ("methods/test_levels.py", "rows_of_every_length and -2"),
        ],
        2,
    ),
)
def test_kernels_are_clean(module: str, chosen: str) -> None:
    done = run_with_asan(str(TESTS / module), "-k", chosen)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout
