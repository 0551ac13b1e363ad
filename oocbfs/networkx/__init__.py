"""networkx's functions on ``.ocg`` files, and on graphs of networkx: its backend ``oocbfs``."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from oocbfs.errors import QueryError

if TYPE_CHECKING:
    from oocbfs.networkx.graphs import convert_from_nx, convert_to_nx, open

__all__ = ["convert_from_nx", "convert_to_nx", "open"]


def __getattr__(name: str) -> Any:
    """Load networkx and numba when they are needed: ``import networkx`` itself loads this."""
    if name not in __all__:
        raise AttributeError(f"module 'oocbfs.networkx' has no attribute {name!r}")
    if find_spec("networkx") is None:
        raise QueryError(f"oocbfs.networkx.{name} needs networkx: pip install 'oocbfs[networkx]'")
    return getattr(import_module("oocbfs.networkx.graphs"), name)


def __dir__() -> list[str]:
    return __all__
