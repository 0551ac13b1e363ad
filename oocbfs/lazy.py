"""Parts of a graph that are loaded when they are first asked for, whichever thread asks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

Part = TypeVar("Part")


class lazy(Generic[Part]):  # noqa: N801
    """A property that is loaded once, by one thread, and while the container is what was opened.

    It belongs to a class that has a ``_container``, and stays in the ``__dict__`` of its instance.
    """

    def __init__(self, load: Callable[[Any], Part]) -> None:
        self._load = load
        self._name = load.__name__
        self.__doc__ = load.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...

    @overload
    def __get__(self, instance: object, owner: type) -> Part: ...

    def __get__(self, instance: Any, owner: type) -> Self | Part:
        if instance is None:
            return self
        file = instance._container.file
        with file.loading, file.reading():
            if self._name not in instance.__dict__:
                instance.__dict__[self._name] = self._load(instance)
            part: Part = instance.__dict__[self._name]
            return part
