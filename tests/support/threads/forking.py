"""Fork while another thread searches from disk, and let each child search too.

``python -m tests.support.threads.forking --times 60`` prints how many of them hung or were wrong.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import oocbfs
from oocbfs.generate import generators
from oocbfs.search.graph import open_file
from oocbfs.settings import Settings

LIMIT_SECONDS = 60


def fork_often(graph: oocbfs.Graph, times: int) -> tuple[int, int]:
    """Return the numbers of children that hung and that were wrong."""
    source = int(graph.degrees.argmax())
    expected = graph.bfs(source).level_sizes.tolist()
    done = threading.Event()

    def search() -> None:
        while not done.is_set():
            graph.bfs(source, engine="disk", options=Settings(direction="bottom-up"))

    other = threading.Thread(target=search, daemon=True)
    other.start()
    codes = []
    for number in range(times):
        time.sleep(0.003 * (number % 7))
        child = os.fork()
        if not child:
            faulthandler.register(signal.SIGALRM, chain=True)  # shows where it hangs
            signal.alarm(LIMIT_SECONDS)
            found = [graph.bfs(source, engine=engine).level_sizes for engine in ("disk", "cpu")]
            os._exit(any(sizes.tolist() != expected for sizes in found))
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    done.set()
    other.join(LIMIT_SECONDS)
    hung = codes.count(-signal.SIGALRM)
    return hung, times - hung - codes.count(0)


def main() -> None:
    """Fork as often as the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=60)
    parser.add_argument("--scale", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kron.ocg")
        oocbfs.convert(generators.kron(options.scale), path, progress=False)
        with open_file(path) as graph:
            hung, wrong = fork_often(graph, options.times)
    print(f"{options.times} children: {hung} hung, {wrong} wrong")


if __name__ == "__main__":
    main()
