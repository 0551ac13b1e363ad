"""What a long run knows, in a file, so that another one goes on."""

from __future__ import annotations

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError, QueryError
from oocbfs.formats.output.atomic import atomic_output

_ASKED = "asked"


def write_state(
    path: str | os.PathLike[str], asked: Mapping[str, Any], known: Mapping[str, NDArray[Any]]
) -> None:
    """Write what was asked and what is known; the file appears whole."""
    text = np.frombuffer(json.dumps(asked, sort_keys=True).encode(), np.uint8)
    with atomic_output(path, force=True) as file:
        np.savez(file, **{_ASKED: text}, **known)  # type: ignore[arg-type]


def read_state(
    path: str | os.PathLike[str], asked: Mapping[str, Any]
) -> dict[str, NDArray[Any]] | None:
    """Read what is known; None if nothing was begun.

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
        # Checksums of the parts are looked at as they are read.
        with np.load(path, allow_pickle=False) as file:
            known = dict(file)
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


def of_stage(known: Mapping[str, NDArray[Any]], stage: str) -> dict[str, NDArray[Any]]:
    """Return what is known of one stage."""
    prefix = f"{stage}."
    return {name[len(prefix) :]: part for name, part in known.items() if name.startswith(prefix)}
