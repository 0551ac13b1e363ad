"""Compiled code is linked by names: no two functions of all kernels have the same."""

from __future__ import annotations

import importlib
import pkgutil
from collections import defaultdict
from collections.abc import Iterator
from types import FunctionType
from typing import Any

from numba.core.dispatcher import Dispatcher

import oocbfs.kernels
from oocbfs.kernels.atomics import kernel


def functions_of(value: Any, seen: set[int]) -> Iterator[FunctionType]:
    """Yield a compiled function, and those that it was made with."""
    if isinstance(value, Dispatcher) and id(value) not in seen:
        seen.add(id(value))
        if value.targetoptions.get("inline") != "always":  # or no code of it is left to be linked
            yield value.py_func
        for cell in value.py_func.__closure__ or ():
            yield from functions_of(cell.cell_contents, seen)


def meaning(value: Any) -> Any:
    """Return the code of a function with what it was made with; other values as they print."""
    function = getattr(value, "py_func", value)
    if not isinstance(function, FunctionType):
        return repr(value)
    cells = function.__closure__ or ()
    return function.__code__, tuple(meaning(cell.cell_contents) for cell in cells)


def test_functions_that_were_made_alike_have_names_of_their_own() -> None:
    """Numbers that numba adds are only unique in a process, and code of several is loaded."""
    named: dict[tuple[str, str], set[Any]] = defaultdict(set)
    seen: set[int] = set()
    for found in pkgutil.walk_packages(oocbfs.kernels.__path__, "oocbfs.kernels."):
        for value in vars(importlib.import_module(found.name)).values():
            for function in functions_of(value, seen):
                named[function.__module__, function.__qualname__].add(meaning(function))
    assert len(named) > 300
    assert [names for names, functions in named.items() if len(functions) > 1] == []


def test_what_a_function_is_made_with_is_in_its_name() -> None:
    def made(number: int) -> Any:
        @kernel  # type: ignore[untyped-decorator]
        def add(value: int) -> int:
            return value + number

        return add

    names = [made(number).py_func.__qualname__ for number in (1, 2, 1)]
    assert names[0] == names[2] != names[1]
