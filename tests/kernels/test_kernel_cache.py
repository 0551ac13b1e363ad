"""Compiled kernels that are kept on disk: never out of date, and wherever the user can write."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest
from numba import types

import oocbfs
from oocbfs.gpu import cuda_device
from oocbfs.kernels import cache, cache_folder
from oocbfs.kernels.array_types import READ_U8
from tests.support import children

ROOT = Path(__file__).parents[2]
KERNELS = Path(cache.__file__).parent
COMPILED = sorted(path for path in KERNELS.rglob("*.py") if "@compiled(" in path.read_text())


def imports_by_syntax(path: Path) -> set[Path]:
    """Return a module's file and all modules of kernels that it imports, as they are parsed."""
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in found or not file.exists():
            continue
        found.add(file)
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [str(node.module), *(f"{node.module}.{a.name}" for a in node.names)]
            for name in names:
                if name.split(".")[:2] == ["oocbfs", "kernels"]:
                    base = KERNELS.joinpath(*name.split(".")[2:])
                    waiting += [base.with_suffix(".py"), base / "__init__.py"]
    return found


@pytest.mark.parametrize("path", COMPILED, ids=lambda path: str(path.relative_to(KERNELS)))
def test_key_covers_every_file_that_a_kernel_is_compiled_from(path: Path) -> None:
    assert cache.imported_files(path) == imports_by_syntax(path)


def test_every_kernel_that_is_kept_is_kept_by_this_key() -> None:
    assert len(COMPILED) >= 19
    for path in KERNELS.rglob("*.py"):
        assert "cache=True" not in path.read_text(), path.name


