"""A page in one file that needs no other, in light and in dark, on screens of any width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from oocbfs.pictures.svg import WIDTH, Picture, style

_STYLE = f"""
:root{{color-scheme:light dark;--paper:#fff;--ink:#1c2126;--muted:#5b6570;--grid:#dfe4e9}}
@media(prefers-color-scheme:dark){{
:root{{--paper:#14181d;--ink:#e8ecf1;--muted:#a3adb8;--grid:#333b44}}}}
*{{box-sizing:border-box}}
body{{margin:0 auto;padding:16px;max-width:1200px;background:var(--paper);color:var(--ink);
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
th.words{{color:var(--ink)}}
th:first-child{{text-align:left;position:sticky;left:0;background:var(--paper)}}
tbody th{{font-weight:500}}
th small{{display:block;font-weight:400;color:var(--muted)}}
.words{{text-align:left;color:var(--muted)}}
.failure span{{display:inline-block;white-space:normal;max-width:min(80ch,55vw)}}
dl{{display:grid;grid-template-columns:max-content 1fr;gap:2px 14px;font-size:13px;margin:12px 0}}
dt{{font-weight:600}}dd{{margin:0;color:var(--muted)}}
summary{{cursor:pointer}}
pre{{overflow-x:auto;padding:10px 12px;border:1px solid var(--grid);border-radius:6px;
font:13px/1.6 ui-monospace,Menlo,Consolas,monospace}}
.panels{{display:flex;flex-wrap:wrap;gap:24px 8px;margin-top:14px}}
.panels svg{{flex:1 1 {WIDTH + 4}px;width:100%;max-width:{5 * WIDTH // 4}px;height:auto;
align-self:flex-start}}
.panels>.wide{{margin:0;flex:1 1 auto;min-width:0;max-width:100%;align-self:flex-start}}
.panels>dl{{margin:0;flex:1 1 {WIDTH}px;align-content:start;padding:0 0 0 2%}}
.panels>.full{{flex-basis:100%;min-width:0}}
@media(max-width:480px){{dl{{grid-template-columns:1fr}}dd{{margin:0 0 6px}}}}
{style()}
"""


def page(title: str, body: str) -> str:
    """Put a whole page around its body."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def table(headings: Sequence[str], rows: Iterable[Sequence[str]], words: str = "") -> str:
    """Show rows, numbers to the right but the column headed ``words``; wide tables are scrolled."""
    kinds = [' class="words"' if heading == words else "" for heading in headings[1:]]

    def cells(values: Sequence[str], tag: str) -> str:
        first, *others = (escape(value) for value in values)
        named = zip(others, kinds, strict=True)
        return f"<th>{first}</th>" + "".join(f"<{tag}{k}>{value}</{tag}>" for value, k in named)

    head = f"<thead><tr>{cells(headings, 'th')}</tr></thead>"
    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f'<div class="wide"><table>{head}<tbody>{body}</tbody></table></div>'


def listed(named: Iterable[tuple[str, str]]) -> str:
    """Explain words, one below the other."""
    pairs = (f"<dt>{escape(name)}</dt><dd>{escape(words)}</dd>" for name, words in named)
    return f"<dl>{''.join(pairs)}</dl>"


def section(picture: Picture, beside: str = "") -> str:
    """Show a picture: its heading, what it shows, its panels, and what stands beside them."""
    panels = "".join(panel.alone() for panel in picture.panels)
    return (
        f"<section><h2>{escape(picture.heading)}</h2><p>{escape(picture.caption)}</p>"
        f'<div class="panels">{panels}{beside}</div></section>'
    )
