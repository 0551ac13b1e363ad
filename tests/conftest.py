"""What several test modules build."""

from __future__ import annotations

import faulthandler
import os
import shutil
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import children, guarded
from tests.support.compile_kernels import compile_all
from tests.support.shared import SharedGraphs

# What no kernel sets in a result is then no number that could be right.
os.environ.setdefault("OOCBFS_POISON", "1")
# What tests start prints its stacks when it is aborted because it hangs.
os.environ.setdefault("PYTHONFAULTHANDLER", "1")
# Before and after the tests, which have limits of their own: faulthandler_timeout.
_AROUND_SECONDS = 900
# Names of the tests that failed.
_failed: set[str] = set()

# Other work on the machine may make any test slow, which says nothing about it.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Compile kernels once, before workers start that would all compile the same ones."""
    if session.config.getoption("numprocesses", None) and not hasattr(
        session.config, "workerinput"
    ):
        compile_all()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Print all stacks and end if modules of tests are not imported within the limit."""
    faulthandler.dump_traceback_later(_AROUND_SECONDS, exit=True)
    try:
        return (yield)
    finally:
        faulthandler.cancel_dump_traceback_later()


def pytest_unconfigure() -> None:
    """Print all stacks and end if the process is still there so long after the last test."""
    faulthandler.dump_traceback_later(_AROUND_SECONDS, exit=True)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let long tests run first, so that at the end no worker waits for one of them.

    What guards sources that have not changed is left out, unless some tests are asked for.
    """
    if _is_whole(config):
        left_out = [item for item in items if not guarded.is_wanted(item.nodeid)]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if guarded.is_wanted(item.nodeid)]
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Remember what failed, in this process or in a worker."""
    if report.failed:
        _failed.add(report.nodeid)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Note which tests that guard sources have passed, if they were run alone and to the end."""
    config = session.config
    is_worker = hasattr(config, "workerinput")
    is_over = exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED)
    if guarded.ALONE and _is_whole(config) and is_over and not is_worker:
        guarded.record(_failed)


def _is_whole(config: pytest.Config) -> bool:
    """Return whether all tests are run, and to the end."""
    option = config.option
    return config.args == config.getini("testpaths") and not option.keyword and not option.maxfail


@pytest.hookimpl(wrapper=True)
def pytest_report_to_serializable() -> Generator[None, Any, Any]:
    """Let reports travel between processes in UTF-8, whatever names of files are in them."""
    return _as_utf8((yield))


def _as_utf8(data: Any) -> Any:
    if isinstance(data, str):
        return data.encode("utf-8", "backslashreplace").decode()
    if isinstance(data, dict):
        return {name: _as_utf8(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return type(data)(map(_as_utf8, data))
    return data


@pytest.fixture(scope="session")
def shared_graphs(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> SharedGraphs:
    """Return graphs that are converted once in a run, whichever worker needs them first."""
    folder = tmp_path_factory.getbasetemp()
    return SharedGraphs((folder if worker_id == "master" else folder.parent) / "shared-graphs")


@pytest.fixture(scope="module")
def verified() -> Iterator[None]:
    """Let all that a module's searches find be checked before it is handed out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OOCBFS_VERIFY", "1")
        yield


@pytest.fixture(scope="session")
def driver_double(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a library that answers like NVIDIA's driver."""
    if shutil.which("g++") is None:
        pytest.skip("the driver's double needs a C++ compiler")
    made = tmp_path_factory.mktemp("driver") / "libcuda.so"
    source = Path(__file__).parent / "cuda" / "driver.cpp"
    children.run(["g++", "-shared", "-fPIC", source, "-o", made], check=True)
    return made
