"""Where compiled code is kept between runs: in folders that nobody else can write to.

What lies there is loaded and run. So every folder and link on the way belongs to this user, to
root, or to the owner of this program, who decides anyway what is run. Nobody else may write to the
last one, nor to one before it, unless files there can only be replaced by their owner (as in /tmp).
A group may write if it is the user's own: many systems give each user one, and a umask of 002.
"""

from __future__ import annotations

import atexit
import errno
import grp
import logging
import os
import pwd
import shutil
import stat
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = logging.getLogger(__name__)
_MOST_LINKS = 40
_OWNER = Path(__file__).stat().st_uid
_said: set[str] = set()


def cache_folder(name: str, *preferred: Path) -> Path:
    """Return the first of these that is writable and own, or one of this name that is.

    That is in the user's cache, or among temporary files. If it is another than was asked for, a
    line says why, once.
    """
    user = _user_folder()
    reason = ""
    for folder in (*preferred, *([] if user is None else [user / name])):
        if is_writable(folder):
            problem = why_not_own(folder)
            if problem is None:
                if reason:
                    _say(reason, folder.parent)
                return folder
            reason = reason or problem
    base = _temporary_folder()
    _say(reason or "no writable home folder", base)
    return _made(base / name)


def is_writable(folder: Path) -> bool:
    """Return whether files can be made in a folder, which is made if it is missing."""
    try:
        tempfile.TemporaryFile(dir=_made(folder)).close()
    except OSError:
        return False
    return True


def why_not_own(folder: Path) -> str | None:
    """Return why somebody else may have put into a folder what is found there, or None."""
    try:
        *_, (last, found) = steps = list(_steps(folder))
        for path, status in steps:
            is_folder = stat.S_ISDIR(status.st_mode)
            is_guarded = path != last and bool(status.st_mode & stat.S_ISVTX)
            if problem := _problem(path, status, may_be_written=not is_folder or is_guarded):
                return problem
        # Nobody else reaches what lies in a folder that only its owner may enter.
        is_closed = not found.st_mode & (stat.S_IXGRP | stat.S_IXOTH)
        for path in list(folder.iterdir()):
            with suppress(FileNotFoundError):  # another process is at work
                if problem := _problem(path, path.lstat(), may_be_written=is_closed):
                    return problem
    except OSError as error:
        return f"{folder} cannot be examined ({error.strerror})"
    return None


def _steps(path: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """Yield every folder and link on the way to a folder, which comes last."""
    here, waiting, num_links = Path("/"), list(path.absolute().parts[1:]), 0
    yield here, here.lstat()
    while waiting:
        here /= waiting.pop(0)
        status = here.lstat()
        yield here, status
        if stat.S_ISLNK(status.st_mode):
            num_links += 1
            if num_links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            target = here.readlink()
            here = here.parent
            waiting[:0] = target.parts
        elif here.name == "..":
            here = here.resolve()


def _problem(path: Path, status: os.stat_result, *, may_be_written: bool) -> str | None:
    """Return whose a file, folder or link is, or who may write to it, if that is somebody else."""
    if status.st_uid not in (0, os.getuid(), _OWNER):
        return f"{path} belongs to another user ({status.st_uid})"
    if may_be_written or stat.S_ISLNK(status.st_mode):
        return None
    if status.st_mode & stat.S_IWOTH:
        return f"{path} can be written by everybody"
    if status.st_mode & stat.S_IWGRP and not _is_own_group(status.st_gid):
        return f"{path} can be written by its group ({status.st_gid})"
    return None


@cache
def _is_own_group(group: int) -> bool:
    """Return whether a group has this user's name, is their first one, and has no other member."""
    try:
        user, found = pwd.getpwuid(os.getuid()), grp.getgrgid(group)
    except KeyError:
        return False
    is_private = (user.pw_gid, user.pw_name) == (found.gr_gid, found.gr_name)
    return is_private and set(found.gr_mem) <= {user.pw_name}


def _made(folder: Path) -> Path:
    """Make a folder that others cannot enter, if it is missing."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _say(reason: str, folder: Path) -> None:
    """Log where compiled code is kept instead, once for each reason."""
    if reason not in _said:
        _said.add(reason)
        _log.warning(
            "%s: keeping compiled kernels in %s; set XDG_CACHE_HOME to keep them elsewhere",
            reason,
            folder,
        )


def _user_folder() -> Path | None:
    """Return the folder that the user's environment asks for, if it names any."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user without a name and without HOME
        return None
    return Path(base) / "oocbfs"


@cache
def _temporary_folder() -> Path:
    """Return a folder of this user among temporary files; if it is not own, one for this run."""
    folder = Path(tempfile.gettempdir()) / f"oocbfs-{os.getuid()}"
    if not is_writable(folder) or why_not_own(folder) is not None:
        folder = Path(tempfile.mkdtemp(prefix="oocbfs-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
