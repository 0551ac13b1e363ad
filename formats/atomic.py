"""Files that appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from oocbfs.errors import OutputError

# Temporaries this process is writing: its own pid says nothing about whether one of them is stale,
# since in a container every run may get the same pid.
_active: set[Path] = set()


@contextmanager
def atomic_output(path: str | os.PathLike[str], *, force: bool = False) -> Generator[BinaryIO]:
    """Yield a new file, opened "w+b", that gets its name only when the block ends without an error.

    Until then it is called ``.<name>.<pid>.tmp`` in the same folder; it is removed however the block
    ends. Links are followed; devices and pipes are written directly.

    Raises
    ------
    OutputError
        If the file exists and ``force`` is not set, or for any OSError on the way.
    """
    shown = os.fspath(path)
    target = Path(os.path.realpath(shown))
    try:
        _check_target(target, shown, force)
        if target.exists() and not target.is_file():
            with target.open("wb") as device:
                yield device
            return
        remove_stale_temporaries(target)
        with _temporary_for(target, shown) as temporary, temporary.open("x+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
            # Once more, because the work may have taken hours.
            _check_target(target, shown, force)
            temporary.replace(target)
            _sync_folder(target.parent)
    except OSError as error:
        raise OutputError(f"{shown}: cannot be written: {_reason(error)}") from error


def remove_stale_temporaries(target: Path) -> None:
    """Remove what dead processes left behind while writing the same file."""
    prefix = f".{target.name}."
    for entry in target.parent.iterdir():
        name = entry.name
        if not (name.startswith(prefix) and name.endswith(".tmp")):
            continue
        pid = name[len(prefix) : -len(".tmp")]
        if pid.isascii() and pid.isdigit() and entry not in _active and not _is_alive(int(pid)):
            with suppress(OSError):
                entry.unlink()


@contextmanager
def _temporary_for(target: Path, shown: str) -> Generator[Path]:
    """Reserve the temporary name of a file and see to it that nothing keeps it."""
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    if temporary in _active:
        raise OutputError(f"{shown}: is already being written by this process")
    _active.add(temporary)
    try:
        yield temporary
    finally:
        with suppress(OSError):
            temporary.unlink()
        _active.discard(temporary)


def _check_target(target: Path, shown: str, force: bool) -> None:
    """Refuse a target that is a folder, or a file that may not be replaced."""
    if target.is_dir():
        raise OutputError(f"{shown}: is a folder; name a file")
    if target.is_file() and not force:
        raise OutputError(f"{shown}: already exists; use --force to replace it")
    if not target.parent.is_dir():
        raise OutputError(f"{shown}: there is no folder {target.parent}; create it first")


def _is_alive(pid: int) -> bool:
    """Whether another process of that number exists."""
    if pid == os.getpid():
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _sync_folder(folder: Path) -> None:
    """Make a rename in a folder durable, on file systems that can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _reason(error: OSError) -> str:
    """Say what the system said, and about which file if that is not obvious."""
    what = error.strerror or str(error)
    return what if error.filename is None else f"{what} ({error.filename})"
