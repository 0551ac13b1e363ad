"""Bring mkdocs the pages of the repository, each from the folder that it explains."""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]
PICTURES = ("oocbfs/levels.svg",)
# What may stand before a list without an empty line, as GitHub reads it and Markdown does not.
_LIST = re.compile(r"^(?:[-*] |\d+\. )")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add what the navigation names and is not in this folder."""
    for name in (*_pages(config.nav), *PICTURES):
        if files.get_file_from_path(name) is None:
            files.append(File.generated(config, name, abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Return the text with an empty line before each list."""
    lines: list[str] = []
    is_code = False
    for line in markdown.splitlines():
        is_code ^= line.lstrip().startswith("```")
        before = lines[-1] if lines else ""
        begins = _LIST.match(line) and not _LIST.match(before)
        if begins and not is_code and before.strip() and not before.startswith(" "):
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


def _pages(nav: object) -> list[str]:
    """Return the pages of a navigation, which is nested."""
    if isinstance(nav, str):
        return [nav]
    below = nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else []
    return [page for one in below for page in _pages(one)]
