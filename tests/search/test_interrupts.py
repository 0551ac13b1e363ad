"""Ctrl-C at any moment: the program goes on or ends, and no thread of it stays at work."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import oocbfs
from oocbfs.generate import generators
from tests.support import children

# What both programs share: a graph, ways to search it, and what they must find.
BEGIN = """
import os, signal, sys, threading, time
import numpy as np
import oocbfs
graph = oocbfs.open(sys.argv[1])
SOURCES = list(range(70))
HUB = int(graph._stored.ids_of(np.array([0]))[0])
VERBS = {
    "bfs": lambda: graph.bfs(HUB, engine="cpu", threads=4).level_sizes.tolist(),
    "disk": lambda: graph.bfs(
        HUB, engine="disk", threads=4, options=oocbfs.Settings(direction="bottom-up")
    ).level_sizes.tolist(),
    "components": lambda: graph.components(engine="cpu", threads=4).num_components,
    "disk components": lambda: graph.components(engine="disk", threads=4).num_components,
    "together": lambda: [r.reached for r in graph.bfs_many(SOURCES, threads=4, engine="cpu")],
    "alone": lambda: [
        r.reached for r in graph.bfs_many(SOURCES[:8], threads=4, strategy="one-per-core")
    ],
    "edges": lambda: sum(len(part.sources) for part in graph.edges()),
}
expected = {name: verb() for name, verb in VERBS.items()}
def check_quiet():
    # Helpers of what was interrupted come to their end soon, or later on a busy machine.
    for _ in range(3000):
        before = time.process_time()
        time.sleep(0.1)
        if time.process_time() - before < 0.02:
            return
    sys.exit("threads are still at work")
"""

# Ctrl-C comes right after the k-th thread was started, while its starter still waits.
DETERMINISTIC = (
    BEGIN
    + """
from oocbfs.kernels import threads
start = threads.start_new_thread
left = 0
def interrupted_start(*arguments):
    global left
    start(*arguments)
    left -= 1
    if left == 0:
        raise KeyboardInterrupt
threads.start_new_thread = interrupted_start
for name, verb in VERBS.items():
    for number in range(1, 4):
        # As in a program that has just begun: no helper waits for a call, nor spins at the graph.
        threads.forget_workers()
        graph = oocbfs.open(sys.argv[1])
        left = number
        try:
            found = verb()
        except KeyboardInterrupt:
            print(name, number)
        left = 0
        assert verb() == expected[name], name
check_quiet()
"""
)

RANDOM = (
    BEGIN
    + """
armed = stopping = False
def interrupt(number, frame):
    if armed:
        raise KeyboardInterrupt
def stop(number, frame):
    global stopping
    stopping = True
signal.signal(signal.SIGINT, interrupt)
signal.signal(signal.SIGTERM, stop)
interrupted = 0
ready = b"ready\\n"
while not stopping:
    for name, verb in VERBS.items():
        try:
            armed = True
            # Said once, and when signals already count: those that came earlier would be lost.
            if ready:
                os.write(1, ready)
                ready = b""
            found = verb()
            armed = False
        except KeyboardInterrupt:
            armed = False
            interrupted += 1
        else:
            assert found == expected[name], name
armed = False
check_quiet()
for name, verb in VERBS.items():
    assert verb() == expected[name], name
print(interrupted)
"""
)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("interrupts") / "g.ocg"
    oocbfs.convert(generators.kron(13), path)
    return path


def test_ctrl_c_while_threads_are_started(graph: Path) -> None:
    command = [sys.executable, "-c", DETERMINISTIC, str(graph)]
    done = children.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for name in ("bfs", "disk", "components", "disk components", "together", "alone"):
        assert f"{name} 1\n" in done.stdout
    assert "bfs 3\n" in done.stdout


def interrupt(graph: Path, count: int, seed: int, patience: float) -> int:
    """Send signals at random moments; return how many of them interrupted a search."""
    command = [sys.executable, "-c", RANDOM, str(graph)]
    rng = random.Random(seed)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            for _ in range(count):
                time.sleep(rng.uniform(0, 0.1))
                process.send_signal(signal.SIGINT)
            process.terminate()
            shown, errors = process.communicate(timeout=patience)
        finally:
            process.kill()
    assert process.returncode == 0, errors
    return int(shown)


def test_ctrl_c_at_random_moments(graph: Path) -> None:
    assert interrupt(graph, count=12, seed=1, patience=300) > 0
