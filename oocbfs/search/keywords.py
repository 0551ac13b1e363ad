"""Keywords that several questions to a graph have in common, declared once.

A method takes them as ``**how``; with ``spelled_out``, help and editors show each of them.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, TypedDict, TypeVar

from oocbfs.settings import Settings

_Method = TypeVar("_Method", bound=Callable[..., Any])


class SharedKeywords(TypedDict, total=False):
    """Where rows may be, and who reads them; see ``AnyGraph.bfs``."""

    memory: str | int | None
    threads: int | None
    options: Settings | None


class PairKeywords(TypedDict, total=False):
    """How two vertices are searched, by one thread; see ``AnyGraph.distance``."""

    max_depth: int | None
    memory: str | int | None
    options: Settings | None


class PairsKeywords(SharedKeywords, total=False):
    """How many pairs are searched; see ``AnyGraph.distances``."""

    max_depth: int | None


def spelled_out(kind: type) -> Callable[[_Method], _Method]:
    """Make the decorator that lists these keywords in a method's signature."""

    def decorate(method: _Method) -> _Method:
        signature = inspect.signature(method)
        *own, _ = signature.parameters.values()
        given = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=hint)
            for name, hint in kind.__annotations__.items()
        ]
        vars(method)["__signature__"] = signature.replace(parameters=own + given)
        return method

    return decorate


def check_keywords(kind: type, given: Mapping[str, Any]) -> None:
    """Refuse keywords that are none of these, as Python does."""
    for name in given.keys() - kind.__annotations__.keys():
        raise TypeError(f"got an unexpected keyword argument {name!r}")
