"""The page: table and pictures in one file that needs no other, in light and in dark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from html import escape

from oocbfs.ablation.paper import figure_of
from oocbfs.ablation.plan import Plan
from oocbfs.ablation.runs import Row
from oocbfs.ablation.svg import WIDTH, Picture, style
from oocbfs.ablation.table import COLUMNS, runs_of
from oocbfs.methods import parse_method

_STYLE = f"""
:root{{color-scheme:light dark;--paper:#fff;--ink:#1c2126;--muted:#5b6570;--grid:#dfe4e9}}
@media(prefers-color-scheme:dark){{
:root{{--paper:#14181d;--ink:#e8ecf1;--muted:#a3adb8;--grid:#333b44}}}}
*{{box-sizing:border-box}}
body{{margin:0 auto;padding:16px;max-width:1280px;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif}}
h1{{font-size:22px;line-height:1.25;margin:8px 0;overflow-wrap:anywhere}}
h2{{font-size:18px;margin:36px 0 4px}}
p{{margin:4px 0;color:var(--muted);max-width:75ch}}
.wide{{overflow-x:auto;margin:16px 0;border:1px solid var(--grid);border-radius:6px}}
table{{border-collapse:collapse;font-size:13px;width:100%}}
th,td{{padding:5px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--grid);
font-variant-numeric:tabular-nums}}
tbody tr:last-child>*{{border-bottom:0}}
th{{font-weight:600}}
th:first-child{{text-align:left;position:sticky;left:0;background:var(--paper)}}
tbody th{{font-weight:500}}
th small{{display:block;font-weight:400;color:var(--muted)}}
.words{{text-align:left;color:var(--muted)}}
td.failure{{white-space:normal;min-width:220px}}
dl{{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;font-size:13px;margin:12px 0}}
dt{{font-weight:600}}dd{{margin:0;color:var(--muted)}}
summary{{cursor:pointer}}
.panels{{display:flex;flex-wrap:wrap;gap:24px 28px;margin-top:14px}}
.panels svg{{flex:0 1 {WIDTH + 4}px;width:100%;max-width:{WIDTH + 4}px;height:auto;
align-self:flex-start}}
{style()}
"""


def as_html(rows: Sequence[Row], plan: Plan, pictures: Sequence[Picture]) -> str:
    """Write the page."""
    name = escape(os.path.basename(plan.path))
    about = f"{plan.num_vertices:,} vertices, {plan.num_edges:,} directed edges; {runs_of(plan)}."
    body = "".join(
        (
            f"<h1>Methods on {name}</h1>",
            f"<p>{escape(about)}</p>",
            f'<div class="wide"><table>{_head()}<tbody>',
            *(_row(row, plan) for row in rows),
            "</tbody></table></div>",
            f"<details open><summary>The columns</summary><dl>{_columns()}</dl></details>",
            f"<details><summary>The methods</summary><dl>{_methods(rows)}</dl></details>",
            *(_section(picture) for picture in pictures),
        )
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Methods on {name}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


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
        cells = f'<td class="words failure" colspan="{len(COLUMNS)}">{failure}</td>'
    else:
        cells = "".join(f"<td>{escape(column.shown(row, plan))}</td>" for column in COLUMNS)
    return f'<tr>{name}{cells}<td class="words">{escape(figure_of(row.method))}</td></tr>'


def _columns() -> str:
    named = [(column.heading, column.meaning) for column in COLUMNS]
    return _listed([*named, ("paper", "what its authors report, on their graphs and cards")])


def _methods(rows: Sequence[Row]) -> str:
    methods = {parse_method(row.method).method: None for row in rows}
    return _listed((method.name, f"{method.line} ({method.paper})") for method in methods)


def _listed(named: Iterable[tuple[str, str]]) -> str:
    return "".join(f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>" for name, words in named)


def _section(picture: Picture) -> str:
    panels = "".join(panel.alone() for panel in picture.panels)
    return (
        f"<section><h2>{escape(picture.heading)}</h2><p>{escape(picture.caption)}</p>"
        f'<div class="panels">{panels}</div></section>'
    )
