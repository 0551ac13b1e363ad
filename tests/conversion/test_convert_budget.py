"""Conversions in control groups of exactly their budget: none is killed, small ones are refused.

``scripts/test --all`` tries 60 combinations of input and budget instead of 6, and
``OOCBFS_CONVERT_RUNS`` as many as it says.
"""

import bz2
import gzip
import io
import json
import lzma
import os
import random
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from numpy.typing import NDArray
from pyarrow import feather, ipc

import oocbfs
from oocbfs.generate import generators
from oocbfs.graph.verifier import verify
from oocbfs.memory import parse_size
from tests.support import children
from tests.support.exhaustive import ALL
from tests.support.memory_limit import memory_limit, run_limited

NUM_RUNS = int(os.environ.get("OOCBFS_CONVERT_RUNS", "60" if ALL else "6"))
Pairs = NDArray[np.uint64]


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "oocbfs", *map(str, arguments)]


def least_bytes(*options: str) -> int:
    """Return about what any conversion needs, the program included."""
    refused = children.run(
        command("convert", os.devnull, "-o", "x.ocg", "--memory", "1M", *options),
        capture_output=True,
        text=True,
        check=False,
    )
    needed = re.search(r"needs at least ([\d.]+ [MG]B)", refused.stderr)
    assert needed, refused
    return parse_size(needed[1])


def taken(stream: Any) -> Pairs:
    batches = [np.stack((b.sources, b.targets), axis=1) for b in stream.batches()]
    return np.concatenate(batches)


def star(rng: np.random.Generator, size: int) -> Pairs:
    return np.stack((np.full(size, 7), rng.permutation(size)), axis=1).astype(np.uint64)


