"""Folders that appear whole or not at all, as files do in ``output.atomic``."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import re
import secrets
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from oocbfs.errors import OutputError
from oocbfs.formats.io.closing import release
from oocbfs.formats.output.appearance import will_appear
from oocbfs.formats.output.atomic import explained, sync_folder

_AT_FDCWD, _EXCHANGE = -100, 2


@contextmanager
def atomic_folder(
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    may_replace: Callable[[Path], bool] = lambda folder: False,
) -> Generator[Path]:
    """Yield a new folder that gets its name only when the block ends without an error.

    Until then it is called ``.<name>.<16 random digits>.tmp`` beside it and is locked; it is
    removed if the block fails, or later if the process dies. An existing folder is replaced with
    ``force``, if it is empty or ``may_replace`` says that it is one of ours.

    Raises
    ------
    OutputError
        If the folder exists, or for any OSError.
    """
    shown = os.fspath(path).rstrip(os.sep) or os.sep
    target = Path(os.path.realpath(shown))
    with explained(shown):
        check_folder(path, force=force, may_replace=may_replace)
        _remove_stale(target)
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
        with ExitStack() as stack:
            # What is there at the end is what failed, or what was replaced.
            stack.callback(_remove, temporary)
            temporary.mkdir()
            lock = os.open(temporary, os.O_RDONLY | os.O_DIRECTORY)
            stack.callback(release, lock)
            with suppress(OSError):  # this file system has no locks: then nothing is ever stale
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield temporary
            sync_folder(temporary)
            # Once more, because the work may have taken hours.
            check_folder(path, force=force, may_replace=may_replace)
            will_appear(shown, target, os.fstat(lock))
            _move(temporary, target)
            sync_folder(target.parent)


def check_folder(
    path: str | os.PathLike[str],
    *,
    force: bool = False,
    may_replace: Callable[[Path], bool] = lambda folder: False,
) -> None:
    """Refuse a folder that cannot be written, before any work is done."""
    shown = os.fspath(path)
    target = Path(os.path.realpath(shown))
    if not target.exists():
        if not target.parent.is_dir():
            missing = f"{shown}: there is no folder {target.parent}; create it first"
            raise OutputError.like(FileNotFoundError, missing)
        return
    if not target.is_dir():
        raise OutputError.like(NotADirectoryError, f"{shown}: is a file; name a folder")
    if not force:
        raise OutputError.like(
            FileExistsError, f"{shown}: already exists; use --force to replace it"
        )
    if any(target.iterdir()) and not may_replace(target):
        raise OutputError(f"{shown}: holds something else; name another folder, or remove it")


def _move(temporary: Path, target: Path) -> None:
    """Rename a folder; one that has the name already gets the temporary one, in the same moment.

    Where the system cannot exchange names, there is a moment in between.
    """
    if not target.exists():
        temporary.rename(target)
        return
    exchange = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if exchange is not None:
        names = os.fsencode(temporary), os.fsencode(target)
        if exchange(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE) == 0:
            return
        if ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    old = temporary.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    target.rename(old)
    temporary.rename(target)
    _remove(old)


def _remove(folder: Path) -> None:
    """Remove a folder as far as possible, also where one more file may be opened and no second.

    ``shutil.rmtree`` opens two at a time.
    """
    with suppress(OSError):
        for inside, folders, files in os.walk(folder, topdown=False):
            for name in files:
                with suppress(OSError):
                    Path(inside, name).unlink()
            for path in (Path(inside, name) for name in folders):
                with suppress(OSError):
                    path.unlink() if path.is_symlink() else path.rmdir()
        folder.rmdir()


def _remove_stale(target: Path) -> None:
    """Remove what dead processes have left of the same folder: temporary ones without a lock."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{16}}\.tmp")
    for entry in target.parent.iterdir():
        if pattern.fullmatch(entry.name) and entry.is_dir():
            with suppress(OSError):
                descriptor = os.open(entry, os.O_RDONLY | os.O_DIRECTORY)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    _remove(entry)
                finally:
                    release(descriptor)
