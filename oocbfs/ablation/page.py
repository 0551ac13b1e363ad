"""The page of a comparison: its table and its pictures."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from oocbfs.ablation.paper import figure_of
from oocbfs.ablation.plan import Plan
from oocbfs.ablation.runs import Row
from oocbfs.ablation.table import COLUMNS, runs_of
from oocbfs.methods import parse_method
from oocbfs.pictures.page import listed, page, section
from oocbfs.pictures.svg import Picture
from oocbfs.settings import file_name


def as_html(rows: Sequence[Row], plan: Plan, pictures: Sequence[Picture]) -> str:
    """Write the page."""
    name = escape(file_name(plan.path))
    about = f"{plan.num_vertices:,} vertices, {plan.num_edges:,} edges; {runs_of(plan)}."
    body = (
        f"<h1>Methods on {name}</h1>",
        f"<p>{escape(about)}</p>",
        f'<div class="wide"><table>{_head()}<tbody>',
        *(_row(row, plan) for row in rows),
        "</tbody></table></div>",
        f"<details open><summary>The columns</summary>{_columns()}</details>",
        f"<details><summary>The methods</summary>{_methods(rows)}</details>",
        *map(section, pictures),
    )
    return page(f"Methods on {file_name(plan.path)}", "".join(body))


def _head() -> str:
    cells = "".join(f'<th title="{escape(c.meaning)}">{escape(c.heading)}</th>' for c in COLUMNS)
    return f'<thead><tr><th>method</th>{cells}<th class="words">paper</th></tr></thead>'


def _row(row: Row, plan: Plan) -> str:
    choice = parse_method(row.method)
    options = "".join(f"<small>{escape(f'{name}={value}')}</small>" for name, value in choice.given)
    title = escape(choice.method.line)
    name = f'<th scope="row" title="{title}">{escape(choice.name)}{options}</th>'
    if row.failure:
        failure = escape(row.failure)
        cells = f'<td class="words failure" colspan="{len(COLUMNS)}"><span>{failure}</span></td>'
    else:
        cells = "".join(f"<td>{escape(column.shown(row, plan))}</td>" for column in COLUMNS)
    return f'<tr>{name}{cells}<td class="words">{escape(figure_of(row.method))}</td></tr>'


def _columns() -> str:
    named = [(column.heading, column.meaning) for column in COLUMNS]
    return listed([*named, ("paper", "what its authors report, on their graphs and cards")])


def _methods(rows: Sequence[Row]) -> str:
    methods = {parse_method(row.method).method: None for row in rows}
    return listed((method.name, f"{method.line} ({method.paper})") for method in methods)
