"""What names a Dask cluster: an address, the file of a scheduler, or ``local:N``."""

from __future__ import annotations

import json
from typing import Any

from oocbfs.errors import ClusterError, shown

_MOST_LOCAL = 1024
_SCHEMES = ("tcp", "tls", "ucx", "ws", "wss")
_FORMS = "name it as tcp://HOST:PORT, by the file that its scheduler wrote, or as local:N"


def check_address(cluster: str) -> None:
    """Refuse what names no Dask cluster, or one for which a package is missing.

    Raises
    ------
    ClusterError
        Says what can be named, or how to get the package.
    """
    scheme, found, _ = cluster.partition("://")
    if cluster.startswith("local:"):
        local_size(cluster)
    elif not found:
        address_in(cluster)
    elif scheme not in _SCHEMES:
        raise ClusterError(f"{shown(cluster)} names no cluster: {_FORMS}")
    import_distributed()


def import_distributed() -> Any:
    """Import Dask's scheduler, or say how to get it."""
    try:
        import distributed
    except ImportError as error:
        raise ClusterError("a Dask cluster needs distributed: pip install 'oocbfs[cluster]'") from (
            error
        )
    return distributed


def local_size(cluster: str) -> int:
    """Read how many processes ``local:N`` asks for."""
    text = cluster.removeprefix("local:")
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= _MOST_LOCAL):
        raise ClusterError(
            f"{shown(cluster)} names no cluster: write local:N with N from 1 to {_MOST_LOCAL}"
        )
    return int(text)


def address_in(path: str) -> str:
    """Read the address of a scheduler from the file that it writes."""
    try:
        with open(path, encoding="utf-8") as file:
            address = json.load(file)["address"]
    except OSError as error:
        raise ClusterError(
            f"{path}: cannot be read as a scheduler's file: {error.strerror}; {_FORMS}"
        ) from error
    except (ValueError, KeyError, TypeError) as error:
        raise ClusterError(f"{path}: is not a file that a Dask scheduler wrote") from error
    return str(address)
