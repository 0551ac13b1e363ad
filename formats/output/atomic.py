"""Files that appear whole or not at all."""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import shutil
import stat
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from oocbfs.errors import OocbfsError, OutputError
from oocbfs.formats.io.closing import release
from oocbfs.formats.output.appearance import will_appear

# Files that this process is writing.
_active: set[Path] = set()


@contextmanager
def atomic_output(
    path: str | os.PathLike[str], *, force: bool = False, streams: bool = False
) -> Generator[BinaryIO]:
    """Yield a new file, opened "w+b", that gets its name only when the block ends without an error.

    Until then it is called ``.<name>.<16 random digits>.tmp`` in the same folder and is locked, so
    that others can tell it from what a dead process has left; it is removed if the block fails.
    Links are followed: their target is created or replaced, and they stay. A new file follows the
    umask; one that replaces another takes over its mode, and its owner if that is allowed. With
    ``streams``, devices and pipes are accepted too, and written from beginning to end.

    Raises
    ------
    OutputError
        If the file exists and ``force`` is not set, if it is not a plain file, or for any OSError
        except BrokenPipeError, which is passed on.
    """
    shown = os.fspath(path)
    target = Path(os.path.realpath(shown))
    with explained(shown):
        existing = _check_target(target, shown, force, streams)
        if existing is not None and not stat.S_ISREG(existing.st_mode):
            with open(shown, "wb") as stream:
                yield stream
            return
        remove_stale_temporaries(target)
        with _temporary_for(target, shown) as (temporary, file):
            if existing is not None:
                _copy_owner_and_mode(existing, file.fileno())
            yield file
            file.flush()
            os.fsync(file.fileno())
            # Once more, because the work may have taken hours.
            _check_target(target, shown, force, streams)
            will_appear(shown, target, os.fstat(file.fileno()))
            temporary.replace(target)
            sync_folder(target.parent)


@contextmanager
def explained(output: str | os.PathLike[str]) -> Generator[None]:
    """Raise any OSError as one that names the output."""
    try:
        yield
    except (BrokenPipeError, OocbfsError):
        raise  # of another file: what the block printed is not read any more
    except OSError as error:
        what = error.strerror or str(error)
        where = "" if error.filename is None else f" ({error.filename})"
        shown = f"{os.fspath(output)}: cannot be written: {what}{where}"
        raise OutputError.like(error, shown) from error


def check_outputs(
    outputs: Mapping[str, str | os.PathLike[str] | None],
    *,
    inputs: Iterable[str | os.PathLike[str]] = (),
    force: bool = False,
    streams: bool = False,
) -> None:
    """Refuse outputs that cannot be written, before any work is done.

    ``outputs`` maps what the user calls an output to its path; None is one not asked for.

    Raises
    ------
    OutputError
        If one could not be written, or is also an input or another output, under any name.
    """
    taken: list[tuple[str, str]] = [("an input", os.fspath(path)) for path in inputs]
    for what, path in outputs.items():
        if path is None:
            continue
        shown = os.fspath(path)
        for other, name in taken:
            if _is_same(shown, name):
                raise OutputError(f"{shown}: is {other} too; name another file for {what}")
        with explained(shown):
            _check_target(Path(os.path.realpath(shown)), shown, force, streams)
        taken.append((f"the file for {what}", shown))


def check_space(path: str | os.PathLike[str], needed_bytes: int) -> None:
    """Refuse a file that the disk has no space for, before it is full."""
    folder = Path(os.path.realpath(path)).parent
    free_bytes = shutil.disk_usage(folder).free if folder.is_dir() else needed_bytes
    if needed_bytes > free_bytes:
        raise OutputError(
            f"{os.fspath(path)}: takes at least {needed_bytes:,} bytes, and {free_bytes:,} are free"
        )


def _is_same(one: str, other: str) -> bool:
    """Whether two names lead to one file, which need not exist."""
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


def remove_stale_temporaries(target: Path) -> None:
    """Remove what dead processes have left of the same file: temporary files without a lock.

    A process number would not tell: in containers, two living processes may have the same one.
    """
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}\.tmp")
    for entry in target.parent.iterdir():
        if pattern.fullmatch(entry.name):
            with suppress(OSError), entry.open("r+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                entry.unlink()


@contextmanager
def _temporary_for(target: Path, shown: str) -> Generator[tuple[Path, BinaryIO]]:
    """Open a locked temporary file; its name is removed at the end."""
    if target in _active:
        raise OutputError(f"{shown}: is already being written by this process")
    _active.add(target)
    try:
        while True:
            temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
            with ExitStack() as stack:
                # First, because opening may fail when the file is there already.
                stack.callback(_remove, temporary)
                file = temporary.open("x+b")
                stack.callback(release, file)
                if _lock(file):
                    yield temporary, file
                    return
    finally:
        _active.discard(target)


def _lock(file: BinaryIO) -> bool:
    """Lock a new file; tell whether it is there still: others may have taken it for stale."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:  # another process is about to remove it
        return False
    except OSError:  # this folder has no locks, so that no process removes anything
        return True
    return os.fstat(file.fileno()).st_nlink > 0


def _remove(temporary: Path) -> None:
    """Remove a name, if it is still there."""
    with suppress(OSError):
        temporary.unlink()


def _check_target(target: Path, shown: str, force: bool, streams: bool) -> os.stat_result | None:
    """Refuse what is no plain file or may not be replaced; returns the status of a file."""
    try:
        # By the name given: a path through /proc has no other. A loop of links is an error.
        existing = os.stat(shown)
    except FileNotFoundError:
        existing = None
    if shown.endswith(os.sep) or (existing is not None and stat.S_ISDIR(existing.st_mode)):
        raise OutputError.like(IsADirectoryError, f"{shown}: is a folder; name a file")
    if existing is None:
        if not target.parent.is_dir():
            missing = f"{shown}: there is no folder {target.parent}; create it first"
            raise OutputError.like(FileNotFoundError, missing)
        return None
    if not stat.S_ISREG(existing.st_mode):
        if streams:
            return existing
        raise OutputError(f"{shown}: is a device or a pipe; name a file")
    if any(_is_open_as(descriptor, existing) for descriptor in (0, 1, 2)):
        raise OutputError(f"{shown}: is standard input or output already; name another file")
    if not force:
        raise OutputError.like(
            FileExistsError, f"{shown}: already exists; use --force to replace it"
        )
    return existing


def _is_open_as(descriptor: int, existing: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), existing)
    except OSError:
        return False


def _copy_owner_and_mode(existing: os.stat_result, descriptor: int) -> None:
    """Set the owner and the mode of a new file to those of the one it will replace."""
    mode = stat.S_IMODE(existing.st_mode)
    try:
        os.fchown(descriptor, existing.st_uid, existing.st_gid)
    except PermissionError:
        try:
            os.fchown(descriptor, -1, existing.st_gid)
        except PermissionError:
            # A different group must not get the rights of the old one.
            mode = (mode & 0o707) | (mode & 0o007) << 3
    os.fchmod(descriptor, mode)


def sync_folder(folder: Path) -> None:
    """Make a rename in a folder durable, on file systems that can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
