"""What a long run knows, in a file, so that another one goes on."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from math import prod
from typing import IO, Any

import numpy as np
from numpy.lib import format as form
from numpy.typing import NDArray

from oocbfs.arrays import ResultArrays, pieces_of
from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.output.atomic import atomic_output

_ASKED = "asked"
_ENDING = ".npy"


def write_state(
    path: str | os.PathLike[str], asked: Mapping[str, Any], known: Mapping[str, NDArray[Any]]
) -> None:
    """Write what was asked and what is known; the file appears whole."""
    text = np.frombuffer(json.dumps(asked, sort_keys=True).encode(), np.uint8)
    with atomic_output(path, force=True) as file, zipfile.ZipFile(file, "w") as parts:
        for name, array in ({_ASKED: text} | dict(known)).items():
            with parts.open(f"{name}{_ENDING}", "w", force_zip64=True) as part:
                _write(part, array)


def _write(part: IO[bytes], array: NDArray[Any]) -> None:
    """Write an array as ``np.savez`` does, and let go of it on the way."""
    form.write_array_header_1_0(part, form.header_data_from_array_1_0(array))
    flat = array.reshape(-1)
    for piece in pieces_of(flat):
        part.write(flat[piece].tobytes())


def _read(part: IO[bytes], num_bytes: int, arrays: ResultArrays) -> NDArray[Any]:
    form.read_magic(part)
    shape, _, dtype = form.read_array_header_1_0(part)
    if prod(shape) * dtype.itemsize != num_bytes - part.tell():
        raise ValueError("an array does not fill its part")
    flat = arrays.allocate(prod(shape), dtype)
    for piece in pieces_of(flat):
        flat[piece] = np.frombuffer(part.read(flat[piece].nbytes), dtype)
    # Its checksum is looked at where it ends.
    part.read()
    return flat.reshape(shape)


def copy_into(array: NDArray[Any], known: NDArray[Any]) -> None:
    """Copy what is known into an array of the same size, and let go of both on the way."""
    for piece in pieces_of(array, known):
        array[piece] = known[piece]


def read_state(
    path: str | os.PathLike[str], asked: Mapping[str, Any], arrays: ResultArrays
) -> dict[str, NDArray[Any]] | None:
    """Read what is known into arrays; None if nothing was begun.

    Raises
    ------
    QueryError
        If something else was asked.
    FormatError
        If the file is damaged.
    """
    if not os.path.lexists(path):
        return None
    try:
        with zipfile.ZipFile(path) as parts:
            known = {}
            for about in parts.infolist():
                with parts.open(about) as part:
                    name = about.filename.removesuffix(_ENDING)
                    known[name] = _read(part, about.file_size, arrays)
        before = json.loads(known.pop(_ASKED).tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise FormatError(f"{path}: is damaged: remove it, and start again") from error
    for name, value in asked.items():
        if before.get(name) != value:
            raise QueryError(
                f"{path}: was begun with another {name} ({before.get(name)}, now {value}): "
                "remove it, or ask the same"
            )
    return known


def take_stage(known: dict[str, NDArray[Any]], stage: str) -> dict[str, NDArray[Any]]:
    """Take out what is known of one stage, which goes on with it."""
    prefix = f"{stage}."
    names = [name for name in known if name.startswith(prefix)]
    return {name[len(prefix) :]: known.pop(name) for name in names}
