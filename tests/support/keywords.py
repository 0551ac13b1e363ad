"""Keywords of searches as tests put them together: what users decide, and what comes as options."""

from __future__ import annotations

import inspect
from typing import Any

from oocbfs import AnyGraph, Settings

_DECIDED = {
    name
    for search in (AnyGraph.bfs, AnyGraph.bfs_many, AnyGraph.components)
    for name in inspect.signature(search).parameters
}


def keywords(settings: dict[str, Any]) -> dict[str, Any]:
    """Return settings as a search takes them."""
    decided = {name: value for name, value in settings.items() if name in _DECIDED}
    others = {name: value for name, value in settings.items() if name not in _DECIDED}
    return {**decided, "options": Settings(**others)} if others else decided