class Checkout:
    """A copy of the program that cannot keep kernels beside it, run by a user without a home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("oocbfs", "kernels", "formats", "tools"):
            skipped = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, folder / name, symlinks=True, ignore=skipped)
        for room in {path.parent.relative_to(KERNELS) for path in COMPILED}:
            (folder / "kernels" / room / "__pycache__").touch()
        self.temporary = folder / "temporary"
        self.temporary.mkdir()

    def run(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(self.folder),
            "HOME": os.devnull,  # not even root can make a folder there
            "TMPDIR": str(self.temporary),
        }
        command = [sys.executable, "-m", "oocbfs", *arguments]
        return children.run(
            command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False
        )


@pytest.mark.long
def test_changed_constants_reach_kernels_that_a_user_without_a_home_kept(tmp_path: Path) -> None:
    checkout = Checkout(tmp_path)
    graph = ROOT / "tests" / "golden" / "worked.ocg"
    first = checkout.run("verify", graph)
    assert first.returncode == 0, first.stderr
    kept = checkout.temporary / f"oocbfs-{os.getuid()}"
    told = [line for line in first.stderr.splitlines() if "no writable home" in line]
    assert len(told) == 1
    assert str(kept) in told[0]
    assert kept.stat().st_mode & 0o777 == 0o700
    names = {path.name for path in kept.rglob("*.nbc")}
    assert any(name.startswith("checking.check_index") for name in names)
    before = {path: path.stat().st_mtime_ns for path in kept.rglob("*.nbc")}
    assert checkout.run("verify", graph).returncode == 0
    assert before == {path: path.stat().st_mtime_ns for path in kept.rglob("*.nbc")}
    # The file of the checks stays as it is; what it takes from another one does not.
    constants = checkout.folder / "kernels" / "constants.py"
    text = constants.read_text()
    assert "SEGMENT_BYTES = 1024\n" in text
    constants.write_text(text.replace("SEGMENT_BYTES = 1024\n", "SEGMENT_BYTES = 1\n"))
    changed = checkout.run("verify", graph)
    assert changed.returncode == 1
    assert "row" in changed.stderr


def test_loading_imports_nothing_that_compiles() -> None:
    """Else a second command would take twice as long."""
    graph = str(ROOT / "tests" / "golden" / "worked.ocg")
    code = (
        f"import sys, oocbfs; oocbfs.open({graph!r}).bfs(oocbfs.LARGEST_COMPONENT, parents=True); "
        "print(sorted({'numba.np.arraymath', 'scipy.linalg'} & set(sys.modules)))"
    )
    oocbfs.open(graph).bfs(
        oocbfs.LARGEST_COMPONENT, parents=True
    )  # compiles what is not compiled yet
    done = children.run_python(code)
    assert done.stdout.strip() == "[]"


def test_damaged_cache_is_compiled_anew(tmp_path: Path) -> None:
    script = (
        "from oocbfs.kernels.cache import compiled\n"
        "from numba import types\n"
        "twice = compiled(types.int64(types.int64))(lambda x: 2 * x)\n"
        "print(twice(21), twice.stats.cache_hits)\n"
    )
    module = tmp_path / "small.py"
    module.write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(Path(oocbfs.__file__).parents[1])}
    environment.pop("NUMBA_CACHE_DIR", None)

    def run() -> str:
        done = children.run(
            [sys.executable, module], env=environment, capture_output=True, check=False
        )
        return done.stdout.decode().strip() or done.stderr.decode()

    assert "42" in run()
    kept = sorted((tmp_path / "__pycache__").glob("*.nb?"))
    assert len(kept) == 2
    for path in kept:
        path.write_bytes(path.read_bytes()[:-3])
        assert run().startswith("42"), path.name
    for path in kept:
        path.unlink()
        path.mkdir()  # cannot be read nor replaced
    assert run().startswith("42")


def test_folder_of_somebody_else_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    shared = tmp_path / f"oocbfs-{os.getuid()}"
    shared.mkdir()
    shared.chmod(0o777)
    chosen = cache_folder._temporary_folder.__wrapped__()
    assert chosen != shared
    assert chosen.parent == tmp_path
    assert chosen.stat().st_mode & 0o777 == 0o700


def test_user_without_a_name_has_no_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", refuse)
    monkeypatch.setattr(cache_folder, "_temporary_folder", lambda: tmp_path)
    assert cache_folder.cache_folder("x") == tmp_path / "x"


@pytest.mark.parametrize(("home", "expected"), [("real", None), (os.devnull, "cupy")])
def test_cupy_keeps_its_kernels_where_it_can_write(
    home: str, expected: str | None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / home))
    monkeypatch.setattr(cache_folder, "_temporary_folder", lambda: tmp_path)
    for name in ("XDG_CACHE_HOME", "CUPY_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    cuda_device._find_cache()
    chosen = os.environ.get("CUPY_CACHE_DIR")
    monkeypatch.delenv("CUPY_CACHE_DIR", raising=False)
    assert chosen == (expected and str(tmp_path / expected))


def test_arrays_that_can_be_written_to_are_taken_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """numba looks for a way at the first call, and refuses one of two threads that make it."""
    kind = types.Array(types.uint16, 5, "C", readonly=True)

    @cache.compiled(types.int64(kind))
    def size(array):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return array.size

    size.prepare()
    monkeypatch.setattr(size, "_search_new_conversions", lambda *_: False, raising=False)
    assert size(np.zeros((1, 2, 3, 4, 5), np.uint16)) == 120


def test_a_call_that_began_before_the_code_was_there_finds_it() -> None:
    """Another thread may end compiling while numba looks at arguments whose types are new to it."""
    length = 37  # of a tuple that nobody has: so numba asks Python for its type

    @cache.compiled(types.int64(READ_U8, types.UniTuple(types.int64, length)), _nrt=False)
    def first(values, more):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return values[0] + more[0]

    typeof = first.typeof_pyval

    def slow_typeof(value: object) -> object:
        thread = threading.Thread(target=first.prepare)
        thread.start()
        thread.join()
        return typeof(value)

    first.typeof_pyval = slow_typeof
    assert first(np.full(1, 2, np.uint8), tuple(range(5, 5 + length))) == 7
