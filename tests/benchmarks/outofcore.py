"""Cold searches from disk against reading the file once; warm ones against memory."""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from oocbfs.memory import read_bytes
from tests.benchmarks.common import oocbfs, show, timed


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench outofcore", description=__doc__)
    parser.add_argument("--scale", type=int, default=22, help="of kron (default 22)")
    parser.add_argument("--vertices", type=int, default=1_000_000, help="of powerlaw")
    parser.add_argument("--graph", type=Path, action="append", help="an .ocg file instead")
    parser.add_argument("--sources", type=int, default=8)
    parser.add_argument("--memory", help="budget of the cold ones (default: none)")
    parser.add_argument("--folder", type=Path, help="for the files (default: a temporary one)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        paths = options.graph or make_graphs(Path(folder), options)
        rows = [row for path in paths for row in measure(path, options)]
    show(
        f"{options.sources} sources, caches dropped before each; "
        "medians, and the worst in brackets",
        ("graph", "what", "seconds", "/ reading the file", "bytes / file"),
        rows,
    )


def make_graphs(folder: Path, options: argparse.Namespace) -> list[Path]:
    """Generate a Kronecker and a power-law graph."""
    kron, powerlaw = folder / "kron.ocg", folder / "powerlaw.ocg"
    timed(oocbfs("generate", "kron", "--scale", options.scale, "-o", kron))
    degrees = ("--mean-degree", 55, "--max-degree", min(5214, options.vertices // 8))
    timed(oocbfs("generate", "powerlaw", "--vertices", options.vertices, *degrees, "-o", powerlaw))
    return [kron, powerlaw]


def measure(path: Path, options: argparse.Namespace) -> list[list[str]]:
    """Search one graph in every way, in turns; all in one child, because of what stays loaded."""
    memory = [] if options.memory is None else [options.memory]
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path), str(options.sources), *memory],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return [line.split("\t") for line in done.stdout.splitlines()]


_CHILD = (
    "import sys; from tests.benchmarks.outofcore import child;"
    "child(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])"
)


class Clock:
    """Times and bytes read, by what was done."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.seconds: dict[str, list[float]] = {}
        self.moved: dict[str, list[int]] = {}

    def note(self, what: str, work: Callable[[], float | None], *, cold: bool = True) -> None:
        """Run something that may know its own time better."""
        if cold:
            drop_cache(self._path)
        before, start = read_bytes(), time.perf_counter()
        took = work()
        elapsed = time.perf_counter() - start
        self.seconds.setdefault(what, []).append(elapsed if took is None else took)
        self.moved.setdefault(what, []).append(read_bytes() - before)

    def rows(self) -> Iterator[tuple[str, ...]]:
        """Yield a row for each thing done."""
        file_bytes = self._path.stat().st_size
        medians = {what: statistics.median(times) for what, times in self.seconds.items()}
        base = min(medians[what] for what in READINGS)
        for what, times in self.seconds.items():
            yield (
                self._path.stem,
                what,
                f"{medians[what]:.3f} ({max(times):.3f})",
                f"{medians[what] / base:.2f} ({max(times) / base:.2f})",
                f"{statistics.median(self.moved[what]) / file_bytes:.3f}",
            )
        ratio = medians["warm, within a budget"] / medians["warm, memory engine"]
        yield self._path.stem, "warm, ratio of the two", "–", f"{ratio:.3f}", "–"


def child(name: str, num_sources: int, memory: str | None = None) -> None:
    """Print a row for each way."""
    import numpy as np

    from oocbfs.search.graph import open_file

    path = Path(name)
    clock = Clock(path)

    def whole(source: int) -> None:
        with open_file(path, memory=memory) as fresh:
            fresh.bfs(source, engine="disk")

    def loaded(source: int) -> float:
        with open_file(path, memory=memory) as fresh:
            start = time.perf_counter()
            fresh._stored.disk_rows.load()
            loading = time.perf_counter() - start
            return loading + fresh.bfs(source, engine="disk").stats.seconds

    def within(source: int, budget: int | None) -> float:
        return graph.bfs(source, memory=budget).stats.seconds

    with open_file(path, memory=memory) as graph:
        candidates = np.flatnonzero(graph._stored.stored_degrees)
        chosen = np.random.default_rng(27).choice(candidates, num_sources)
        sources = [int(i) for i in graph._stored.ids_of(chosen)]
        graph.bfs(sources[0], engine="disk")  # compiles, and loads heads and starts
        for source in sources:
            for what, read in READINGS.items():
                clock.note(what, partial(read, path))
            clock.note(
                "cold, heads and starts loaded",
                lambda: graph.bfs(source, engine="disk").stats.seconds,  # noqa: B023
            )
            clock.note("cold, loading heads and starts included", partial(loaded, source))
            clock.note("cold, with all that is loaded and named", partial(whole, source))
    with open_file(path) as graph:
        # The program itself takes memory too, which matters only for a small file.
        budget = max(path.stat().st_size, (1 << 30) + 40 * graph.num_vertices)
        for source in sources:
            graph.bfs(source)
            for turn in range(4):
                ways = [("warm, memory engine", None), ("warm, within a budget", budget)]
                for what, allowed in ways[:: 1 if turn % 2 else -1]:
                    clock.note(what, partial(within, source, allowed), cold=False)
    for row in clock.rows():
        print("\t".join(row))


def drop_cache(path: Path) -> None:
    """Forget a file's pages."""
    with path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def read_buffered(path: Path) -> None:
    """Read a file as ``cat`` does."""
    buffer = bytearray(1 << 20)
    with path.open("rb", buffering=0) as file:
        while file.readinto(buffer):
            pass


def read_direct(path: Path) -> None:
    """Read a file past the page cache, one large read after the other."""
    from oocbfs.formats.io.direct import DirectFile, page_aligned

    buffer = page_aligned(1 << 20)
    file = DirectFile(path)
    offset, size = 0, path.stat().st_size
    while offset < size:
        offset += os.preadv(file.descriptor, [memoryview(buffer)], offset)
    file.close()


READINGS: dict[str, Callable[[Path], None]] = {
    "reading the file, direct": read_direct,
    "reading the file, buffered": read_buffered,
}
