"""Files in frames against raw ones: sizes, searches warm and cold, conversions, and orders."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from oocbfs.memory import parse_size
from tests.benchmarks.budgets import choose_sources, search
from tests.benchmarks.common import Run, oocbfs, show, timed

# What is converted, and how, by the name of a graph.
Inputs = dict[str, list[object]]
_CODECS = ("raw", "auto")
# Public graphs, as they are read.
_REAL: dict[str, tuple[str, bool]] = {
    "cnr-2000, directed": ("web/cnr-2000.graph-txt.gz", True),
    "cnr-2000": ("web/cnr-2000.graph-txt.gz", False),
    "web-NotreDame": ("web/web-NotreDame.txt.gz", True),
    "roads of Florida": ("road/FLA.gr.xz", False),
    "Facebook networks, a part": ("social/facebook100-part.txt.xz", False),
    "soc-Epinions1": ("social/soc-Epinions1.txt.gz", True),
    "p2p-31": ("p2p/p2p-31.e", False),
}


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench codec", description=__doc__)
    parser.add_argument("--scale", type=int, default=22, help="of kron (default 22)")
    parser.add_argument("--tables", default=",".join(_TABLES), help="which of them (default: all)")
    parser.add_argument("--graph", type=Path, help="an edge list to repeat (default: cnr-2000)")
    parser.add_argument("--size", default="2G", help="of the repeated graph, raw (default 2G)")
    parser.add_argument("--limits", default="500M,100M", help="bytes read a second, if limited")
    parser.add_argument("--memory", default="512M", help="of cold searches (default 512M)")
    parser.add_argument("--sources", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3, help="of conversions (default 3)")
    parser.add_argument("--orders", default="natural,degree,dbg,communities,auto")
    parser.add_argument("--folder", type=Path, help="for the files (default: a temporary one)")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        inputs = find_inputs(Path(folder), options)
        for name in options.tables.split(","):
            _TABLES[name](Path(folder), inputs, options)


def find_inputs(folder: Path, options: argparse.Namespace) -> Inputs:
    """Return what is converted, with the options that it takes."""
    kron = folder / "kron.npy"
    timed(oocbfs("generate", "kron", "--scale", options.scale, "-o", kron))
    inputs: Inputs = {f"Kronecker {options.scale}": [kron]}
    if options.graph is not None:
        inputs[options.graph.name] = [options.graph]
    if "OOCBFS_GRAPHS" in os.environ:
        for name, (path, directed) in _REAL.items():
            way = "--directed" if directed else "--undirected"
            inputs[name] = [Path(os.environ["OOCBFS_GRAPHS"], path), way]
    return inputs


def convert(inputs: Sequence[object], path: Path, *words: object) -> Run:
    """Convert in a child."""
    return timed(oocbfs("convert", *inputs, "-o", path, "--force", *words))


def answer(*words: object) -> dict[str, Any]:
    """Return what a verb says as JSON."""
    done = subprocess.run(oocbfs(*words, "--json"), capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# Sizes


def bits(path: Path) -> tuple[float, float, float]:
    """Return the bits for each arc and side of a file, of its tails, and of all but these."""
    found = answer("info", path)
    arcs = found["arcs"] * (2 if found["directed"] else 1)
    tails = sum(one["stored_bytes"] for one in found["sections"] if one["name"].endswith("tails"))
    every = 8 * found["file_bytes"] / max(1, arcs)
    return every, 8 * tails / max(1, arcs), every - 8 * tails / max(1, arcs)


def measure_sizes(folder: Path, inputs: Inputs, options: argparse.Namespace) -> None:
    """Print what whole files take: raw, in frames, and as ``auto`` writes them."""
    rows = []
    path = folder / "sizes.ocg"
    for name, given in inputs.items():
        auto = answer("convert", *given, "-o", path, "--force")
        row = [name]
        for codec in ("raw", "zstd"):
            # In one order, or orders would be compared.
            convert(given, path, "--order", auto["order"], "--codec", codec)
            every, _, rest = bits(path)
            row += [f"{every:.2f}", f"{rest:.2f}"]
        rows.append([*row, f"{auto['bits_per_arc']:.2f}", auto["codec"], auto["order"]])
    show(
        "bits for each arc and side: of whole files, and of all but the tails",
        ("graph", "raw", "of it rest", "in frames", "of it rest", "auto", "codec", "order"),
        rows,
    )


# Warm searches


def measure_warm(folder: Path, inputs: Inputs, options: argparse.Namespace) -> None:
    """Print how long searches take on open graphs, and what opening takes."""
    rows = []
    for name, given in inputs.items():
        paths = [folder / f"warm-{codec}.ocg" for codec in _CODECS]
        convert(given, paths[0], "--codec", "raw")
        # In the same order, or orders would be compared.
        convert([paths[0]], paths[1], "--order", "keep", "--codec", "auto")
        found = in_child("search_warm", options.sources, *paths)
        unpacked = answer("info", paths[1])["unpacked_bytes"]
        rows.append(
            [
                name,
                *(f"{1000 * seconds:.2f}" for seconds in found["seconds"]),
                f"{found['ratio']:.2f}",
                *(f"{1000 * seconds:.1f}" for seconds in found["opening"]),
                f"{unpacked / 1e6:,.0f}",
                f"{unpacked / max(found['opening'][1], 1e-9) / 1e9:.2f}",
            ]
        )
        for path in paths:
            path.unlink()
    show(
        f"{options.sources} sources, best of 6 in turns, medians of these; opening and first use",
        (
            "graph",
            *("raw, ms", "in frames, ms", "ratio"),
            *("opening raw, ms", "in frames, ms", "unpacked, MB", "GB/s"),
        ),
        rows,
    )


def search_warm(num_sources: str, *paths: str) -> dict[str, Any]:
    """Open two files of one graph, and search them in turns."""
    import numpy as np

    import oocbfs

    opening, graphs = [], []
    for path in (*paths, *paths):  # the first time compiles
        start = time.perf_counter()
        graph = oocbfs.open(path)
        source = int(graph.ids()[0])
        graph.bfs(source)
        middle = time.perf_counter()
        graph.bfs(source)
        opening.append(max(0.0, 2 * middle - start - time.perf_counter()))
        graphs.append(graph)
    graphs = graphs[len(paths) :]
    sources = np.random.default_rng(27).choice(graphs[0].ids(), int(num_sources))
    best = []
    for source in sources.tolist():
        times: list[list[float]] = [[], []]
        for turn in range(6):
            for i in (0, 1)[:: 1 if turn % 2 else -1]:
                start = time.perf_counter()
                graphs[i].bfs(source)
                times[i].append(time.perf_counter() - start)
        best.append([min(one) for one in times])
    seconds = [statistics.median(column) for column in zip(*best, strict=True)]
    ratio = statistics.median(framed / raw for raw, framed in best)
    return {"opening": opening[len(paths) :], "seconds": seconds, "ratio": ratio}


# Cold searches


def measure_cold(folder: Path, inputs: Inputs, options: argparse.Namespace) -> None:
    """Print what whole commands take on a large graph whose pages are dropped."""
    name = next((name for name in inputs if not name.startswith("Kronecker")), None)
    given = next(iter(inputs.values())) if name is None else inputs[name]
    one, raw, framed = (folder / f"{part}.ocg" for part in ("one", "raw", "framed"))
    convert(given, one, "--order", "natural", "--codec", "raw")
    copies = max(2, -(-parse_size(options.size) // one.stat().st_size))
    in_child("repeat", one, raw, copies)
    convert([raw], framed, "--order", "keep", "--codec", "auto")
    limits = [parse_size(limit) for limit in options.limits.split(",")]
    seconds: dict[Path, list[list[float]]] = {raw: [], framed: []}
    read: dict[Path, list[int]] = {raw: [], framed: []}
    sources = choose_sources(raw, options.sources, 27)
    # Compiles what a budget may have no room to compile.
    timed(oocbfs("bfs", framed, "--source", sources[0], "--engine", "disk"))
    for source in sources:
        for path in (raw, framed):
            cold = search(path, source, options.memory)
            warm = search(path, source, options.memory, cold=False)["whole_seconds"]
            # Reading and computing one after the other.
            priced = [warm + cold["read_bytes"] / limit for limit in limits]
            seconds[path].append([cold["whole_seconds"], warm, *priced])
            read[path].append(cold["read_bytes"])
    titles = [
        "this disk, cold",
        "warm",
        *(f"{limit} a second" for limit in options.limits.split(",")),
    ]
    rows = []
    for i, title in enumerate(titles):
        medians = [statistics.median(row[i] for row in seconds[path]) for path in (raw, framed)]
        ratios = [b[i] / a[i] for a, b in zip(seconds[raw], seconds[framed], strict=True)]
        rows.append(
            [
                title,
                *(f"{median:.2f}" for median in medians),
                f"{statistics.median(ratios):.2f} ({max(ratios):.2f})",
            ]
        )
    sizes = [statistics.median(read[path]) / 1e6 for path in (raw, framed)]
    rows.append(
        ["read, MB", *(f"{size:,.0f}" for size in sizes), f"{sizes[1] / max(sizes[0], 1e-9):.2f}"]
    )
    show(
        f"{name or 'Kronecker'} {copies} times, {raw.stat().st_size / 1e6:,.0f} MB raw and "
        f"{framed.stat().st_size / 1e6:,.0f} MB in frames, --memory {options.memory}: whole "
        f"commands, {options.sources} sources, medians (worst); limits priced by bytes counted",
        ("what", "raw, s", "in frames, s", "ratio"),
        rows,
    )


# Conversions


def measure_conversions(folder: Path, inputs: Inputs, options: argparse.Namespace) -> None:
    """Print the time and the peak memory of conversions, in turns."""
    rows = []
    path = folder / "converted.ocg"
    for name, given in inputs.items():
        runs: dict[str, list[Run]] = {codec: [] for codec in _CODECS}
        for turn in range(options.repeats):
            for codec in _CODECS[:: 1 if turn % 2 else -1]:
                # In one order, whatever would be chosen.
                words = ("--codec", codec, "--order", "natural", "--memory", "2G")
                runs[codec].append(convert(given, path, *words))
        seconds = [statistics.median(run.seconds for run in runs[codec]) for codec in _CODECS]
        peaks = [max(run.peak_bytes for run in runs[codec]) / 2**20 for codec in _CODECS]
        rows.append(
            [
                name,
                *(f"{one:.2f}" for one in seconds),
                f"{seconds[1] / seconds[0]:.2f}",
                *(f"{one:,.0f}" for one in peaks),
                f"{peaks[1] / peaks[0]:.2f}",
            ]
        )
    show(
        f"conversions within 2G in natural order, medians of {options.repeats}",
        (
            "graph",
            *("raw, s", "in frames, s", "ratio"),
            *("peak raw, MB", "in frames, MB", "ratio"),
        ),
        rows,
    )


# Orders


def measure_orders(folder: Path, inputs: Inputs, options: argparse.Namespace) -> None:
    """Print what files take by order, as they are and where ids are shuffled."""
    rows = []
    for name, given in inputs.items():
        plain, shuffled = folder / "plain.ocg", folder / "shuffled.npy"
        convert(given, plain, "--order", "natural")
        in_child("shuffle", plain, shuffled)
        way = "--directed" if answer("info", plain)["directed"] else "--undirected"
        for what, source in ((name, given), (f"{name}, shuffled", [shuffled, way])):
            for order in options.orders.split(","):
                words = ["-o", folder / "order.ocg", "--force", "--order", order]
                report = answer("convert", *source, *words)
                rows.append(
                    [
                        what,
                        order if order != "auto" else f"auto: {report['order']}",
                        *(f"{value:.2f}" for value in bits(folder / "order.ocg")),
                        f"{report['seconds']:.2f}",
                        f"{report['seconds_by_phase'].get('communities', 0.0):.2f}",
                    ]
                )
    show(
        "bits for each arc and side by order, and seconds, of these labels spreading",
        ("graph", "order", "file", "tails", "rest", "conversion, s", "communities, s"),
        rows,
    )


def in_child(function: str, *arguments: object) -> dict[str, Any]:
    """Call a function in a process of its own, and return what it does."""
    program = (
        "import json, sys; from tests.benchmarks.codec import search_warm;"
        "from tests.support.other_graphs import repeat, shuffle;"
        "print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:]) or {}))"
    )
    command = [sys.executable, "-c", program, function, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


_TABLES: dict[str, Callable[[Path, Inputs, argparse.Namespace], None]] = {
    "sizes": measure_sizes,
    "warm": measure_warm,
    "cold": measure_cold,
    "conversions": measure_conversions,
    "orders": measure_orders,
}
