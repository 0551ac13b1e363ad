"""Files that appear whole or not at all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from oocbfs.errors import OutputError
from oocbfs.formats.atomic import atomic_output

ROOT = Path(__file__).parents[1]


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_files_that_appear_meanwhile_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with pytest.raises(OutputError, match="already exists"), atomic_output(path):
        path.write_bytes(b"other")
    assert path.read_bytes() == b"other"
    assert names(tmp_path) == ["a"]


def test_the_name_appears_last_and_links_are_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    with atomic_output(tmp_path / "link") as file:
        assert names(tmp_path) == sorted([f".real.{os.getpid()}.tmp", "link"])
        file.write(b"abc")
        file.seek(1)
        assert file.read() == b"bc"
    assert (tmp_path / "real").read_bytes() == b"abc"
    assert (tmp_path / "link").is_symlink()
    assert names(tmp_path) == ["link", "real"]


def test_one_process_writes_a_file_once_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with atomic_output(path) as file:
        with pytest.raises(OutputError, match="already being written"), atomic_output(path):
            raise AssertionError("unreachable")
        file.write(b"first")
    assert path.read_bytes() == b"first"


def test_temporaries_of_dead_processes_are_removed(tmp_path: Path) -> None:
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    stale = [f".a.{dead.pid}.tmp", f".a.{os.getpid()}.tmp"]
    kept = [f".a.{os.getppid()}.tmp", f".b.{dead.pid}.tmp", ".a.tmp", ".a.x1.tmp"]
    for name in stale + kept:
        (tmp_path / name).touch()
    with atomic_output(tmp_path / "a"):
        pass
    assert names(tmp_path) == sorted(["a", *kept])


def test_a_killed_writer_is_cleaned_up_by_the_next(tmp_path: Path) -> None:
    program = """
import os, signal
from oocbfs.formats.atomic import atomic_output
with atomic_output("a") as file:
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, cwd=tmp_path, env=environment
    )
    assert done.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 1
    with atomic_output(tmp_path / "a") as file:
        file.write(b"x")
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize(
    ("name", "message"), [("missing/a.txt", "create it first"), (".", "is a folder")]
)
def test_impossible_places(tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(OutputError, match=message), atomic_output(tmp_path / name, force=True):
        raise AssertionError("unreachable")
