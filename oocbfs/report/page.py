"""The page of a report."""

from __future__ import annotations

from datetime import date
from html import escape
from typing import TYPE_CHECKING, Any

from oocbfs.memory import format_size
from oocbfs.pictures.charts import lines
from oocbfs.pictures.degrees import degree_panels
from oocbfs.pictures.page import listed, page, section, table
from oocbfs.pictures.svg import Picture
from oocbfs.results.panels import file_panel, sizes_panel, sources_panel
from oocbfs.settings import file_name
from oocbfs.version import __version__

if TYPE_CHECKING:
    from oocbfs.report.facts import Facts
    from oocbfs.search.graph import Graph


def as_html(graph: Graph, facts: Facts) -> str:
    """Write the page."""
    name = file_name(graph.path)
    kind = "directed" if graph.directed else "undirected"
    body = (
        f"<h1>{escape(name)}</h1>",
        f"<p>{graph.num_vertices:,} vertices, {graph.num_edges:,} {kind} edges.</p>",
        _file(graph, facts),
        _degrees(graph, facts),
        _components(graph, facts),
        _levels(graph, facts),
        _hubs(graph, facts),
        _distances(facts),
        *(
            (_plan(facts.plan),)
            if facts.plan is not None and leaves_something_outside(facts.plan)
            else ()
        ),
        _made(facts),
    )
    return page(name, "".join(body))


def _file(graph: Graph, facts: Facts) -> str:
    info = facts.info
    arcs = f"{graph.num_arcs:,}"
    ids = {"names": "names", "listed": "listed"}.get(
        info["ids"], f"consecutive, from {info['first_id']:,}"
    )
    rows = [
        ("vertices", f"{graph.num_vertices:,}"),
        ("ids", ids),
        ("arcs stored", arcs if graph.directed else f"{arcs}, each edge in both directions"),
        ("order of rows", info["order"]),
        ("bits of the file for each arc", f"{info['bits_per_arc']:.2f}"),
        ("file", f"{info['file_bytes']:,} bytes, format version {info['format_version']}"),
        ("edges read", f"{info['edges_read']:,}"),
        ("left out", f"{info['duplicates']:,} duplicates, {info['loops']:,} loops"),
    ]
    caption = (
        "Each row of neighbours is a head, the most connected one, and a tail, all others as short "
        "differences. Heads and starts stay in fast memory; tails may wait in slow memory."
    )
    return section(Picture("The file", caption, [file_panel(graph._stored)]), listed(rows))


def _degrees(graph: Graph, facts: Facts) -> str:
    n = max(1, graph.num_vertices)
    isolated = facts.degrees.get("degree", {}).get(0, 0)
    most = {name: f"{facts.max_degree(name):,}" for name in facts.degrees}
    at_most = most.get("degree") or f"{most['out-degree']} outward and {most['in-degree']} inward"
    words = [f"{graph.num_arcs / n:.1f} on average, at most {at_most}."]
    if "degree" in facts.degrees:
        words.append(f"{isolated:,} vertices ({isolated / n:.1%}) have no edge.")
    words.append(
        "Columns are classes that begin at the degree below them and double; both axes are "
        "logarithmic."
    )
    panels = degree_panels(facts.degrees) if graph.num_vertices else []
    return section(Picture("Degrees", " ".join(words), panels))


def _components(graph: Graph, facts: Facts) -> str:
    found = facts.components
    weakly = "Weakly connected. " if graph.directed else ""
    caption = (
        f"{weakly}{found['components']:,} components, found in {found['seconds']:.3f} s on the "
        f"{found['engine']} engine. The table has the largest."
    )
    rows = [
        (str(one.label), f"{one.size:,}", f"{one.size / graph.num_vertices:.2%}")
        for one in facts.largest
    ]
    below = table(("smallest id", "vertices", "share"), rows) if rows else ""
    panels = [sizes_panel(facts.sizes)] if rows else []
    return section(Picture("Components", caption, panels), below)


