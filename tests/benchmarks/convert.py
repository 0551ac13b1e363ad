"""Converting text against GAPBS's converter: time, peak memory, size, and parsing alone."""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from tests.benchmarks.common import Run, gapbs, oocbfs, show, timed

_BUDGETS = ("unbounded", "2G", "512M")


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench convert", description=__doc__)
    parser.add_argument("--scale", type=int, default=22, help="Kronecker scale (default 22)")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3, help="best of so many")
    parser.add_argument("--folder", type=Path, help="for the files (default: a temporary one)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        measure(Path(folder), options.scale, options.threads, options.repeats)


def measure(folder: Path, scale: int, threads: int, repeats: int) -> None:
    """Convert the same file with everything there is, in turns, and print the ratios."""
    text = folder / "edges.el"
    timed(oocbfs("generate", "kron", "--scale", scale, "-o", folder / "edges.txt"))
    with (folder / "edges.txt").open("rb") as commented, text.open("wb") as plain:
        while (line := commented.readline()).startswith(b"#"):  # GAPBS knows no comments
            pass
        plain.write(line)
        shutil.copyfileobj(commented, plain, 1 << 20)
    commands = {
        budget: oocbfs("convert", text, "-o", folder / "g.ocg", "--force", "--threads", threads)
        + ([] if budget == "unbounded" else ["--memory", budget])
        for budget in _BUDGETS
    }
    converter = gapbs("converter")
    if converter is not None:
        commands["GAPBS"] = [str(converter), "-f", str(text), "-s", "-b", str(folder / "g.sg")]
    timed(commands["unbounded"])  # compiles kernels, warms the page cache
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            runs[name].append(timed(command, OMP_NUM_THREADS=str(threads)))
    best = {name: min(run.seconds for run in many) for name, many in runs.items()}
    rows = [
        [
            name,
            f"{best[name]:.2f}",
            f"{best[name] / best['GAPBS']:.2f}" if "GAPBS" in best else "–",
            f"{max(run.peak_bytes for run in runs[name]) / 2**20:,.0f}",
        ]
        for name in commands
    ]
    size = text.stat().st_size
    show(
        f"Kronecker {scale}, {size / 1e6:,.0f} MB of text, {threads} threads, best of {repeats}",
        ("converter", "seconds", "ratio to GAPBS", "peak MB"),
        rows,
    )
    share = (folder / "g.ocg").stat().st_size / size
    print(f"\ngraph file: {share:.2f} of the text")
    rate = parse_rate(text)
    print(f"parsing alone, 1 core: {rate / 1e6:,.0f} MB/s")


def parse_rate(text: Path) -> float:
    """Bytes per second that one core parses, the reader's threads included."""
    from oocbfs.formats.readers.open import open_edges

    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        for _ in open_edges([text], threads=1).batches():
            pass
        seconds.append(time.perf_counter() - start)
    return text.stat().st_size / min(seconds)
