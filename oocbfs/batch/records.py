"""The folder of a batch: its manifest, and records of groups, with checksums of themselves."""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path
from typing import Any

from oocbfs.errors import FormatError, OutputError
from oocbfs.formats.output.atomic import atomic_output

MANIFEST = "manifest.json"
GROUPS = "groups"


def record_of(folder: Path, group: int) -> Path:
    """Return the record that commits a group."""
    return folder / GROUPS / f"{group:06d}.json"


def write_checked(path: Path, values: dict[str, Any]) -> None:
    """Write an object with a checksum of itself."""
    text = json.dumps(values, sort_keys=True)
    with atomic_output(path, force=True) as file:
        file.write(json.dumps({"checksum": zlib.crc32(text.encode()), **values}, indent=1).encode())


def read_checked(path: Path, advice: str) -> dict[str, Any]:
    """Read an object and check its checksum."""
    try:
        values = json.loads(path.read_bytes())
        checksum = values.pop("checksum")
        if checksum != zlib.crc32(json.dumps(values, sort_keys=True).encode()):
            raise ValueError
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise FormatError(f"{path}: is damaged; {advice}") from error
    except OSError as error:
        raise FormatError(f"{path}: cannot be read: {error.strerror}; {advice}") from error
    checked: dict[str, Any] = values
    return checked


def check_folder(folder: Path, manifest: dict[str, Any], *, resume: bool) -> None:
    """Refuse a folder that holds anything but this job."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder}: is not a folder; name another")
    if not folder.parent.is_dir():
        raise OutputError(f"{folder}: there is no folder {folder.parent}; create it first")
    path = folder / MANIFEST
    if not path.exists():
        # A job that was killed before its manifest was complete leaves only a temporary file.
        if folder.exists() and any(
            not name.startswith(f".{MANIFEST}.") for name in os.listdir(folder)
        ):
            raise OutputError(f"{folder}: is not empty and holds no batch; name another folder")
        return
    if not resume:
        raise OutputError(f"{folder}: holds a batch already; use --resume, or name another folder")
    stored = read_checked(path, "start again in another folder")
    for name, value in manifest.items():
        if stored.get(name) != value:
            raise OutputError(
                f"{folder}: was begun with another {name.replace('_', ' ')} "
                f"({stored.get(name)}, now {value}); start again in another folder"
            )
