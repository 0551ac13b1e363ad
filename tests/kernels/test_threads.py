"""Threads, tasks and pools: what signals, forks and a system without threads leave of them."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import cached_property
from importlib import import_module
from pathlib import Path

import pytest
from numba import njit
from numba.extending import overload

from oocbfs.formats.io.ordered import ordered_map, read_ahead
from oocbfs.kernels import threads
from oocbfs.kernels.threads import Pool, Task
from tests.support import children
from tests.support.exhaustive import ALL
from tests.support.threads.interrupting import THINGS


def test_interruptions_at_random_microseconds() -> None:
    times = 5000 if ALL else 60
    command = [sys.executable, "-m", "tests.support.threads.interrupting", "--times", str(times)]
    done = children.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stderr
    seen = re.findall(r"(\w+) (\d+) -> (\d+)", done.stdout)
    assert len(seen) == 2 * len(THINGS)
    for what, before, after in seen:
        assert int(after) <= int(before), what + done.stdout


def test_results_come_from_at_most_so_many_threads_in_order() -> None:
    at_work: set[int] = set()
    most = 0

    def work(number: int) -> int:
        nonlocal most
        at_work.add(number)
        most = max(most, len(at_work))
        time.sleep(0.001)
        at_work.remove(number)
        return number

    assert list(ordered_map(work, range(200), 3)) == list(range(200))
    assert 1 < most <= 3


def test_an_error_reaches_who_waits_and_ends_the_rest() -> None:
    begun: list[int] = []

    def work(number: int) -> int:
        begun.append(number)
        if number == 5:
            raise IndexError("five")
        return number

    with pytest.raises(IndexError, match="five"):
        list(ordered_map(work, range(10_000), 2))
    assert len(begun) < 20


def test_closing_a_pool_waits_for_what_was_begun() -> None:
    gate = threading.Lock()
    done: list[int] = []

    def work(number: int) -> None:
        with gate:
            done.append(number)

    pool = Pool(2)
    with gate:
        for number in range(5):
            pool.submit(work, number)
        while len(pool._free):
            time.sleep(0.001)
        closer = threading.Thread(target=pool.close)
        closer.start()
        closer.join(0.05)
        assert closer.is_alive()
    closer.join(60)
    assert not closer.is_alive()
    assert len(done) <= 2


def refuse(*_: object) -> int:
    raise RuntimeError("can't start new thread")


@pytest.mark.parametrize(
    "run",
    [
        lambda: list(ordered_map(str, range(9), 4)),
        lambda: list(read_ahead(map(str, range(9)))),
    ],
    ids=["ordered", "ahead"],
)
def test_without_threads_the_caller_does_the_work(
    run: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads.forget_workers()
    monkeypatch.setattr(threads, "start_new_thread", refuse)
    assert run() == [str(number) for number in range(9)]


def test_a_task_that_was_cancelled_is_not_waited_for() -> None:
    task = Task(time.sleep, 60)
    assert task.cancel()
    task.start()
    task.settle(60)
    assert not task.cancel()


def test_a_silent_producer_is_not_waited_for() -> None:
    end, begin = os.pipe()

    def lines() -> Iterator[int]:
        yield 1
        yield 2
        os.read(end, 1)

    start = time.monotonic()
    with closing(read_ahead(lines())) as items:
        assert next(items) == 1
    assert time.monotonic() - start < 30
    os.write(begin, b"x")
    os.close(begin)


def in_child(work: Callable[[], None]) -> int:
    """Fork, do something in the child, and give its exit code; a child that hangs gives -14."""
    child = os.fork()
    if child == 0:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(60)
            work()
        except BaseException:  # noqa: BLE001
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_locks_and_workers_are_new_in_a_forked_process() -> None:
    held = threads.renewed_after_fork(threading.Lock())
    ready, end = threading.Lock(), threading.Lock()
    ready.acquire()
    end.acquire()

    def hold() -> None:
        with held:
            ready.release()
            with end:
                pass

    task = Task(hold)
    task.start()
    ready.acquire()

    def work() -> None:
        with held:
            assert list(ordered_map(str, range(9), 4)) == [str(number) for number in range(9)]
        with pytest.raises(RuntimeError, match="parent"):
            task.result()

    code = in_child(work)
    end.release()
    task.settle()
    assert code == 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_what_a_thread_imports_is_whole_in_a_forked_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "imported_slowly.py").write_text("import time\ntime.sleep(1)\nvalue = 7\n")
    monkeypatch.syspath_prepend(tmp_path)
    task = Task(lambda: import_module("imported_slowly"))
    task.start()
    while "imported_slowly" not in sys.modules:
        time.sleep(0.001)

    def work() -> None:
        assert import_module("imported_slowly").value == 7

    code = in_child(work)
    task.settle()
    assert code == 0


def test_a_forked_process_compiles_while_its_parent_does() -> None:
    is_compiling = threading.Event()

    def slow(number: int) -> int:
        return number

    @overload(slow)
    def _(number):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN202
        is_compiling.set()
        time.sleep(1)
        return lambda number: number

    task = Task(lambda: njit(lambda number: slow(number))(1))
    task.start()
    assert is_compiling.wait(60)

    def work() -> None:
        assert njit(lambda number: number + 2)(1) == 3

    code = in_child(work)
    assert task.result() == 1
    assert code == 0


def test_what_a_thread_finds_for_a_property_is_found_again_in_a_forked_process() -> None:
    is_finding = threading.Event()

    class Slow:
        @cached_property
        def value(self) -> int:
            is_finding.set()
            time.sleep(1)
            return 7

    one = Slow()
    task = Task(lambda: one.value)
    task.start()
    assert is_finding.wait(60)

    def work() -> None:
        assert one.value == 7

    code = in_child(work)
    assert task.result() == 7
    assert code == 0


def test_children_of_a_process_that_searches_from_disk() -> None:
    command = [
        sys.executable,
        "-m",
        "tests.support.threads.forking",
        "--times",
        "200" if ALL else "10",
    ]
    done = children.run(command, capture_output=True, text=True, check=False)
    assert re.fullmatch(r"\d+ children: 0 hung, 0 wrong\n", done.stdout), done.stderr
