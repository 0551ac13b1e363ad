"""Compiled code is loaded from folders that nobody else can write to, and from no others."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from oocbfs.kernels import cache_folder
from tests.support import children
from tests.support.packages import ROOT

OTHER = 54321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


def in_tmp(folder: Path) -> None:
    folder.parent.chmod(0o1777)


def in_open_folder(folder: Path) -> None:
    folder.parent.chmod(0o777)


def open_to_all(folder: Path) -> None:
    folder.chmod(0o777)


def guarded_but_open(folder: Path) -> None:
    folder.chmod(0o1777)


def open_to_a_group(folder: Path) -> None:
    shared = next(group for group in (*os.getgroups(), 12345) if group != os.getgid())
    try:
        os.chown(folder, -1, shared)
    except PermissionError:
        pytest.skip("this user is in no second group")
    folder.chmod(0o775)


def open_file(folder: Path) -> None:
    folder.chmod(0o755)
    (folder / "x.nbi").write_bytes(b"")
    (folder / "x.nbi").chmod(0o666)


def open_file_that_nobody_reaches(folder: Path) -> None:
    open_file(folder)
    folder.chmod(0o700)


def given_away(folder: Path) -> None:
    os.chown(folder, OTHER, -1)


def below_a_folder_of_another(folder: Path) -> None:
    os.chown(folder.parent, OTHER, -1)


def file_of_another(folder: Path) -> None:
    (folder / "x.nbi").write_bytes(b"")
    os.chown(folder / "x.nbi", OTHER, -1)


def own_link(folder: Path) -> None:
    folder.rename(folder.with_name("elsewhere"))
    folder.symlink_to("elsewhere")


def link_of_another(folder: Path) -> None:
    own_link(folder)
    os.lchown(folder, OTHER, -1)


def link_through_an_open_folder(folder: Path) -> None:
    """Everybody could replace the second of two links."""
    own_link(folder)
    middle = folder.parent / "open" / "link"
    middle.parent.mkdir()
    middle.symlink_to(folder.with_name("elsewhere"))
    folder.unlink()
    folder.symlink_to(middle)
    middle.parent.chmod(0o777)


def link_to_itself(folder: Path) -> None:
    folder.rmdir()
    folder.symlink_to(folder.name)


Case = tuple[Callable[[Path], None], str | None]
CASES: list[Case] = [
    (lambda _: None, None),
    (in_tmp, None),
    (own_link, None),
    (open_file_that_nobody_reaches, None),
    (in_open_folder, "can be written by everybody"),
    (open_to_all, "can be written by everybody"),
    (guarded_but_open, "can be written by everybody"),
    (open_to_a_group, "can be written by its group"),
    (open_file, "x.nbi can be written by everybody"),
    (link_through_an_open_folder, "open can be written by everybody"),
    (link_to_itself, "cannot be examined"),
]
OF_ANOTHER = (given_away, below_a_folder_of_another, file_of_another, link_of_another)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        *(pytest.param(*case, id=case[0].__name__.strip("<>")) for case in CASES),
        *(
            pytest.param(change, "belongs to another user", marks=needs_root, id=change.__name__)
            for change in OF_ANOTHER
        ),
    ],
)
def test_folders(change: Callable[[Path], None], expected: str | None, tmp_path: Path) -> None:
    folder = tmp_path / "parent" / "folder"
    folder.mkdir(parents=True)
    folder.parent.chmod(0o755)
    change(folder)
    found = cache_folder.why_not_own(folder)
    assert (found is None) is (expected is None), found
    assert expected is None or expected in str(found)


def test_what_is_made_is_own_whatever_the_umask(tmp_path: Path) -> None:
    for umask in (0o000, 0o002, 0o077):
        before = os.umask(umask)
        try:
            made = tmp_path / str(umask)
            assert cache_folder.is_writable(made)
            (made / "x.nbi").write_bytes(b"")
        finally:
            os.umask(before)
        assert cache_folder.why_not_own(made) is None


def test_a_group_of_ones_own_may_write(tmp_path: Path) -> None:
    """As on systems where each user has one, and a umask of 002."""
    os.chown(tmp_path, -1, os.getgid())
    tmp_path.chmod(0o775)
    is_private = cache_folder._is_own_group(os.getgid())
    if os.geteuid() == 0:
        assert is_private
    assert (cache_folder.why_not_own(tmp_path) is None) is is_private


PROGRAM = """
import logging
logging.basicConfig(level="WARNING", format="%(message)s")
from oocbfs.kernels.cache import compiled
from numba import types
twice = compiled(types.int64(types.int64))(lambda x: 2 * x)
print(twice(21), len(twice.stats.cache_hits))
"""


@pytest.mark.parametrize("variable", ["NUMBA_CACHE_DIR", "XDG_CACHE_HOME", None])
def test_what_others_may_have_put_there_is_not_run(variable: str | None, tmp_path: Path) -> None:
    """What is unpickled here would make a file: nobody opens it, and one line says why."""
    module = tmp_path / "sources" / "small.py"
    module.parent.mkdir()
    module.write_text(PROGRAM)
    beside = module.parent / "__pycache__"
    home = tmp_path / "home"
    named = tmp_path / "named"
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(home)}
    for name in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        environment.pop(name, None)
    if variable == "XDG_CACHE_HOME":
        beside.touch()  # no folder can be made there
        environment["TMPDIR"] = str(tmp_path)
    if variable:
        environment[variable] = str(named)

    def run() -> tuple[str, list[str]]:
        command = [sys.executable, str(module)]
        done = children.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.strip(), done.stderr.splitlines()

    assert run() == ("42 0", [])
    (kept,) = {path.parent for path in tmp_path.rglob("*.nbi")}
    assert kept.is_relative_to(named if variable else beside)
    kept.chmod(0o777)
    trap = b"cos\nmkdir\n(V" + os.fsencode(tmp_path / "run") + b"\ntR."
    for path in kept.glob("*.nb?"):
        path.write_bytes(trap)
    said, (line,) = run()
    assert said == "42 0"
    assert f"{kept} can be written by everybody: keeping compiled kernels in" in line
    assert not (tmp_path / "run").exists()
    assert all(path.read_bytes() == trap for path in kept.glob("*.nb?"))
