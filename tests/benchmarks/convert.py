"""Converting text against GAPBS's converter: time, peak memory, size, and parsing alone.

With ``--tables``: Parquet against NumPy's arrays, chosen columns of text against the first two, a
graph and some edges against the text of all, and a hundredth of the rows of Parquet against all.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
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
    parser.add_argument("--tables", metavar="KINDS", help="compare these: parquet,text,merge,where")
    options = parser.parse_args(arguments)
    settings = (options.scale, options.threads, options.repeats)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        if options.tables is None:
            measure(Path(folder), *settings)
        for kind in filter(None, (options.tables or "").split(",")):
            _TABLES[kind](Path(folder), *settings)


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


# In a process of its own, so that this one stays small.
_WRITE_PARQUET = """
import sys
import numpy, pyarrow, pyarrow.parquet
edges = numpy.load(sys.argv[1], mmap_mode="r")
schema = pyarrow.schema([("src", pyarrow.int64()), ("dst", pyarrow.int64())])
with pyarrow.parquet.ParquetWriter(sys.argv[2], schema) as writer:
    for first in range(0, len(edges), 1 << 20):
        ends = edges[first : first + (1 << 20)].astype(numpy.int64).T.copy()
        writer.write_table(pyarrow.table(list(ends), schema=schema))
"""
_WRITE_CSV = """
import sys
with open(sys.argv[1]) as edges, open(sys.argv[2], "w") as two, open(sys.argv[3], "w") as three:
    two.write("src,dst\\n")
    three.write(",src,dst\\n")
    for number, line in enumerate(line for line in edges if line[0] != "#"):
        two.write(line)
        three.write(f"{number},{line}")
"""


def measure_parquet(folder: Path, scale: int, threads: int, repeats: int) -> None:
    """Convert the same edges as NumPy's array and as Parquet, within 512 MB."""
    array, parquet = folder / "edges.npy", folder / "edges.parquet"
    timed(oocbfs("generate", "kron", "--scale", scale, "-o", array))
    subprocess.run([sys.executable, "-c", _WRITE_PARQUET, array, parquet], check=True)
    inputs: dict[str, list[object]] = {".npy": [array], "Parquet": [parquet]}
    title = f"Kronecker {scale} within 512M, {threads} threads, median of {repeats}"
    compare(title, folder, inputs, threads, repeats, "--memory", "512M")


def measure_columns(folder: Path, scale: int, threads: int, repeats: int) -> None:
    """Convert the same edges from the first two columns of a text and from others."""
    plain, two, three = (folder / name for name in ("edges.csv", "two.csv", "three.csv"))
    timed(oocbfs("generate", "kron", "--scale", scale, "-o", plain))
    subprocess.run([sys.executable, "-c", _WRITE_CSV, plain, two, three], check=True)
    inputs: dict[str, list[object]] = {
        "two columns": [two],
        "two columns, --columns dst,src": [two, "--columns", "dst,src"],
        "an index before them, --columns src,dst": [three, "--columns", "src,dst"],
    }
    title = f"Kronecker {scale} as text, {threads} threads, median of {repeats}"
    compare(title, folder, inputs, threads, repeats)


def measure_merge(folder: Path, scale: int, threads: int, repeats: int) -> None:
    """Add a hundredth of edges to a graph: from the text of all, and from the graph file."""
    text, more, graph = (folder / name for name in ("old.txt", "more.txt", "old.ocg"))
    timed(oocbfs("generate", "kron", "--scale", scale, "-o", text))
    vertices, edges = ("--vertices", 2**scale), ("--edges", 16 * 2**scale // 100)
    timed(oocbfs("generate", "uniform", *vertices, *edges, "--seed", 2, "-o", more))
    timed(oocbfs("convert", text, "-o", graph, "--threads", threads))
    inputs: dict[str, list[object]] = {
        "text of all": [text, more],
        "graph and text": [graph, more],
        "graph and text, --order keep": [graph, more, "--order", "keep"],
    }
    title = f"Kronecker {scale} and 1 % more within 512M, {threads} threads, median of {repeats}"
    compare(title, folder, inputs, threads, repeats, "--memory", "512M")


_WRITE_DAYS = """
import sys
import numpy, pyarrow, pyarrow.parquet
rows, vertices = int(sys.argv[2]), int(sys.argv[3])
kinds = {"src": pyarrow.int64(), "dst": pyarrow.int64(), "day": pyarrow.int32()}
random = numpy.random.default_rng(1)
with pyarrow.parquet.ParquetWriter(sys.argv[1], pyarrow.schema(list(kinds.items()))) as writer:
    for day in range(100):
        ends = random.integers(0, vertices, (2, rows // 100))
        days = numpy.full(rows // 100, day, numpy.int32)
        writer.write_table(pyarrow.table([*ends, days], schema=pyarrow.schema(list(kinds.items()))))
"""


def measure_where(folder: Path, scale: int, threads: int, repeats: int) -> None:
    """Convert a table of a hundred days, and one of these days."""
    table = folder / "days.parquet"
    sizes = [str(16 * 2**scale), str(2**scale)]
    subprocess.run([sys.executable, "-c", _WRITE_DAYS, table, *sizes], check=True)
    inputs: dict[str, list[object]] = {
        "all rows": [table],
        "--where 'day = 41'": [table, "--where", "day = 41"],
    }
    rows = f"{16 * 2**scale:,} rows of Parquet"
    compare(f"{rows}, {threads} threads, median of {repeats}", folder, inputs, threads, repeats)


_TABLES = {
    "parquet": measure_parquet,
    "text": measure_columns,
    "merge": measure_merge,
    "where": measure_where,
}


def compare(
    title: str,
    folder: Path,
    inputs: dict[str, list[object]],
    threads: int,
    repeats: int,
    *options: str,
) -> None:
    """Convert inputs in turns, and print how fast each is in terms of the first."""
    graph = folder / "g.ocg"
    words = ["-o", graph, "--force", "--threads", threads, *options]
    commands = {name: oocbfs("convert", *given, *words) for name, given in inputs.items()}
    for command in commands.values():  # compiles kernels, warms the page cache
        timed(command)
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for _ in range(repeats):
        for name, command in commands.items():
            runs[name].append(timed(command))
    seconds = {name: statistics.median(run.seconds for run in many) for name, many in runs.items()}
    first = next(iter(seconds.values()))
    rows = [
        [
            name,
            f"{Path(str(inputs[name][0])).stat().st_size / 1e6:,.0f}",
            f"{seconds[name]:.2f}",
            f"{first / seconds[name]:.2f}",
            f"{max(run.peak_bytes for run in runs[name]) / 2**20:,.0f}",
        ]
        for name in commands
    ]
    show(title, ("input", "MB", "seconds", "speed", "peak MB"), rows)


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
