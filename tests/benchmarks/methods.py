"""Methods of the papers side by side: makes kernels/METHODS.md, tables and all its figures.

Every figure of the page is counted in this run. The words around them are in
``pages/methods.md``, where ``{kron|v3.3|pcie_share}`` stands for a cell of a table,
``{table kron}`` for a table, and ``{claims xbfs}`` for what a paper claims.
"""

from __future__ import annotations

import argparse
import os
import pickle
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

import oocbfs
from oocbfs.ablation.groups import choose_methods
from oocbfs.ablation.paper import figure_of
from oocbfs.ablation.plan import prepare
from oocbfs.ablation.runs import run_all
from oocbfs.ablation.table import COLUMNS, runs_of
from oocbfs.generate import generators
from oocbfs.generate.generators import GeneratedEdges
from tests.support.gpu import claims
from tests.support.gpu.claims import CLAIMS, Measured

TEMPLATE = Path(__file__).parent / "pages" / "methods.md"
PAGE = Path(__file__).parents[2] / "kernels" / "METHODS.md"
TITLES = {
    "kron": "Kronecker",
    "powerlaw": "powerlaw",
    "road": "roads of New York",
    "p2p": "p2p-31",
    "grid": "a grid",
}
METHODS = dict.fromkeys(TITLES, "all,merrill,balance") | {"grid": "evolution,merrill"}
_FIGURE = re.compile(r"\{([a-z0-9]+)\|([^|}]+)\|([a-z_.]+)\}")


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench methods", description=__doc__)
    parser.add_argument("--scale", type=int, default=16, help="of kron (default 16)")
    parser.add_argument("--vertices", type=int, default=20_000, help="of powerlaw")
    parser.add_argument("--side", type=int, default=128, help="of grid")
    parser.add_argument("--graphs", default=",".join(TITLES), help="those to run, in order")
    parser.add_argument("--sources", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--page", type=Path, default=PAGE, help="the file to write")
    parser.add_argument(
        "--folder", type=Path, help="keeps graphs and counts; what is there is not run again"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for name in options.graphs.split(","):
            if not (folder / f"{name}.counts").exists():
                measured = measure(name, folder / f"{name}.ocg", options)
                (folder / f"{name}.counts").write_bytes(pickle.dumps(measured))
        kept = {name: folder / f"{name}.counts" for name in TITLES}
        counted = {n: pickle.loads(file.read_bytes()) for n, file in kept.items() if file.exists()}
    if counted.keys() == TITLES.keys():
        options.page.write_text(fill(TEMPLATE.read_text(), counted))


def make_graph(name: str, options: argparse.Namespace) -> GeneratedEdges | Path:
    """Return the edges of a graph."""
    real = Path(os.environ.get("OOCBFS_GRAPHS", "none"))
    if name == "kron":
        return generators.kron(options.scale)
    if name == "powerlaw":
        return generators.powerlaw(options.vertices, 55.0, min(5214, options.vertices // 4))
    if name == "grid":
        return generators.grid2d(options.side, options.side)
    return real / {"road": "road/NY.gr.xz", "p2p": "p2p/p2p-31.e"}[name]


def measure(name: str, path: Path, options: argparse.Namespace) -> Measured:
    """Run all methods on a graph."""
    oocbfs.convert(make_graph(name, options), path, directed=False, force=True)
    # Some methods pass over all vertices in each of hundreds of levels: minutes in the emulator.
    sources, seeds = (1, 1) if name == "road" else (options.sources, options.seeds)
    plan = prepare(
        str(path),
        choose_methods(METHODS[name]),
        num_sources=sources,
        num_seeds=seeds,
        threads=options.threads,
    )
    rows = []
    for row in run_all(plan, processes=options.threads):
        print(f"{name}: {row.method}", flush=True)
        rows.append(row)
    size = f"{plan.num_vertices:,} vertices, {plan.num_edges:,} edges"
    return Measured(f"{TITLES[name]}, {size}", plan, rows)


def fill(template: str, measured: dict[str, Measured]) -> str:
    """Put tables and figures where the words want them."""
    page = _FIGURE.sub(lambda found: measured[found[1]].shown(found[2], found[3]), template)
    for name, one in measured.items():
        page = page.replace(f"{{table {name}}}", _table(one))
        page = page.replace(f"{{runs {name}}}", runs_of(one.plan))
        page = page.replace(f"{{title {name}}}", one.title)
    titled = {TITLES[name]: one for name, one in measured.items()}
    for paper in CLAIMS:
        page = page.replace(f"{{claims {paper}}}", claims.table(paper, titled))
    return page


def _table(measured: Measured) -> str:
    lines = ["| " + " | ".join(["method", *(c.heading for c in COLUMNS), "paper"]) + " |"]
    lines.append("|" + "---|" * (len(COLUMNS) + 2))
    for row in measured.rows.values():
        cells = [column.shown(row, measured.plan) for column in COLUMNS]
        if row.failure:
            cells = [row.failure, *[""] * (len(COLUMNS) - 1)]
        lines.append("| " + " | ".join([f"`{row.method}`", *cells, figure_of(row.method)]) + " |")
    return "\n".join(lines)
