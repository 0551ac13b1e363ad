"""Converting edges between names, against the same edges between numbers; names come back."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.common import oocbfs, show, timed


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark, or one of its parts in a process of its own."""
    parser = argparse.ArgumentParser(prog="scripts/bench names", description=__doc__)
    parser.add_argument("--scale", type=int, default=23, help="Kronecker scale (default 23)")
    parser.add_argument(
        "--vertices", type=int, help="so many in all: an edge to one of Kronecker's for each more"
    )
    parser.add_argument("--ring", type=int, help="a ring of so many vertices instead")
    parser.add_argument("--letters", type=int, default=12, help="bytes of a name (default 12)")
    parser.add_argument("--memory", default="2G")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="for the files (default: a temporary one)")
    parser.add_argument("--part", choices=("write", "check"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.part == "write":
        write(options)
    elif options.part == "check":
        check(options)
    else:
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            options.folder = Path(folder)
            measure(options)


def measure(options: argparse.Namespace) -> None:
    """Convert both texts and print the ratio."""
    folder = options.folder
    settings = ["--folder", folder, "--scale", options.scale, "--letters", options.letters]
    for option in ("ring", "vertices"):
        if (value := getattr(options, option)) is not None:
            settings += [f"--{option}", value]
    itself = [sys.executable, "-m", "tests.benchmarks", "names", *settings]
    timed([*itself, "--part", "write"])
    convert = ["--force", "--threads", options.threads, "--memory", options.memory]
    if options.ring is not None:  # whose best order takes longer to find than all the rest
        convert += ["--order", "natural"]
    rows = []
    for kind, ids in (("numbers", "auto"), ("names", "names")):
        text, graph = folder / f"{kind}.csv", folder / f"{kind}.ocg"
        run = timed(oocbfs("convert", text, "-o", graph, "--ids", ids, *convert))
        sizes = (text.stat().st_size, graph.stat().st_size)
        rows.append((kind, run.seconds, run.peak_bytes, *sizes))
    timed([*itself, "--part", "check"])
    count = f"{_num_vertices(options):,}"
    title = f"a ring of {count}" if options.ring else f"Kronecker {options.scale}, {count} vertices"
    show(
        f"{title}, names of {options.letters} letters, --memory {options.memory}",
        ("ids", "seconds", "ratio", "peak MB", "text MB", "graph MB"),
        [
            [kind, f"{seconds:.1f}", f"{seconds / rows[0][1]:.2f}"]
            + [f"{size / 2**20:,.0f}" for size in sizes]
            for kind, seconds, *sizes in rows
        ],
    )
    print("\nall names came back in order, each found at its place")


def _edges(options: argparse.Namespace) -> Iterator[tuple[Any, Any]]:
    """Yield edges between numbers; a loop for each of Kronecker's makes sure that all occur."""
    import numpy as np

    from oocbfs.generate import generators

    count = _num_vertices(options)
    others = np.uint64(count if options.ring is not None else 1 << options.scale)
    for first in range(0, count, 1 << 18):
        every = np.arange(first, min(first + (1 << 18), count), dtype=np.uint64)
        yield every, (every + np.uint64(options.ring is not None)) % others
    if options.ring is None:
        for batch in generators.kron(options.scale, 16).batches():
            yield batch.sources, batch.targets


def _num_vertices(options: argparse.Namespace) -> int:
    return int(options.ring or max(1 << options.scale, options.vertices or 0))


def _named(ids: Any, letters: int) -> Any:
    """Name ids by letters that look random, as rows of bytes; no two have the same name."""
    import numpy as np

    out = np.full((ids.size, letters), ord("a"), np.uint8)
    # Odd factors and shifts of 2^40 numbers lose nothing; 26^9 is above 2^40.
    mask = np.uint64((1 << 40) - 1)
    mixed = (ids * np.uint64(0x9E3779B97F4A7C15)) & mask
    mixed ^= mixed >> np.uint64(20)
    mixed = (mixed * np.uint64(0xD6E8FEB86659FD93)) & mask
    for place in range(min(9, letters)):
        out[:, place] += (mixed % np.uint64(26)).astype(np.uint8)
        mixed //= np.uint64(26)
    return out


def write(options: argparse.Namespace) -> None:
    """Write the same edges as two texts."""
    import numpy as np

    from oocbfs.kernels.results.format_text import format_pairs

    size = options.letters
    numbers, names = ((options.folder / f"{kind}.csv").open("wb") for kind in ("numbers", "names"))
    with numbers, names:
        for sources, targets in _edges(options):
            numbers.write(format_pairs(sources, targets, ",").data)
            lines = np.empty((sources.size, 2 * size + 2), np.uint8)
            lines[:, :size], lines[:, size] = _named(sources, size), ord(",")
            lines[:, size + 1 : -1], lines[:, -1] = _named(targets, size), ord("\n")
            names.write(lines.data)


def check(options: argparse.Namespace) -> None:
    """Compare all names of the graph with those that were written, in order."""
    import numpy as np

    import oocbfs as program

    rows = _named(np.arange(_num_vertices(options), dtype=np.uint64), options.letters)
    expected = np.sort(rows.view(f"S{options.letters}").reshape(-1))
    with program.open(options.folder / "names.ocg") as graph:
        assert graph.names is not None
        assert len(graph.names) == expected.size
        for first in range(0, expected.size, 1 << 20):
            part = expected[first : first + (1 << 20)]
            column = graph.names.column(first, first + part.size)
            assert column.text.tobytes() == part.tobytes()
        for place in range(0, expected.size, max(1, expected.size // 100_000)):
            assert graph.names.index(expected[place].decode()) == place