# Graphs of about so many edges.
EDGES: dict[str, Callable[[np.random.Generator, int], Pairs]] = {
    "kron": lambda rng, size: taken(generators.kron(max(10, size.bit_length() - 5), 16))[:size],
    "uniform": lambda rng, size: rng.integers(0, size // 4, (size, 2), dtype=np.uint64),
    "sparse": lambda rng, size: rng.integers(0, 4 * size, (size // 2, 2), dtype=np.uint64) // 3,
    "grid": lambda rng, size: taken(
        generators.grid2d(int((size / 2) ** 0.5), int((size / 2) ** 0.5))
    ),
    "star": star,
    "equal": lambda rng, size: np.full((size, 2), (3, 5), np.uint64),
    "gaps": lambda rng, size: rng.integers(
        0, 2**64 - 1, (size // 8, 2), dtype=np.uint64, endpoint=True
    ),
    "few names": lambda rng, size: (
        np.uint64(2**63) + rng.integers(0, 1 << 12, (size, 2), dtype=np.uint64) ** np.uint64(5)
    ),
}


def as_text(edges: Pairs, separator: bytes = b" ") -> bytes:
    return b"".join(b"%d%b%d\n" % (u, separator, v) for u, v in edges.tolist())


def as_npy(array: NDArray[Any]) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def as_npz(edges: Pairs) -> bytes:
    out = io.BytesIO()
    np.savez_compressed(out, source=edges[:, 0], target=edges[:, 1])
    return out.getvalue()


def as_parquet(edges: Pairs) -> bytes:
    out = io.BytesIO()
    columns = {"src": edges[:, 0], "dst": edges[:, 1]}
    pq.write_table(pa.table(columns), out, row_group_size=max(1, len(edges)))
    return out.getvalue()


def as_feather(edges: Pairs) -> bytes:
    out = io.BytesIO()
    columns = {"src": edges[:, 0], "dst": edges[:, 1]}
    feather.write_feather(pa.table(columns), out)
    return out.getvalue()


def as_zip(edges: Pairs) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for part in range(5):
            archive.writestr(f"{part}.el", as_text(edges[part::5]))
    return out.getvalue()


def as_rows(edges: Pairs) -> bytes:
    edges = edges[np.argsort(edges[:, 0], kind="stable")]
    names, starts = np.unique(edges[:, 0], return_index=True)
    rows = np.split(edges[:, 1], starts[1:])
    lines = (
        f"{u}: {' '.join(map(str, row.tolist()))}\n" for u, row in zip(names, rows, strict=True)
    )
    return "".join(lines).encode()


# The suffix only says to people what it is.
FORMS: dict[str, Callable[[Pairs], bytes]] = {
    "el": as_text,
    "csv": lambda edges: as_text(edges, b","),
    "npy": as_npy,
    "columns.npy": lambda edges: as_npy(np.ascontiguousarray(edges.T)),
    "npz": as_npz,
    "parquet": as_parquet,
    "feather": as_feather,
    "zip": as_zip,
    "rows": as_rows,
    "gz": lambda edges: gzip.compress(as_text(edges), 1),
    "bz2": lambda edges: bz2.compress(as_text(edges[: 1 << 17])),
    "xz": lambda edges: lzma.compress(as_text(edges), preset=0),
    "zst": lambda edges: zstandard.ZstdCompressor(level=1).compress(as_text(edges)),
}


def check_run(done: subprocess.CompletedProcess[str], output: Path) -> bool:
    """Return whether a run was done; it may be refused, in one line and with nothing left."""
    if done.returncode == 1:
        line = done.stderr.splitlines()[-1]
        assert re.search(r"raise --memory|allow more with --memory", line), done
        assert not output.exists()
    else:
        assert done.returncode == 0, done
    assert not list(output.parent.glob(".*.tmp"))
    return done.returncode == 0


@pytest.fixture(scope="module")
def least() -> int:
    return least_bytes()


@pytest.mark.parametrize("seed", range(NUM_RUNS))
def test_never_killed(tmp_path: Path, least: int, seed: int) -> None:
    rng = random.Random(seed)
    name, form = rng.choice(sorted(EDGES)), rng.choice(sorted(FORMS))
    size = int(2 ** rng.uniform(17, 21.5 if NUM_RUNS > 10 else 20))
    edges = EDGES[name](np.random.default_rng(seed), size)
    path, output = tmp_path / f"input.{form}", tmp_path / "g.ocg"
    path.write_bytes(FORMS[form](edges))
    del edges
    arguments: list[object] = ["--threads", rng.choice([1, 2, 2, 3, 8])]
    if rng.random() < 0.3:
        arguments.append("--directed")
    if rng.random() < 0.3:
        arguments += ["--order", rng.choice(["natural", "degree", "dbg", "local", "communities"])]
    if rng.random() < 0.2:
        arguments += ["--ids", "compact"]
    if rng.random() < 0.2:
        arguments += ["--codec", rng.choice(["raw", "zstd"])]
    budget = rng.randrange(least, least + (160 << 20))
    run = command("convert", path, "-o", output, *arguments, "--memory", budget)
    print(name, form, path.stat().st_size, *run[3:])
    done = run_limited(run, budget)
    if check_run(done, output):
        print("done")
        verify(output)
    else:
        print("refused:", done.stderr.splitlines()[-1])


def small_window(path: Path) -> None:
    path.write_bytes(zstandard.ZstdCompressor().compress(b"1 2\n" * 1000))


def long_line(path: Path) -> None:
    path.write_bytes(b"1 2\n3 4 " + b"x" * (64 << 20) + b"\n5 6\n")


def long_comment(path: Path) -> None:
    path.write_bytes(b"1 2\n#" + b"x" * (64 << 20) + b"\n5 6\n")


def long_row(path: Path) -> None:
    path.write_bytes(b"1 2\n1: " + b"2 " * (32 << 20) + b"\n5: 6\n")


def many_comments(path: Path) -> None:
    path.write_bytes(b"#\n" * (1 << 20) + b"1 2\n")


def zstd_window(path: Path) -> None:
    parameters = zstandard.ZstdCompressionParameters(window_log=28, enable_ldm=True)
    with path.open("wb") as file:
        writer = zstandard.ZstdCompressor(compression_params=parameters).stream_writer(file)
        for _ in range(4):
            writer.write(b"12 13\n" * 180_000)
        writer.flush(zstandard.FLUSH_FRAME)


def xz_window(path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 28}]
    with lzma.open(path, "wb", filters=filters) as file:
        for _ in range(4):
            file.write(b"12 13\n" * 180_000)


def zip_window(path: Path) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("a.el", b"12 13\n" * 1000)
    data = bytearray(path.read_bytes())
    # After the header and the name: version, size of the properties, the first of them.
    begin = 30 + len("a.el") + 5
    data[begin : begin + 4] = (1 << 30).to_bytes(4, "little")
    path.write_bytes(data)


def zip_list(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        for part in range(15_000):
            archive.writestr(f"{part}", b"")


def npy_header(path: Path) -> None:
    path.write_bytes(b"\x93NUMPY\x02\x00" + (64 << 20).to_bytes(4, "little") + b" " * (64 << 20))


HOSTILE: dict[Callable[[Path], None], str] = {
    long_line: r"input:2: a line is longer than .* --memory",
    long_comment: r"input:2: a line is longer than .* --memory",
    long_row: r"input:2: a line is longer than .* --memory",
    zstd_window: r"zstd data takes a window.* --memory",
    xz_window: r"xz data takes a window.* --memory",
    zip_window: r"a window of 1,024 MB.* --memory",
    zip_list: r"the list of files .* --memory",
    npy_header: r"not a numpy array",
    many_comments: "",
    small_window: "",
}


@pytest.mark.parametrize("make", HOSTILE, ids=lambda make: make.__name__)
def test_hostile_inputs_are_refused_or_bounded(
    tmp_path: Path, least: int, make: Callable[[Path], None]
) -> None:
    make(tmp_path / "input")
    budget = least + (30 << 20)
    done = run_limited(
        command("convert", tmp_path / "input", "-o", tmp_path / "g.ocg", "--memory", budget), budget
    )
    if HOSTILE[make]:
        assert done.returncode == 1, done
        assert re.search(HOSTILE[make], done.stderr.splitlines()[-1]), done
    else:
        assert done.returncode == 0, done


@pytest.mark.parametrize("form", ["row group", "record batch", "pipe"])
def test_parts_of_tables_larger_than_memory(tmp_path: Path, least: int, form: str) -> None:
    """One row group or record batch of 64 MB, and 60 MB for all but the program."""
    ends = np.random.default_rng(1).integers(0, 1 << 12, (2, 1 << 22))
    edges = pa.table({"src": ends[0], "dst": ends[1]})
    path, output = tmp_path / "table", tmp_path / "g.ocg"
    if form == "record batch":
        with ipc.new_file(str(path), edges.schema) as writer:
            writer.write_table(edges)
    else:
        plain = {"use_dictionary": False, "compression": "none"}
        pq.write_table(edges, path, row_group_size=1 << 22, **plain)
    assert path.stat().st_size > 64 << 20
    # A program that also loads pyarrow takes 40 MB more.
    budget = least + (100 << 20)
    given = "-" if form == "pipe" else path
    run = command("convert", given, "-o", output, "--memory", budget, "--threads", 1)
    with memory_limit(budget) as prefix, path.open("rb") as file:
        done = children.run(
            [*prefix, *run], stdin=file, capture_output=True, text=True, check=False
        )
    assert check_run(done, output), done


def test_a_window_that_fits_is_unpacked(tmp_path: Path) -> None:
    zstd_window(tmp_path / "input")
    report = oocbfs.convert(tmp_path / "input", tmp_path / "g.ocg", memory="3G")
    assert report.edges_read == 4 * 180_000


@pytest.mark.parametrize("model", ["kron --scale 18", "grid2d --rows 700 --columns 700"])
def test_generated_graphs(tmp_path: Path, least: int, model: str) -> None:
    budget = least + (40 << 20)
    arguments = [*model.split(), "-o", tmp_path / "g.ocg", "--memory", budget]
    assert check_run(run_limited(command("generate", *arguments), budget), tmp_path / "g.ocg")


def test_power_laws_that_cannot_be_solved(tmp_path: Path, least: int) -> None:
    law = ["--vertices", 20_000_000, "--mean-degree", 4, "--max-degree", 16_000_000]
    budget = least + (20 << 20)
    run = command("generate", "powerlaw", *law, "-o", tmp_path / "g.ocg", "--memory", budget)
    done = run_limited(run, budget)
    assert done.returncode == 1, done
    assert re.search(r"a power law .* raise --memory", done.stderr.splitlines()[-1])


@pytest.mark.long
def test_names_within_a_budget(tmp_path: Path) -> None:
    """Names that fill many tables are converted in a group that has no room for them all."""
    least = least_bytes("--ids", "names")
    rng = random.Random(6)
    words = [f"{rng.choice('aäz')}{rng.randrange(10**12)}-{i}" for i in range(500_000)]
    text = "".join(f"{rng.choice(words)},{rng.choice(words)}\n" for _ in range(400_000))
    (tmp_path / "names.csv").write_text(text)
    budget = least + (8 << 20)
    convert = ("convert", tmp_path / "names.csv", "--ids", "names", "--threads", 1)
    done = run_limited(
        command(*convert, "-o", tmp_path / "small.ocg", "--memory", budget, "--json"), budget
    )
    assert done.returncode == 0, done
    report = json.loads(done.stdout)
    assert report["spilled_bytes"] > len(text) / 2
    oocbfs.convert(tmp_path / "names.csv", tmp_path / "large.ocg", ids="names")
    assert (tmp_path / "small.ocg").read_bytes() == (tmp_path / "large.ocg").read_bytes()
    verify(tmp_path / "small.ocg")


@pytest.mark.parametrize("order", ["auto", "keep"])
def test_mapped_pages_of_a_graph_that_grows_count(tmp_path: Path, least: int, order: str) -> None:
    """Looking for edges here and there, and for heads everywhere, must not map all of the file."""
    old, more, new = tmp_path / "old.ocg", tmp_path / "more.npy", tmp_path / "new.ocg"
    oocbfs.convert(generators.kron(20), old, codec="raw")
    np.save(more, np.random.default_rng(1).integers(0, 1 << 20, (160_000, 2), np.uint64))
    # The graph does not fit beside the tables of its vertices.
    budget = least + old.stat().st_size + (8 << 20)
    done = children.run(
        command("convert", old, more, "-o", new, "--order", order, "--memory", budget, "--json"),
        capture_output=True,
        text=True,
    )
    assert json.loads(done.stdout)["peak_bytes"] <= budget
