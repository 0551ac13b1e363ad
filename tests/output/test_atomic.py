"""Files that appear whole or not at all."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from oocbfs.errors import OutputError
from oocbfs.formats.output.atomic import atomic_output, check_outputs
from tests.support import children

ROOT = Path(__file__).parents[2]


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
        assert len(names(tmp_path)) == 2
        assert re.fullmatch(r"\.real\.[0-9a-f]{16}\.tmp", names(tmp_path)[0])
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


def test_only_leftovers_are_removed(tmp_path: Path) -> None:
    """A file that nobody has locked is one; one that is being written is not, no matter by whom."""
    digits = "0123456789abcdef"
    stale = [f".a.{digits}.tmp"]
    kept = [f".b.{digits}.tmp", ".a.tmp", ".a.123.tmp", f".a.{digits.upper()}.tmp"]
    for name in stale + kept:
        (tmp_path / name).touch()
    with (tmp_path / f".a.{digits[::-1]}.tmp").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with atomic_output(tmp_path / "a"):
            pass
        assert names(tmp_path) == sorted(["a", *kept, f".a.{digits[::-1]}.tmp"])
    with atomic_output(tmp_path / "a", force=True):
        pass
    assert names(tmp_path) == sorted(["a", *kept])


SLOW_WRITER = """
import os, sys
from oocbfs.formats.output.atomic import atomic_output
with atomic_output("a", force=True) as file:
    file.write(b"x" * 1000)
    file.flush()
    print(os.getpid(), flush=True)
    sys.stdin.readline()
    file.write(b"x" * 1000)
"""


def test_writers_with_the_same_process_number(tmp_path: Path) -> None:
    """In two containers, every first process is number 1."""
    apart = ["unshare", "--pid", "--fork"]
    if shutil.which("unshare") is None or children.run([*apart, "true"], check=False).returncode:
        pytest.skip("no namespaces of processes can be made here")
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    writers = []
    for _ in range(2):
        writers.append(
            subprocess.Popen(
                [*apart, sys.executable, "-c", SLOW_WRITER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                cwd=tmp_path,
                env=environment,
            )
        )
        assert writers[-1].stdout is not None
        assert writers[-1].stdout.readline() == b"1\n"
    assert len(names(tmp_path)) == 2
    for writer in writers:
        children.finish(writer, input=b"\n")
        assert writer.returncode == 0
        assert (tmp_path / "a").read_bytes() == b"x" * 2000
    assert names(tmp_path) == ["a"]


def test_a_killed_writer_is_cleaned_up_by_the_next(tmp_path: Path) -> None:
    program = """
import os, signal
from oocbfs.formats.output.atomic import atomic_output, check_outputs
with atomic_output("a") as file:
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = children.run([sys.executable, "-c", program], check=False, cwd=tmp_path, env=environment)
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


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def write(path: Path) -> None:
    with atomic_output(path, force=True) as file:
        file.write(b"new")


def test_a_replaced_file_keeps_its_mode_from_the_first_byte(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"old")
    path.chmod(0o600)
    with atomic_output(path, force=True) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
        file.write(b"new")
    assert (mode(path), path.read_bytes()) == (0o600, b"new")


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_new_files_follow_the_umask(tmp_path: Path, mask: int) -> None:
    previous = os.umask(mask)
    try:
        write(tmp_path / "a")
    finally:
        os.umask(previous)
    assert mode(tmp_path / "a") == 0o666 & ~mask


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_replaced_file_keeps_its_owner(tmp_path: Path) -> None:
    path = tmp_path / "theirs"
    path.write_bytes(b"old")
    os.chown(path, 1234, 2345)
    write(path)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
def test_a_group_that_cannot_be_kept_gives_its_rights_to_nobody() -> None:
    program = """
import os, sys
from oocbfs.formats.output.atomic import atomic_output
os.setgroups([])
os.setgid(3456)
os.setuid(3456)
with atomic_output(sys.argv[1], force=True) as file:
    file.write(b"new")
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with TemporaryDirectory() as folder:  # not below pytest's, which are closed to others
        os.chmod(folder, 0o777)
        path = Path(folder, "theirs")
        path.write_bytes(b"old")
        os.chown(path, 1234, 2345)
        path.chmod(0o664)
        command = [sys.executable, "-c", program, str(path)]
        children.run(command, check=True, env=environment)
        assert (path.stat().st_uid, path.stat().st_gid, mode(path)) == (3456, 3456, 0o644)


def test_a_link_stays_and_what_it_leads_to_keeps_its_mode(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    real = tmp_path / "folder" / "real"
    real.write_bytes(b"old")
    real.chmod(0o640)
    (tmp_path / "link").symlink_to("folder/real")
    write(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (real.read_bytes(), mode(real)) == (b"new", 0o640)


def test_standard_output_is_not_replaced_under_itself(tmp_path: Path) -> None:
    """``oocbfs … -o x > x`` and ``-o /dev/stdout > x`` would lose one of the two."""
    program = """
from oocbfs.errors import OutputError
from oocbfs.formats.output.atomic import atomic_output, check_outputs
for name in ("x", "/dev/stdout"):
    try:
        with atomic_output(name, force=True):
            pass
    except OutputError as error:
        print(error)
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with (tmp_path / "x").open("wb") as out:
        command = [sys.executable, "-c", program]
        children.run(command, check=True, cwd=tmp_path, env=environment, stdout=out)
    assert (tmp_path / "x").read_text().splitlines() == [
        f"{name}: is standard input or output already; name another file"
        for name in ("x", "/dev/stdout")
    ]


@pytest.mark.parametrize("link", [False, True])
def test_outputs_are_told_apart_by_what_they_lead_to(tmp_path: Path, link: bool) -> None:
    (tmp_path / "in").write_bytes(b"")
    name = tmp_path / "." / "in"
    if link:
        name = tmp_path / "out"
        name.symlink_to("in")
    with pytest.raises(OutputError, match="is an input too; name another file for levels"):
        check_outputs({"--levels": name}, inputs=[tmp_path / "in"], force=True)
    with pytest.raises(OutputError, match="is the file for levels too"):
        check_outputs({"--levels": tmp_path / "in", "--plot": name}, force=True)
    check_outputs({"--levels": tmp_path / "a", "--plot": None}, inputs=[tmp_path / "in"])
