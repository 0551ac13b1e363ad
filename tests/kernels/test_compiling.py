"""Kernels that are compiled together, ahead, and not without a word."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from oocbfs import doctor
from oocbfs.kernels import cache
from tests.support import children

ROOT = Path(__file__).parents[2]
KERNELS = Path(cache.__file__).parent


def run_with_cache(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with a cache of its own."""
    return children.run(
        [sys.executable, *arguments],
        env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )


def test_what_is_compiled_together_comes_from_two_processes(tmp_path: Path) -> None:
    """The first kernel is found in the cache, where the other process put it."""
    code = (
        "from oocbfs.kernels.convert import gaps;"
        "from oocbfs.kernels.compiling import prepare_together;"
        "kernels = gaps.pack_keys, gaps.unpack_keys;"
        "prepare_together(*kernels);"
        "print(*(len(kernel.stats.cache_hits) for kernel in kernels))"
    )
    assert run_with_cache(tmp_path, "-c", code).stdout.split() == ["1", "0"]
    assert run_with_cache(tmp_path, "-c", code).stdout.split() == ["1", "1"]


def test_a_helper_that_fails_costs_only_time(tmp_path: Path) -> None:
    code = (
        "from oocbfs.kernels import compiling; from oocbfs.kernels.convert import gaps;"
        "compiling._PROGRAM = 'raise SystemExit(1)';"
        "compiling.prepare_together(gaps.pack_keys, gaps.unpack_keys);"
        "print(len(gaps.pack_keys.overloads), len(gaps.pack_keys.stats.cache_hits))"
    )
    assert run_with_cache(tmp_path, "-c", code).stdout.split() == ["1", "0"]


def test_a_kernel_needs_no_other_to_be_compiled_before_it(tmp_path: Path) -> None:
    """A function without options of its own takes those of the first that calls it."""
    code = (
        "from oocbfs.kernels.ordered.search import meet; meet.prepare(); print(len(meet.overloads))"
    )
    assert run_with_cache(tmp_path, "-c", code).stdout.split() == ["1"]


def test_everything_is_compiled_ahead() -> None:
    """Every module of kernels with signatures is on the list; the others are loaded by a verb."""
    listed = {
        str(part)
        for targets in doctor._COMPILED
        for target in targets
        for part in (target[0], *target[2:])
    }
    for path in sorted(KERNELS.rglob("*.py")):
        name = ".".join(("oocbfs.kernels", *path.relative_to(KERNELS).with_suffix("").parts))
        if "@compiled(" not in path.read_text():
            continue
        kernels = [k for k in vars(import_module(name)).values() if hasattr(k, "wanted_signatures")]
        own = [kernel for kernel in kernels if kernel.py_func.__module__ == name]
        if all(kernel.wanted_signatures for kernel in own):
            assert name in listed, name
        else:
            # Where a module of its own loads what it compiles.
            by_disk = name.replace(".kernels.disk.", ".disk.")
            by_shards = name.replace(".kernels.shards.disk", ".cluster.shards.disk")
            assert {name, by_disk, by_shards} & listed, name
    for targets in doctor._COMPILED:
        for module, function, *_ in targets:
            assert callable(getattr(import_module(str(module)), str(function)))


@pytest.mark.long
def test_compiling_is_announced_once(tmp_path: Path) -> None:
    """The first command of all says how to compile ahead; later ones only that they compile."""
    cached = tmp_path / "cache"
    edges, graph = tmp_path / "g.npy", ROOT / "tests" / "golden" / "worked.ocg"
    generate = ("-m", "oocbfs", "generate", "grid2d", "--rows", "3", "--columns", "3")
    first = run_with_cache(cached, *generate, "-o", str(edges))
    assert [line for line in first.stderr.splitlines() if line.startswith("compiling")] == [
        "compiling kernels, once for each command; 'oocbfs doctor --compile' does it for all …"
    ]
    again = run_with_cache(cached, *generate, "--force", "-o", str(edges))
    assert "compiling kernels" not in again.stderr
    other = run_with_cache(cached, "-m", "oocbfs", "verify", str(graph))
    assert [line for line in other.stderr.splitlines() if line.startswith("compiling")] == [
        "compiling kernels for this command, once …"
    ]
    again = run_with_cache(cached, "-m", "oocbfs", "verify", str(graph))
    assert "compiling" not in again.stderr


def test_commands_of_one_process_share_a_listener(tmp_path: Path) -> None:
    (tmp_path / "edges.txt").write_text("1 2\n")
    program = (
        "from oocbfs.cli import main\n"
        "from numba.core import event\n"
        "for _ in range(3):\n"
        "    main(['convert', 'edges.txt', '-o', 'g.ocg', '--force'])\n"
        "print('listeners', len(event._registered['numba:compile']))\n"
    )
    done = children.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "listeners 1"


def test_what_is_compiled_apart_takes_no_memory_here(tmp_path: Path) -> None:
    """Nothing is compiled in this process, and what another one compiled is missing no more."""
    code = (
        "from oocbfs.kernels import compiling; from oocbfs.kernels.convert import gaps;"
        "codes = [compiling.code_of(gaps.pack_keys)];"
        "before = len(compiling.missing(codes));"
        "compiling.compile_apart(codes);"
        "print(before, len(compiling.missing(codes)), len(gaps.pack_keys.overloads));"
        "print(len(gaps.pack_keys.prepare().stats.cache_hits))"
    )
    assert run_with_cache(tmp_path, "-c", code).stdout.split() == ["1", "0", "0", "1"]
