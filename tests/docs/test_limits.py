"""No test waits for ever: what hangs fails, and says where."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import children
from tests.support.packages import ROOT

# A test can hang in Python, in C code that lets no other thread run, or before it is called.
HANGING = """
import ctypes, pytest, threading

def test_python():
    threading.Event().wait()

def test_c():
    ctypes.PyDLL(None).pause()

@pytest.fixture
def fixture():
    threading.Event().wait()

def test_fixture(fixture):
    pass

def test_other():
    pass
"""


def run_hanging(folder: Path, *options: object) -> subprocess.CompletedProcess[str]:
    """Run these tests with our configuration, but for the limit."""
    module = folder / "test_hanging.py"
    module.write_text(HANGING)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "xdist"]
    settings = ["-c", ROOT / "pyproject.toml", "--rootdir", folder, "-o", "faulthandler_timeout=1"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return children.run(
        [*command, *map(str, (*settings, *options, module))],
        env=environment,
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_a_test_that_hangs_ends_a_run_without_workers(tmp_path: Path) -> None:
    done = run_hanging(tmp_path, "-k", "test_c")
    assert done.returncode == 1
    assert "in test_c\n" in done.stderr


def test_tests_that_hang_fail_and_others_go_on(tmp_path: Path) -> None:
    done = run_hanging(tmp_path, "-n", 1)
    assert done.returncode == 1
    assert "3 failed, 1 passed" in done.stdout
    for name in ("test_python", "test_c", "fixture"):
        assert f"in {name}\n" in done.stderr


@pytest.mark.parametrize("deaf", [False, True])
def test_a_child_that_hangs_fails_and_prints_stacks(
    deaf: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(children, "DYING_SECONDS", 1)
    code = (
        "import signal, sys, threading\n"
        "def waits():\n"
        "    print('started', file=sys.stderr, flush=True)\n"
        "    threading.Event().wait()\n"
        f"if {deaf}: signal.signal(signal.SIGABRT, signal.SIG_IGN)\n"
        "waits()\n"
    )
    with pytest.raises(AssertionError, match="took longer than 2 s") as failed:
        children.run([sys.executable, "-c", code], timeout=2, capture_output=True, text=True)
    assert "started" in str(failed.value)
    assert ("in waits" in str(failed.value)) is not deaf


def test_every_wait_for_another_has_a_limit() -> None:
    """But in benchmarks, which people run on large graphs; in the suite, the test has one."""
    without = []
    for path in (ROOT / "tests").rglob("*.py"):
        if path == Path(children.__file__) or "benchmarks" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            called = ast.unparse(node.func)
            if called in ("subprocess.run", "subprocess.check_call", "subprocess.check_output") or (
                node.func.attr in ("communicate", "wait")
                and not node.args
                and not any(word.arg == "timeout" for word in node.keywords)
            ):
                without.append(f"{path.relative_to(ROOT)}:{node.lineno}: {called}")
    assert not without


CI = ROOT / ".ci" / "run"
# Another process that keeps the output open, in this one's group, and deaf.
STAYING = """
import os, signal, threading
def waits():
    threading.Event().wait()
if os.fork() == 0:
    signal.signal(signal.SIGABRT, signal.SIG_IGN)
    waits()
"""


@pytest.mark.skipif(not CI.exists(), reason="an sdist has no .ci")
@pytest.mark.parametrize("ending", ["waits()", "raise SystemExit(3)"])
def test_a_run_of_ci_ends(ending: str, tmp_path: Path) -> None:
    """The steps of this one wait, or leave somebody who does."""
    for step, program in (("check", ""), ("test", STAYING + ending)):
        path = tmp_path / "scripts" / step
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!{sys.executable}\n{program}\n")
        path.chmod(0o755)
    (tmp_path / ".ci").mkdir()
    shutil.copy(CI, tmp_path / ".ci")
    environment = {**os.environ, "OOCBFS_CI_LIMIT": "2s"}
    command = [str(tmp_path / ".ci" / "run")]
    done = children.run(command, env=environment, capture_output=True, text=True, timeout=100)
    is_late = ending == "waits()"
    assert done.returncode == (124 if is_late else 3)
    assert ("in waits" in done.stderr) is is_late
