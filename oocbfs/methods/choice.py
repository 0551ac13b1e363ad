"""Read a method and its options, as in ``two-phase:filter=mask+warp,gather=scan``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from oocbfs.errors import QueryError, shown
from oocbfs.methods.table import METHODS, Method, Option


@dataclass(frozen=True)
class MethodChoice:
    """A method and the value of each of its options; written as short as it can be read back."""

    method: Method
    given: tuple[tuple[str, str], ...] = ()

    @property
    def name(self) -> str:
        """The method's name."""
        return self.method.name

    @property
    def options(self) -> MappingProxyType[str, str]:
        """Every option's value, its default where none was given."""
        defaults = {option.name: option.default for option in self.method.options}
        return MappingProxyType({**defaults, **dict(self.given)})

    def chosen(self, name: str) -> frozenset[str]:
        """Return the values of an option of which several may be joined; none is the empty set."""
        return frozenset(self.options[name].split("+")) - {"none"}

    def check_engine(self, engine: str) -> None:
        """Refuse an engine that the method does not run on."""
        if engine not in self.method.engines:
            others = " or ".join(self.method.engines)
            raise QueryError(f"method {self.name} does not run on {engine}: use --engine {others}")

    def __str__(self) -> str:
        options = ",".join(f"{name}={value}" for name, value in self.given)
        return f"{self.name}:{options}" if options else self.name


def parse_method(text: str) -> MethodChoice:
    """Read ``NAME[:OPTION=VALUE,…]``; anything that no method knows is refused."""
    if not isinstance(text, str):
        raise QueryError(f"a method cannot be {shown(text)}: it is a name such as v3.3")
    return _parse(text)


@cache
def _parse(text: str) -> MethodChoice:
    name, colon, rest = text.partition(":")
    method = METHODS.get(name)
    if method is None:
        raise QueryError(f"there is no method {shown(name)}: it is one of {', '.join(METHODS)}")
    given = dict(_options(method, rest)) if colon else {}
    in_order = tuple(
        (option.name, given[option.name])
        for option in method.options
        if given.get(option.name, option.default) != option.default
    )
    return MethodChoice(method, in_order)


def _options(method: Method, text: str) -> Iterator[tuple[str, str]]:
    seen = set()
    for part in text.split(","):
        name, equals, value = part.partition("=")
        option = method.option(name)
        if option is None or not equals:
            known = ", ".join(f"{one.name}=…" for one in method.options) or "none"
            raise QueryError(
                f"method {method.name} has no option {shown(part)}: its options are {known}"
            )
        if name in seen:
            raise QueryError(f"method {method.name} was given {name} twice: leave one out")
        seen.add(name)
        yield name, _value(method, option, value)


def _value(method: Method, option: Option, text: str) -> str:
    """Check a value; several are brought into the order of the table."""
    values = text.split("+") if option.several else [text]
    lone = option.several and len(values) > 1 and "none" in values
    if lone or len(set(values)) < len(values) or not set(values) <= set(option.values):
        how = ", several joined by +" if option.several else ""
        raise QueryError(
            f"{option.name} of method {method.name} cannot be {shown(text)}: "
            f"it is one of {', '.join(option.values)}{how}"
        )
    return "+".join(value for value in option.values if value in values)
