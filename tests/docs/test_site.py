"""The site builds strictly: no link leads nowhere, and no page fetches anything from elsewhere."""

import os
import re
import sys
from pathlib import Path

import pytest

import oocbfs
from tests.support import children
from tests.support.packages import ROOT
from tests.support.shared import SharedGraphs

# What loads by itself when a page is read; links that somebody follows may lead anywhere.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source)[^>]*\ssrc=["']?(?:https?:)?//
    | <link(?![^>]*rel=["']?canonical)[^>]*\shref=["']?(?:https?:)?//
    | @import\s+["']?(?:url\()?["']?https?:""",
    re.VERBOSE,
)


def build(folder: Path) -> Path:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    settings = ["--config-file", str(ROOT / "scripts/mkdocs.yml")]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = children.run([*command, *settings], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def site(shared_graphs: SharedGraphs) -> Path:
    folder: Path = shared_graphs.once("site", build)
    return folder


def test_every_page_of_the_repository_is_there(site: Path) -> None:
    own = {ROOT / "tests/benchmarks/pages/methods.md"}  # the words of kernels/METHODS.md
    tops = ("formats", "kernels", "tools", "tests", "oocbfs")
    pages = [*ROOT.glob("*.md"), *(page for top in tops for page in (ROOT / top).rglob("*.md"))]
    for page in set(pages) - own:
        name = page.relative_to(ROOT)
        name = name.with_name("index.html") if name.stem == "README" else name.with_suffix(".html")
        assert (site / name).is_file(), f"name {page} in scripts/mkdocs.yml"


def test_what_is_public_is_in_the_reference(site: Path) -> None:
    reference = (site / "python.html").read_text()
    for name in oocbfs.__all__:
        if not name.startswith("_"):
            assert re.search(rf'id="oocbfs\.[\w.]*\b{name}"', reference), name
    assert 'id="oocbfs.search.any_graph.AnyGraph.bfs"' in reference


def test_nothing_is_fetched_from_elsewhere(site: Path) -> None:
    for path in site.rglob("*"):
        if path.suffix in (".html", ".css"):
            found = FETCHED.search(path.read_text())
            assert found is None, (path, found)
