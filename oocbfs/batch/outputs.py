"""What a batch reads and writes: sources, pairs, levels as .npy files or a Zarr array."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from oocbfs.errors import InputError, OutputError
from oocbfs.formats.names import split_names
from oocbfs.formats.output.atomic import atomic_output, explained
from oocbfs.results.source import SourceResult

_LONGEST_LINE = 1 << 18
# A device has lines without end; so many ids take a gigabyte.
_MOST_LINES = 1 << 24
_LONGEST_SHOWN = 100


def read_pairs(path: Path, *, named: bool = False) -> list[tuple[Any, Any]]:
    """Read pairs of ids, one pair per line, separated by a comma; a header may come first.

    Among names, only ``source,target`` is a header.
    """
    pairs: list[tuple[Any, Any]] = []
    for number, line in _lines(path):
        if named:
            names = split_names(line)
            if len(names) != 2 or not all(names):
                raise InputError(
                    "expected two names, as alice,bob", path=str(path), line=number, text=line
                )
            if number > 1 or names != ["source", "target"]:
                pairs.append((names[0], names[1]))
            continue
        fields = [field.strip().strip('"') for field in line.split(",")]
        try:
            source, target = map(_id, fields)
        except ValueError:
            if number == 1 and len(fields) == 2:
                continue
            raise InputError(
                "expected two ids, as 1,2", path=str(path), line=number, text=line
            ) from None
        pairs.append((source, target))
    if not pairs:
        raise InputError("holds no pairs", path=str(path))
    return pairs


def read_sources(path: Path, *, named: bool = False) -> list[Any]:
    """Read ids, one per line; blank lines and lines that begin with # are skipped.

    A name may be in quotes; one that is not may hold commas.
    """
    sources: list[Any] = []
    for number, line in _lines(path):
        if named:
            sources.append(split_names(line)[0] if line.startswith('"') else line)
            continue
        try:
            sources.append(_id(line))
        except ValueError:
            raise InputError("expected one id", path=str(path), line=number, text=line) from None
    if not sources:
        raise InputError("holds no sources", path=str(path))
    return sources


def _id(text: str) -> int:
    """Read an id; int() alone takes 1_000 and digits of any script."""
    if not re.fullmatch("-?[0-9]{1,20}", text):
        raise ValueError
    return int(text)


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield numbered lines that are neither blank nor comments; of limited length, for devices."""
    try:
        with path.open("rb") as file:
            for number, line in enumerate(iter(lambda: file.readline(_LONGEST_LINE), b""), 1):
                if len(line) == _LONGEST_LINE:
                    raise InputError("a line is too long", path=str(path), line=number)
                if number > _MOST_LINES:
                    message = f"more than {_MOST_LINES:,} lines: make several batches of it"
                    raise InputError(message, path=str(path))
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").strip()
                if text and not text.startswith("#"):
                    yield number, text
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise InputError(f"cannot be read: {reason}", path=str(path)) from error


class NpyLevels:
    """One .npy file per source, named by its position in the list of sources and its id.

    Of a name, letters and digits stay as they are, and what is too long is cut off.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder / "levels"
        self._folder.mkdir(exist_ok=True)

    def write(self, number: int, result: SourceResult) -> None:
        """Write the levels of one source; they are on disk afterwards."""
        assert result.levels is not None
        shown = quote(str(result.source), safe="")[:_LONGEST_SHOWN]
        path = self._folder / f"{number:06d}-{shown}.npy"
        with atomic_output(path, force=True) as file:
            np.lib.format.write_array(file, result.levels, allow_pickle=False)

    def flush(self, first: int, stop: int) -> None:
        """Do nothing: each file is already on disk."""


class ZarrLevels:
    """One Zarr array of int32, one row per source; several processes may write rows of their own.

    ``make`` comes before the first one is opened, and ``clean`` after the last one was written.
    """

    _CHUNK = 1 << 22

    def __init__(self, folder: Path) -> None:
        self._path = _zarr_in(folder)
        with explained(self._path):
            self._array = import_zarr().open_array(self._path, mode="r+")

    @classmethod
    def make(cls, folder: Path, num_sources: int, num_vertices: int) -> None:
        """Create the array, or check the one that is there."""
        zarr = import_zarr()
        cls.clean(folder)
        path = _zarr_in(folder)
        shape = (num_sources, num_vertices)
        with explained(path):
            if not (path / "zarr.json").exists():
                zarr.create_array(
                    path,
                    shape=shape,
                    chunks=(1, max(1, min(num_vertices, cls._CHUNK))),
                    dtype="int32",
                    fill_value=-1,
                    overwrite=True,
                )
            elif zarr.open_array(path, mode="r").shape != shape:
                raise OutputError(f"{path}: has another shape; delete it and resume again")

    @staticmethod
    def clean(folder: Path) -> None:
        """Remove what zarr was writing when a process was killed."""
        with explained(_zarr_in(folder)):
            for leftover in _zarr_in(folder).rglob("*.partial"):
                leftover.unlink()

    def write(self, number: int, result: SourceResult) -> None:
        """Write the levels of one source."""
        with explained(self._path):
            self._array[number] = result.levels

    def flush(self, first: int, stop: int) -> None:
        """Wait until the rows first … stop-1 are on disk."""
        rows = [self._path / "c" / str(number) for number in range(first, stop)]
        with explained(self._path):
            for path in (self._path / "zarr.json", *rows):
                for part in (path, *path.rglob("*")):
                    sync(part)
            sync(self._path / "c")
            sync(self._path)


def _zarr_in(folder: Path) -> Path:
    return folder / "levels.zarr"


def import_zarr() -> Any:  # noqa: ANN401
    """Import zarr, or say how to get it."""
    try:
        import zarr
    except ImportError as error:
        raise OutputError("Zarr arrays need zarr: pip install 'oocbfs[zarr]'") from error
    return zarr


def sync(path: Path) -> None:
    """Wait until a file or a folder is on disk, if it exists."""
    if not path.exists():
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
