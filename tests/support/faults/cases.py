"""What is run while calls fail: verbs, what they read, and what is there before."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.support.command_line import call
from tests.support.faults.library import Fault, failing

Words = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A command in a folder with ``in`` and ``out``; @ stands for the folder.

    What ``before`` runs is there already, as far as it came if it was ``broken``. ``again`` is what
    a user would run after an error, if it is not the same command. ``plan`` chooses a plan that
    leaves no room for what can be spilled.
    """

    words: str
    before: tuple[str, ...] = ()
    broken: Fault | None = None
    again: str = ""
    plan: Callable[[], Any] | None = None


def _little_room_to_convert() -> Any:
    from oocbfs.conversion.plan import ConvertPlan, MemoryWatch

    plan = ConvertPlan(2, 1 << 16, MemoryWatch())
    return patch("oocbfs.conversion.converter.make_plan", lambda *_: plan)


def _no_room_for_results() -> Any:
    from oocbfs.arrays import ResultArrays

    return patch("oocbfs.plan.host.ResultArrays", lambda _, folder: ResultArrays(0, folder))


_BFS = "bfs @/in/g.ocg --source 1 --threads 1 --levels"
_BATCH = "batch @/in/g.ocg --sources @/in/sources --threads 1 -o @/out/job"
_LEVELS = f"{_BATCH.replace('/sources', '/few')} --emit levels"
_PAIRS = f"{_BATCH.replace('--sources @/in/sources', '--emit pairs @/in/pairs')} --table jsonl.gz"
_NEAR = "near @/in/g.ocg --seeds @/in/few --depth 2 --threads 2"
_CONVERT = "convert --threads 2 -o @/out/g.ocg"
_DISTANCES = "distances @/in/d.ocg --samples 9 --top 3 -o @/out/d.parquet --threads 1"
_OLD = f"{_CONVERT} @/in/a.txt"
_UPDATE = "update @/out/g.ocg --threads 2"

