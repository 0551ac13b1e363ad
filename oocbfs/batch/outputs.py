"""What a batch reads and writes: sources, pairs, levels as .npy files or a Zarr array."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from oocbfs.errors import OutputError
from oocbfs.formats.output.atomic import atomic_output, explained
from oocbfs.results.source import SourceResult

_LONGEST_SHOWN = 100


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


def import_zarr() -> Any:
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
