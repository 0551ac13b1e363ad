"""What a job's folder says about itself: the manifest and a record for each group that is done."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import Any

from oocbfs.errors import FormatError
from oocbfs.formats.output.atomic import atomic_output

MANIFEST = "manifest.json"
GROUPS = "groups"


def record_of(folder: Path, group: int) -> Path:
    """Give the record that commits a group."""
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
