"""Methods of the papers side by side: makes kernels/METHODS.md, tables and all its figures.

Every figure of the page is counted in this run. The words around them are in ``methods.md`` beside
this file, where ``{kron|v3.3|pcie_share}`` stands for a cell of a table, ``{kron|v1/v3.3|atomics}``
for the quotient of two, and ``{table kron}`` for a table.
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import oocbfs
from oocbfs.ablation.charts import short
from oocbfs.ablation.figures import contributions
from oocbfs.ablation.groups import choose_methods
from oocbfs.ablation.paper import figure_of
from oocbfs.ablation.plan import Plan, prepare
from oocbfs.ablation.runs import Row, run_all
from oocbfs.ablation.table import COLUMNS, runs_of
from oocbfs.generate import generators

TEMPLATE = Path(__file__).with_name("methods.md")
PAGE = Path(__file__).parents[2] / "kernels" / "METHODS.md"
METHODS = "all,merrill,balance"
_FIGURE = re.compile(r"\{([a-z0-9]+)\|([^|}]+)\|([a-z_]+)\}")
_COLUMNS = {column.name: column for column in COLUMNS}


class Measured:
    """What all methods counted on one graph."""

    def __init__(self, title: str, plan: Plan, rows: list[Row]) -> None:
        self.title = title
        self.plan = plan
        self.rows = {row.method: row for row in rows}

    def value(self, method: str, name: str) -> float | None:
        """Give a figure of a method, or None if it overflowed or did not count it."""
        column = _COLUMNS.get(name)
        row = self.rows[method]
        return row.median(name) if column is None else column.of(row, self.plan)

    def figure(self, methods: str, name: str) -> str:
        """Write a figure of a method, or the quotient of two."""
        if name == "saved":
            return self._saved(methods)
        one, _, other = methods.partition("/")
        value = self.value(one, name)
        if not other:
            if value is None:
                return "an overflow" if self.rows[one].failure else "–"
            return _COLUMNS[name].write(value) if name in _COLUMNS else short(value)
        below = self.value(other, name)
        return "–" if value is None or not below else f"{value / below:.3g}"

    def _saved(self, part: str) -> str:
        """Write the share that a part of xbfs has in the sectors it saves."""
        saved = contributions(self.rows["xbfs"], self.rows["single-scan"])
        return f"{saved[part] / sum(saved.values()):.0%}" if any(saved.values()) else "–"

    def table(self) -> Iterator[str]:
        """Write the table."""
        yield "| " + " | ".join(["method", *(c.heading for c in COLUMNS), "paper"]) + " |"
        yield "|" + "---|" * (len(COLUMNS) + 2)
        for row in self.rows.values():
            cells = [column.shown(row, self.plan) for column in COLUMNS]
            if row.failure:
                cells = [row.failure, *[""] * (len(COLUMNS) - 1)]
            yield "| " + " | ".join([f"`{row.method}`", *cells, figure_of(row.method)]) + " |"


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

    def figure(found: re.Match[str]) -> str:
        return measured[found[1]].figure(found[2], found[3])

    page = _FIGURE.sub(figure, template)
    for name, one in measured.items():
        page = page.replace(f"{{table {name}}}", "\n".join(one.table()))
        page = page.replace(f"{{runs {name}}}", runs_of(one.plan))
        page = page.replace(f"{{title {name}}}", one.title)
    return page
