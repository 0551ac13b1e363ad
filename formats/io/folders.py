"""Folders as inputs: the files in them, as Dask, Spark and others write tables in many parts."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from oocbfs.errors import InputError
from oocbfs.formats.io.streams import explained

# Marks, checksums and metadata of those who write tables.
_IGNORED = ("_", ".")
_DELTA_LOG = "_delta_log"


@dataclass(frozen=True)
class Input:
    """A file or a pipe to read, and the columns that the folders it is in state for all of it."""

    path: str
    columns: Mapping[str, str] = field(default_factory=dict)


def find_files(inputs: Iterable[str | os.PathLike[str]]) -> list[Input]:
    """Return all inputs, each folder as the files in it, none hidden, in a fixed order."""
    found: list[Input] = []
    for path in [os.fspath(one) for one in inputs]:
        if path != "-" and os.path.isdir(path):
            found += (Input(file, _stated_columns(path, file)) for file in _files_in(path))
        else:
            found.append(Input(path))
    return found


def _files_in(folder: str) -> list[str]:
    found: list[str] = []
    with explained(folder):
        if os.path.isdir(os.path.join(folder, _DELTA_LOG)):
            raise InputError(
                "a Delta table, whose folder may hold files that belong to it no more: write it "
                "as plain Parquet before",
                path=folder,
            )
        for path, folders, files in os.walk(folder, onerror=_raise):
            folders[:] = sorted(name for name in folders if not name.startswith(_IGNORED))
            shown = sorted(name for name in files if not name.startswith(_IGNORED))
            found += (os.path.join(path, name) for name in shown)
    if not found:
        raise InputError("a folder without files to read", path=folder)
    return found


def _stated_columns(folder: str, file: str) -> dict[str, str]:
    """Read the names of folders, as in ``year=2026/month=11/part.0``."""
    parts = os.path.relpath(file, folder).split(os.sep)[:-1]
    pairs = (part.split("=", 1) for part in parts if "=" in part)
    return {unquote(name): unquote(value) for name, value in pairs}


def _raise(error: OSError) -> None:
    raise error