CASES = {
    "convert-text": Case(f"{_CONVERT} @/in/a.txt"),
    "convert-gz": Case(f"{_CONVERT} @/in/b.txt.gz"),
    "convert-several": Case(f"{_CONVERT} @/in/a.txt @/in/b.txt.gz @/in/c.parquet"),
    "convert-parquet": Case(f"{_CONVERT} @/in/c.parquet"),
    "convert-npz": Case(f"{_CONVERT} @/in/d.npz"),
    "convert-zip": Case(f"{_CONVERT} @/in/e.zip"),
    "convert-metis": Case(f"{_CONVERT} @/in/f.metis.gz"),
    "convert-names": Case(f"{_CONVERT} --ids names @/in/a.txt"),
    "convert-zstd": Case(f"{_CONVERT} @/in/a.txt --codec zstd"),
    "convert-spill": Case(
        f"{_CONVERT} --directed @/in/a.txt @/in/b.txt.gz", plan=_little_room_to_convert
    ),
    "convert-local-spill": Case(
        f"{_CONVERT} --order local @/in/a.txt", plan=_little_room_to_convert
    ),
    "convert-force": Case(f"{_CONVERT} @/in/a.txt --force", before=(f"{_CONVERT} @/in/b.txt.gz",)),
    "convert-merge": Case(f"{_CONVERT} @/in/g.ocg @/in/b.txt.gz @/in/h.ocg --remove @/in/pairs"),
    "update": Case(f"{_UPDATE} --add @/in/c.parquet --remove @/in/pairs", before=(_OLD,)),
    "update-keep": Case(f"{_UPDATE} --add @/in/new.txt --order keep", before=(_OLD,)),
    "update-spill": Case(
        f"{_UPDATE} --add @/in/new.txt", before=(_OLD,), plan=_little_room_to_convert
    ),
    "convert-parts": Case("convert @/in/a.txt -o @/out/parts --parts 3 --threads 2"),
    "generate": Case("generate kron --scale 8 -o @/out/k.ocg --threads 2"),
    "bfs-npy": Case(f"{_BFS} @/out/l.npy"),
    "bfs-csv": Case(f"{_BFS} @/out/l.csv"),
    "bfs-gz": Case(f"{_BFS} @/out/l.tsv.gz"),
    "bfs-zst": Case(f"{_BFS} @/out/l.csv.zst"),
    "bfs-parquet": Case(f"{_BFS} @/out/l.parquet"),
    "bfs-folder": Case(f"{_BFS} @/out/l.parquet/"),
    "bfs-both": Case(f"{_BFS} @/out/l.npy --parents @/out/p.csv"),
    "bfs-plot": Case("bfs @/in/g.ocg --source 1 --threads 1 --plot @/out/l.svg"),
    "bfs-zstd-graph": Case("bfs @/in/z.ocg --source 1 --threads 1 --levels @/out/l.npy"),
    "bfs-names": Case("bfs @/in/n.ocg --source 1 --threads 1 --levels @/out/l.csv"),
    "bfs-disk": Case("bfs @/in/g.ocg --source 1 --threads 2 --levels @/out/l.npy --engine disk"),
    "bfs-spill": Case(
        f"{_BFS} @/out/l.npy --engine disk --memory 8G --parents @/out/p.npy",
        plan=_no_room_for_results,
    ),
    "bfs-parts": Case("bfs @/in/parts --source 1 --threads 1 --levels @/out/l.npy"),
    "bfs-force": Case(f"{_BFS} @/out/l.csv --force", before=(f"{_BFS} @/out/l.csv --max-depth 1",)),
    "bfs-folder-force": Case(
        f"{_BFS} @/out/l.npy/ --force", before=(f"{_BFS} @/out/l.npy/ --max-depth 1",)
    ),
    "batch-csv": Case(_BATCH, again=f"{_BATCH} --resume"),
    "batch-levels": Case(_LEVELS, again=f"{_LEVELS} --resume"),
    "batch-zarr": Case(
        f"{_LEVELS} --level-files zarr", again=f"{_LEVELS} --level-files zarr --resume"
    ),
    "batch-pairs": Case(_PAIRS, again=f"{_PAIRS} --resume"),
    "batch-resume": Case(
        f"{_BATCH} --resume",
        again=f"{_BATCH} --resume",
        before=(_BATCH,),
        broken=Fault("rename", 3, "EIO"),
    ),
    "batch-parquet": Case(f"{_BATCH} --table parquet", again=f"{_BATCH} --table parquet --resume"),
    "batch-parts": Case(
        _BATCH.replace("g.ocg", "parts"), again=f"{_BATCH.replace('g.ocg', 'parts')} --resume"
    ),
    "components-npy": Case("components @/in/g.ocg --labels @/out/c.npy --threads 1"),
    "components-disk": Case("components @/in/g.ocg --labels @/out/c.csv --threads 2 --engine disk"),
    "components-spill": Case(
        "components @/in/g.ocg --labels @/out/c.parquet --threads 2 --engine disk --memory 8G",
        plan=_no_room_for_results,
    ),
    **{
        f"export-{form}": Case(f"export @/in/g.ocg -o @/out/e.{form} --threads 2")
        for form in ("txt", "csv.gz", "tsv.zst", "npy", "u32", "parquet", "npz", "metis.xz", "sg")
    },
    "components-strong": Case("components @/in/d.ocg --strong --labels @/out/c.npy --threads 2"),
    "distances": Case(_DISTANCES, again=f"{_DISTANCES} --resume"),
    "export-force": Case(
        "export @/in/g.ocg -o @/out/e.txt --threads 2 --force",
        before=("export @/in/h.ocg -o @/out/e.txt",),
    ),
    "export-near": Case("export @/in/g.ocg --near 1 --depth 2 -o @/out/e.csv --threads 2"),
    "export-near-graph": Case("export @/in/n.ocg --near 1 --depth 2 -o @/out/e.ocg --threads 2"),
    "export-rows-of-some": Case("export @/in/g.ocg --vertices @/in/few -o @/out/e.npz --threads 2"),
    "near-csv": Case(f"{_NEAR} -o @/out/n.csv.gz --limit 9"),
    "near-parquet": Case(f"{_NEAR} -o @/out/n.parquet --parents"),
    "near-disk": Case(f"{_NEAR} -o @/out/n.csv --engine disk --union"),
    "near-force": Case(
        f"{_NEAR} -o @/out/n.csv --force", before=("near @/in/g.ocg 1 --depth 1 -o @/out/n.csv",)
    ),
    "pairs-csv": Case("pairs @/in/g.ocg @/in/pairs -o @/out/p.csv.gz --threads 2"),
    "pairs-parquet": Case("pairs @/in/g.ocg @/in/pairs -o @/out/p.parquet --paths --threads 2"),
    "pairs-disk": Case("pairs @/in/g.ocg @/in/pairs -o @/out/p.tsv --engine disk --threads 2"),
    "path": Case("path @/in/g.ocg 1 2 --all --engine disk"),
    "shard": Case("shard @/in/g.ocg -o @/out/parts --parts 3"),
    "shard-force": Case(
        "shard @/in/g.ocg -o @/out/parts --parts 3 --force",
        before=("shard @/in/h.ocg -o @/out/parts --parts 2",),
    ),
    "verify": Case("verify @/in/g.ocg"),
    "verify-parts": Case("verify @/in/parts"),
    "report": Case("report @/in/g.ocg -o @/out/r.html --threads 1"),
    "info": Case("info @/in/g.ocg"),
}


def make_inputs(folder: Path) -> None:
    """Write what the cases read."""
    rng = random.Random(7)
    edges = [(rng.randrange(600), rng.randrange(600)) for _ in range(3000)]
    lines = [f"{a} {b}\n" for a, b in edges]
    folder.mkdir()
    (folder / "a.txt").write_text("".join(lines))
    (folder / "b.txt.gz").write_bytes(gzip.compress("".join(lines[::-2]).encode()))
    (folder / "sources").write_text("".join(f"{i}\n" for i in range(70)))
    (folder / "few").write_text("1\n2\n3\n")
    (folder / "pairs").write_text("".join(f"{i},{i + 5}\n" for i in range(70)))
    (folder / "new.txt").write_text("".join(f"{i} {700 + i % 90}\n" for i in range(300)))
    for words in (
        "convert @/a.txt -o @/g.ocg --order degree",
        "convert @/b.txt.gz -o @/h.ocg",
        "convert @/b.txt.gz -o @/d.ocg --directed",
        "convert @/a.txt -o @/z.ocg --codec zstd",
        "convert @/a.txt -o @/n.ocg --ids names",
        "export @/h.ocg -o @/c.parquet",
        "export @/g.ocg -o @/d.npz",
        "export @/g.ocg -o @/f.metis.gz",
        "shard @/g.ocg -o @/parts --parts 2",
    ):
        prepare(folder, words)
    import zipfile

    with zipfile.ZipFile(folder / "e.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("edges.txt", "".join(lines))


def split(words: str, folder: Path) -> list[str]:
    """Return the words of a command for a folder."""
    return words.replace("@", str(folder)).split()


def prepare(folder: Path, words: str, broken: Fault | None = None) -> None:
    """Run a command to a good end, unless a fault breaks it."""
    with failing(folder, broken):
        done = call(*split(words, folder))
    assert done.returncode == (broken is not None), (words, done.stderr)
