"""The ``--json`` of every verb, on small graphs and every engine that runs anywhere; times masked.

``python -m tests.support.written.golden_json FOLDER`` writes a file for each verb.
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.command_line import call

# What depends on the machine: times, and memory that is free or was taken.
_MASKED = re.compile(
    r"second|_time|_TEPS|_validate|generation|peak_bytes|memory_bytes|needed_bytes"
)
_ONE = ("--threads", "1", "--json")
_CPU = ("--engine", "cpu", *_ONE)

# Commands in the order they run; each sees the files of those before it.
CASES: dict[str, tuple[str, ...]] = {
    "convert": ("convert", "edges.csv", "-o", "g.ocg", "--order", "degree", *_ONE),
    "convert-directed": ("convert", "edges.csv", "-o", "d.ocg", "--directed", *_ONE),
    "convert-names": ("convert", "names.csv", "-o", "n.ocg", "--ids", "names", *_ONE),
    "convert-parts": ("convert", "edges.csv", "-o", "parts", "--parts", "2", *_ONE),
    "generate": ("generate", "kron", "--scale", "7", "-o", "k.ocg", "--order", "degree", *_ONE),
    "generate-edges": ("generate", "grid2d", "--rows", "3", "--columns", "4", "-o", "l.txt", *_ONE),
    "shard": ("shard", "k.ocg", "-o", "shards", "--parts", "2", "--json"),
    "info": ("info", "g.ocg", "--json"),
    "info-directed": ("info", "d.ocg", "--json"),
    "info-names": ("info", "n.ocg", "--json"),
    "info-parts": ("info", "shards", "--json"),
    "verify": ("verify", "g.ocg", *_ONE),
    "verify-parts": ("verify", "shards", *_ONE),
    "export": ("export", "g.ocg", "-o", "out.txt", *_ONE),
    "export-rows": ("export", "g.ocg", "-o", "out.npz", *_ONE),
    "export-near": ("export", "g.ocg", "--near", "1", "--depth", "1", "-o", "near.ocg", *_ONE),
    "near": ("near", "g.ocg", "1,2", "--depth", "1", "--limit", "2", "-o", "near.csv", *_ONE),
    "bfs": ("bfs", "g.ocg", "--source", "1", "--engine", "cpu", "--validate", *_ONE),
    "bfs-target": ("bfs", "g.ocg", "--source", "1", "--target", "4", *_CPU),
    "bfs-depth": ("bfs", "g.ocg", "--source", "1,60", "--max-depth", "1", *_CPU),
    "bfs-largest": ("bfs", "k.ocg", "--source", "@largest", *_CPU),
    "bfs-directed": ("bfs", "d.ocg", "--source", "1", *_CPU),
    "bfs-names": ("bfs", "n.ocg", "--source", "ann", *_CPU),
    "bfs-disk": ("bfs", "k.ocg", "--source", "@largest", "--engine", "disk", *_ONE),
    "bfs-emulator": ("bfs", "k.ocg", "--source", "@largest", "--engine", "emulator", *_ONE),
    "bfs-devices": (
        "bfs", "k.ocg", "--source", "@largest", "--engine", "emulator", "--devices", "0,1", *_ONE,
    ),
    "bfs-method": (
        "bfs", "k.ocg", "--source", "@largest", "--engine", "emulator", "--method", "v3.3", *_ONE,
    ),
    "bfs-methods": ("bfs", "--method", "list", "--json"),
    "bfs-parts": ("bfs", "shards", "--source", "@largest", *_ONE),
    "batch": ("batch", "k.ocg", "--random", "4", "-o", "batch", "--from", "largest", *_CPU),
    "batch-parts": ("batch", "shards", "--all-hubs", "2", "-o", "hubs", *_CPU),
    "path": ("path", "g.ocg", "1", "10", "--json"),
    "path-all": ("path", "g.ocg", "10", "1", "--all", "--json"),
    "path-none": ("path", "n.ocg", "ann", "@largest", "--max-depth", "0", "--json"),
    "pairs": ("pairs", "g.ocg", "edges.csv", "-o", "pairs.csv", *_ONE),
    "components": ("components", "g.ocg", *_CPU),
    "components-largest": ("components", "d.ocg", "--largest", *_CPU),
    "components-disk": ("components", "k.ocg", "--engine", "disk", *_ONE),
    "components-emulator": ("components", "k.ocg", "--engine", "emulator", *_ONE),
    "components-parts": ("components", "shards", *_ONE),
    "components-strong": ("components", "d.ocg", "--strong", *_CPU),
    "distances": (
        "distances", "k.ocg", "--exact", "diameter,radius,center", "--top", "3", *_CPU,
    ),
    "distances-directed": (
        "distances", "d.ocg", "--component", "all", "--exact", "eccentricities,closeness", *_CPU,
    ),
    "distances-parts": ("distances", "shards", "--exact", "diameter", "--samples", "9", *_CPU),
    "report": ("report", "k.ocg", "-o", "k.html", "--sources", "1", "--memory", "16G", *_ONE),
    "ablate": (
        "ablate", "k.ocg", "--methods", "v3.3", "--sources", "1", "--seeds", "1", *_ONE,
    ),
    "graph500": ("graph500", "--scale", "6", "--roots", "2", *_CPU),
    "plan": ("plan", "k.ocg", "--vram", "1G", "--memory", "16G", "--samples", "1", *_ONE),
    "plan-workers": ("plan", "k.ocg", "--workers", "2", "--samples", "1", *_ONE),
    # The last, as it changes what the others read.
    "update": ("update", "g.ocg", "--add", "l.txt", "--remove", "edges.csv", *_ONE),
}  # fmt: skip


def find(folder: Path) -> dict[str, Any]:
    """Run all cases in an empty folder."""
    edges = [(1, 2), (2, 3), (3, 10), (2, 4), (50, 60), (4, 4), (2, 1)]
    (folder / "edges.csv").write_text("".join(f"{a},{b}\n" for a, b in edges))
    (folder / "names.csv").write_text("ann,bob\nbob,cleo\nann,@largest\n")
    return {case: run(folder, words) for case, words in CASES.items()}


def run(folder: Path, words: tuple[str, ...]) -> Any:
    """Run a command in the folder; returns what it printed, masked."""
    done = call(*words, cwd=folder)
    assert done.returncode == 0, f"{' '.join(words)}: {done.stderr}"
    return masked(json.loads(done.stdout))


def masked(value: Any, name: str = "") -> Any:
    """Replace what depends on the machine, and keep its form."""
    if isinstance(value, dict):
        return {one: masked(below, f"{name} {one}") for one, below in value.items()}
    if isinstance(value, list):
        return [masked(below, name) for below in value]
    is_masked = _MASKED.search(name) and isinstance(value, int | float)
    return 0 if is_masked and not isinstance(value, bool) else value


def main(folder: Path) -> None:
    """Write all golden files."""
    with tempfile.TemporaryDirectory() as name:
        found = find(Path(name))
    for verb in sorted({words[0] for words in CASES.values()}):
        of_verb = {case: found[case] for case, words in CASES.items() if words[0] == verb}
        (folder / f"{verb}.json").write_text(f"{json.dumps(of_verb, indent=1)}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