def _levels(graph: Graph, facts: Facts) -> str:
    searches = facts.searches
    if not searches:
        return section(Picture("Levels", "There is no vertex to start from.", []))
    slow = any(search.slow_bytes is not None for search in searches)
    disk = ("bytes from disk",) if slow else ()
    times = ("seconds", "of these to load")
    headings = ("from", "reached", "share", "depth", *times, "engine", *disk, "chosen as")
    rows = [
        (
            str(search.source),
            f"{search.reached:,}",
            f"{search.reached / graph.num_vertices:.1%}",
            f"{search.depth:,}",
            f"{search.seconds:.4f}",
            f"{search.load_seconds:.4f}",
            search.engine,
            *((f"{search.slow_bytes or 0:,}",) if slow else ()),
            search.why,
        )
        for search in searches
    ]
    caption = (
        "Breadth-first search from a few sources: how many vertices are how far from each. Seconds "
        f"are those of whole calls with {searches[0].threads} threads, one after another. Loading "
        "is mapping, compiling and decoding what later searches find ready."
    )
    panel = sources_panel({f"from {search.source}": search.level_sizes for search in searches})
    below = table(headings, rows, words="chosen as")
    return section(Picture("Levels", caption, [panel]), below)


def _hubs(graph: Graph, facts: Facts) -> str:
    """Show the vertices of most neighbours by name."""
    if not facts.hubs:
        return ""
    outward = "out-neighbours" if graph.directed else "neighbours"
    rows = [
        (
            str(hub.vertex),
            f"{hub.degree:,}",
            f"{hub.reached:,}",
            f"{hub.average:.3f}",
            f"{hub.harmonic:,.1f}",
        )
        for hub in facts.hubs
    ]
    headings = ("vertex", outward, "reaches", "mean distance", "harmonic centrality")
    caption = f"The vertices of most {outward}, and how far all others are from each; exact."
    return section(Picture("Hubs", caption, []), table(headings, rows))


def _distances(facts: Facts) -> str:
    """Show how far pairs are from each other."""
    found = facts.distances
    if found is None or found.depth < 1:
        return ""
    caption = (
        f"Between ordered pairs of vertices of {found.scope}, from {found.num_sources:,} of "
        f"{found.num_vertices:,} sources: {found.certainty} for every share."
    )
    shares = [1e6 * share for share in (found.shares[1:] - found.shares[:-1]).tolist()]
    panel = lines(
        "pairs by distance, in a million", {"pairs": ("0", [0, *shares])}, along="distance"
    )
    rows = [
        ("mean", found.average.text()),
        ("median", found.median().text(",.0f")),
        ("effective diameter", f"{found.effective_diameter().text()}: 90 % of the pairs"),
        ("harmonic mean", found.harmonic_mean.text()),
        ("reachable pairs", found.reachable.text(".2%")),
    ]
    return section(Picture("Distances", caption, [panel]), listed(rows))


def leaves_something_outside(plan: dict[str, Any]) -> bool:
    """Return whether any GPU would read over PCIe, leave tails on disk, or not take the graph."""
    return any(
        "error" in one or one["disk_bytes"] or (one["predicted"] or {}).get("slow_bytes", 1)
        for one in plan["plans"]
    )


def _plan(plan: dict[str, Any]) -> str:
    caption = (
        f"What would be held where, and what one search would move. Predictions from "
        f"{plan['samples']} random sources; nothing of this was measured on a GPU."
    )
    headings = (
        *("GPU", "usable memory", "resident tails", "pinned in host memory", "left on disk"),
        *("over PCIe, median", "of the graph", "milliseconds"),
    )
    rows = [_gpu(decision, plan["graph_bytes"]) for decision in plan["plans"]]
    model = f"<details><summary>The model</summary><p>{escape(plan['model'])}</p></details>"
    beside = f'{table(headings, rows)}<div class="full">{model}</div>'
    return section(Picture("On a GPU", caption, []), beside)


def _gpu(decision: dict[str, Any], graph_bytes: int) -> tuple[str, ...]:
    name, usable = decision["gpu"], format_size(decision["vram_bytes"])
    if "error" in decision:
        return name, usable, *["too small"] * 3, *["–"] * 3
    sizes = ("resident_tail_bytes", "pinned_bytes", "disk_bytes")
    held = [format_size(decision[size]) for size in sizes]
    predicted = decision["predicted"]
    if predicted is None:
        return name, usable, *held, *["–"] * 3
    moved = predicted["slow_bytes"]
    seconds = predicted.get("seconds")
    took = "–" if seconds is None else f"{1e3 * seconds:.2f}"
    return name, usable, *held, format_size(moved), f"{moved / max(1, graph_bytes):.1%}", took


def _made(facts: Facts) -> str:
    made = f"Made on {date.today().isoformat()} by oocbfs {__version__}."
    caption = f"{made} The first command made this page, the others print the same figures."
    return section(
        Picture("How this was made", caption, []),
        f'<div class="full"><pre>{escape(chr(10).join(facts.commands))}</pre></div>',
    )
