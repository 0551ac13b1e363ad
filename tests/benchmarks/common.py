"""What benchmarks share: timed commands, tables, and bars."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oocbfs.plot import INK, draw


@dataclass(frozen=True)
class Run:
    """One run of a command."""

    seconds: float
    peak_bytes: int


def timed(command: Sequence[object], **environment: str) -> Run:
    """Run a command to its end, with wall time and peak memory.

    A child's peak includes that of the process it was started from, so the caller must stay small:
    benchmarks import numba and the like only in children.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        [str(word) for word in command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    )
    assert process.stderr is not None
    with process.stderr:
        said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    seconds = time.perf_counter() - start
    if process.returncode:
        raise SystemExit(f"{' '.join(map(str, command))} failed:\n{said.decode()}")
    return Run(seconds, usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024))


def oocbfs(*arguments: object) -> list[str]:
    """Return the command line that runs oocbfs in a child."""
    return [sys.executable, "-m", "oocbfs", *map(str, arguments)]


def add_graph_options(parser: argparse.ArgumentParser) -> None:
    """Declare which graph is measured, and what is chosen of it."""
    parser.add_argument("--scale", type=int, default=22, help="Kronecker scale (default 22)")
    parser.add_argument("--graph", type=Path, help="this one instead of a Kronecker graph")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=Path, help="for the file (default: a temporary one)")


def make_kron(scale: int, folder: Path) -> Path:
    """Convert a Kronecker graph into a folder; return its path."""
    from oocbfs.conversion.converter import convert
    from oocbfs.generate import generators

    path = folder / f"kron{scale}.ocg"
    convert(generators.kron(scale), path)
    return path


def gapbs(program: str) -> Path | None:
    """Find a GAPBS program, if OOCBFS_GAPBS names the folder of a built one."""
    folder = os.environ.get("OOCBFS_GAPBS")
    return Path(folder) / program if folder else None


def huge_pages(threads: int) -> dict[str, str]:
    """Return the environment in which GAPBS has so many threads, and huge pages as numpy does."""
    return {"OMP_NUM_THREADS": str(threads), "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}


def show(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table, ready to be pasted into a document."""
    print(f"\n{title}\n")
    for row in (header, ["---"] * len(header), *rows):
        print("| " + " | ".join(row) + " |")


def ratio_bars(
    rows: Sequence[tuple[str, float, str]],
    path: str | os.PathLike[str],
    *,
    title: str,
    subtitle: str,
    across: str,
    write: Callable[[float], str] = lambda value: f"{value:.3g}×",
    worst: Sequence[float] | None = None,
    one: bool = True,
) -> None:
    """Draw lying bars of amounts, each with a name and a colour, on a logarithmic axis.

    ``worst`` are the ends of thin lines behind the bars; ``one`` draws a line at 1.
    """

    def panel(axes: Any) -> None:
        names, amounts, colours = zip(*rows, strict=True)
        places = range(len(rows))
        # Ratios grow to both sides of 1, amounts from the left.
        widths = [amount - 1 for amount in amounts] if one else amounts
        axes.barh(places, widths, 0.72, left=1 if one else 0, color=colours)
        ends = [max(amount, 1 if one else 0) for amount in amounts]
        values = [write(amount) for amount in amounts]
        if worst is not None:
            axes.hlines(places, amounts, worst, color=INK, linewidth=1.2)
            ends = list(worst)
            values = [f"{v} ({write(w)})" for v, w in zip(values, worst, strict=True)]
        for place, value, end in zip(places, values, ends, strict=True):
            axes.annotate(
                value, (end, place), (4, 0), textcoords="offset points", va="center",
                fontsize=8, color=INK,
            )  # fmt: skip
        axes.set_yticks(places, names)
        axes.invert_yaxis()
        axes.grid(visible=False, axis="y")
        axes.set_xscale("log")
        axes.set_xlim(min(amounts, default=1) / 2, max([*ends, 1]) * 3)
        axes.xaxis.set_major_formatter(lambda value, _: write(value))
        if one:
            axes.axvline(1, color=INK, linewidth=1)
        axes.set_xlabel(across)

    size = 9, 0.3 * len(rows) + 1.8
    draw([panel], title=title, subtitle=subtitle, size=size, path=path, force=True)
