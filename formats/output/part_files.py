"""A number for each vertex in a folder of files, as Dask and Spark write tables.

The name of a folder ends in a slash. Before it stands the form of its files, as in
``levels.parquet/`` or ``levels.npy/``; ``levels/`` is of Parquet. Files are called
``part-00000.parquet`` and so on. In the order of their names they hold what one file would, so that
never more than one of them need be in memory. The folder appears whole or not at all.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from oocbfs.formats.output.folder import atomic_folder, check_folder
from oocbfs.formats.output.packing import COMPRESSIONS, endings
from oocbfs.formats.output.vectors import Column, check_name, write_vector

_DEFAULT = ".parquet"
_PART = re.compile(r"part-\d{5,}\.[a-z.0-9]+")


def is_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a name is that of a folder of files."""
    return os.fspath(path).endswith("/")


def check_parts(
    path: str | os.PathLike[str], *, known_only: bool = False, force: bool = False
) -> None:
    """Refuse a folder that cannot be written, before any work is done."""
    name = os.fspath(path).rstrip("/")
    check_name(name if endings(name)[0] else f"{name}{_DEFAULT}", known_only=known_only)
    check_folder(path, force=force, may_replace=_holds_parts)


def bounds_of(size: int, parts: int) -> list[tuple[int, int]]:
    """Share out positions evenly: the first and the end of each file's."""
    return [(size * part // parts, size * (part + 1) // parts) for part in range(parts)]


def write_parts(
    path: str | os.PathLike[str],
    parts: int,
    name: str,
    size: int,
    ids_at: Callable[[int, int], Column],
    values_at: Callable[[int, int], NDArray[Any]],
    *,
    known_only: bool = False,
    force: bool = False,
    about: Mapping[str, str] | None = None,
    **manner: Any,
) -> None:
    """Write values in so many files; ``values_at(first, stop)`` gives those of one.

    All else is as for ``vectors.write_vector``, which takes the rest of the ``manner``.
    """
    check_parts(path, known_only=known_only, force=force)
    ending = _ending(path)
    with atomic_folder(path, force=force, may_replace=_holds_parts) as folder:
        for number, (first, stop) in enumerate(bounds_of(size, parts)):

            def own_ids(begin: int, end: int, first: int = first) -> Column:
                return ids_at(first + begin, first + end)

            write_vector(
                folder / f"part-{number:05d}{ending}",
                name,
                own_ids,
                values_at(first, stop),
                known_only=known_only,
                about={**(about or {}), "part": str(number), "parts": str(parts)},
                **manner,
            )


def _ending(path: str | os.PathLike[str]) -> str:
    """Return what the files of a folder end in."""
    name = os.fspath(path).rstrip("/")
    form, compression = endings(name)
    if not form:
        return _DEFAULT
    return "".join(Path(name).suffixes[-2 if compression in COMPRESSIONS else -1 :]).lower()


def _holds_parts(folder: Path) -> bool:
    """Return whether a folder holds nothing but such files."""
    return all(_PART.fullmatch(entry.name) and entry.is_file() for entry in folder.iterdir())
