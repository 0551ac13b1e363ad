"""What several test modules build."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.support.compile_kernels import compile_all
from tests.support.shared import SharedGraphs

# What no kernel sets in a result is then no number that could be right.
os.environ.setdefault("OOCBFS_POISON", "1")

# Other work on the machine may make any test slow, which says nothing about it.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile kernels once, before workers start that would all compile the same ones."""
    if session.config.getoption("numprocesses", None) and not hasattr(
        session.config, "workerinput"
    ):
        compile_all()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let long tests run first, so that at the end no worker waits for one of them."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session")
def shared_graphs(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> SharedGraphs:
    """Give graphs that are converted once in a run, whichever worker needs them first."""
    folder = tmp_path_factory.getbasetemp()
    return SharedGraphs((folder if worker_id == "master" else folder.parent) / "shared-graphs")


@pytest.fixture(scope="session")
def driver_double(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a library that answers like NVIDIA's driver."""
    if shutil.which("g++") is None:
        pytest.skip("the driver's double needs a C++ compiler")
    made = tmp_path_factory.mktemp("driver") / "libcuda.so"
    source = Path(__file__).parent / "cuda" / "driver.cpp"
    subprocess.run(["g++", "-shared", "-fPIC", source, "-o", made], check=True)
    return made
