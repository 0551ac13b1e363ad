"""Methods of the papers side by side: makes kernels/METHODS.md, tables and all its figures.

Every figure of the page is counted in this run. The words around them are in ``methods.md`` beside
this file, where ``{kron|v3.3|pcie_share}`` stands for a cell of a table, ``{table kron}`` for a
table, and ``{claims xbfs}`` for what a paper claims.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import oocbfs
from oocbfs.ablation.groups import choose_methods
from oocbfs.ablation.paper import figure_of
from oocbfs.ablation.plan import prepare
from oocbfs.ablation.runs import run_all
from oocbfs.ablation.table import COLUMNS, runs_of
from oocbfs.generate import generators
from tests.benchmarks import claims
from tests.benchmarks.claims import CLAIMS, Measured

TEMPLATE = Path(__file__).with_name("methods.md")
PAGE = Path(__file__).parents[2] / "kernels" / "METHODS.md"
METHODS = "all,merrill,balance"
_FIGURE = re.compile(r"\{([a-z0-9]+)\|([^|}]+)\|([a-z_]+)\}")


def main(arguments: Sequence[str]) -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(prog="scripts/bench methods", description=__doc__)
    parser.add_argument("--scale", type=int, default=16, help="of kron (default 16)")
    parser.add_argument("--vertices", type=int, default=50_000, help="of powerlaw")
    parser.add_argument("--sources", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--page", type=Path, default=PAGE, help="the file to write")
    parser.add_argument("--folder", type=Path, help="for the graphs (default: a temporary one)")
    options = parser.parse_args(arguments)
    measured = {}
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for name, (title, make) in _graphs(options).items():
            path = Path(folder) / f"{name}.ocg"
            oocbfs.convert(make(), path, directed=False)
            measured[name] = measure(title, path, options)
    options.page.write_text(fill(TEMPLATE.read_text(), measured))


def _graphs(options: argparse.Namespace) -> dict[str, tuple[str, Callable[[], Any]]]:
    real = Path(os.environ["OOCBFS_GRAPHS"])
    return {
        "kron": (f"Kronecker {options.scale}", lambda: generators.kron(options.scale)),
        "powerlaw": (
            f"powerlaw, {options.vertices:,} vertices",
            lambda: generators.powerlaw(options.vertices, 55.0, options.vertices // 200),
        ),
        "road": ("roads of New York", lambda: real / "road" / "NY.gr.xz"),
        "p2p": ("p2p-31", lambda: real / "p2p" / "p2p-31.e"),
    }


def measure(title: str, path: Path, options: argparse.Namespace) -> Measured:
    """Run all methods on a graph."""
    plan = prepare(
        str(path),
        choose_methods(METHODS),
        num_sources=options.sources,
        num_seeds=options.seeds,
        threads=options.threads,
    )
    rows = []
    for row in run_all(plan, processes=options.threads):
        print(f"{title}: {row.method}", flush=True)
        rows.append(row)
    return Measured(title, plan, rows)


def fill(template: str, measured: dict[str, Measured]) -> str:
    """Put tables and figures where the words want them."""
    page = _FIGURE.sub(lambda found: measured[found[1]].shown(found[2], found[3]), template)
    for name, one in measured.items():
        page = page.replace(f"{{table {name}}}", _table(one))
        page = page.replace(f"{{runs {name}}}", runs_of(one.plan))
    for paper in CLAIMS:
        page = page.replace(f"{{claims {paper}}}", claims.table(paper, measured))
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
