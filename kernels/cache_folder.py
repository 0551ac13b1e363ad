"""Where compiled code is kept between runs: the user's cache, or a folder of theirs under /tmp."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import stat
import tempfile
from functools import cache
from pathlib import Path

_log = logging.getLogger(__name__)


def cache_folder() -> Path:
    """Give a folder that this user can write to; without a home it is one for temporary files."""
    folder = _user_folder()
    if folder is not None and is_writable(folder):
        return folder
    return _temporary_folder()


def is_writable(folder: Path) -> bool:
    """Tell whether files can be made in a folder, which is made if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def _user_folder() -> Path | None:
    """Give the folder that the user's environment asks for, if it names any."""
    try:
        base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user without a name and without HOME
        return None
    return Path(base) / "oocbfs"


@cache
def _temporary_folder() -> Path:
    """Give a folder of this user alone, and say so: what lies in it is executed."""
    folder = Path(tempfile.gettempdir()) / f"oocbfs-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        is_own = (
            stat.S_ISDIR(found.st_mode)
            and found.st_uid == os.getuid()
            and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        )
    except OSError:
        is_own = False
    if not is_own:
        folder = Path(tempfile.mkdtemp(prefix="oocbfs-"))
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _log.warning(
        "no writable home folder: keeping compiled kernels in %s; "
        "set XDG_CACHE_HOME to keep them elsewhere",
        folder,
    )
    return folder
