"""Which rows of a table are edges: ``type = 'friend' and since >= '2025-06-01'``, read by hand.

A small language, of which nothing is ever run as Python:

    test       column = value, also != <> < <= > >=; column in (value, …); column is [not] null
    condition  tests joined by not, and, or, and parentheses, which bind as in SQL
    column     a name, in double quotes if it is no plain word
    value      'text', in which '' is one quote; a number; true or false

A row whose column has no value passes no test but ``is null``. Where a column has a type, values
become that: ``'2025-06-01'`` a date or a time. Columns of texts, and those that folders state, have
none: they are compared with numbers as numbers, and with text as text.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from oocbfs.errors import InputError, QueryError

Value = str | int | float | bool
_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])
      | '(?P<text>(?:[^']|'')*)'
      | "(?P<quoted>(?:[^"]|"")+)"
      | (?P<word>[^\W\d]\w*)
      | (?P<sign><=|>=|!=|<>|=|<|>|\(|\)|,)
    )""",
    re.VERBOSE,
)
_KEYWORDS = ("and", "or", "not", "in", "is", "null", "true", "false")
_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MOST_NESTED = 100
_SHOWN_NAMES = 8


@dataclass(frozen=True)
class Test:
    """One column against values; the sign is one of ``_COMPARE``, ``in`` or ``null``."""

    __test__ = False  # which pytest would take it for

    column: str
    sign: str
    values: tuple[Value, ...] = ()


@dataclass(frozen=True)
class Condition:
    """Conditions joined by ``and`` or ``or``, or one that is turned around by ``not``."""

    word: str
    parts: tuple[Condition | Test, ...]


@dataclass(frozen=True)
class Where:
    """An expression that was read."""

    text: str
    condition: Condition | Test

    @property
    def columns(self) -> list[str]:
        """Names of all columns in it, each once."""
        return list(dict.fromkeys(test.column for test in _tests(self.condition)))

    def check_columns(self, names: Sequence[str], path: str) -> None:
        """Refuse a column that a table does not have."""
        unknown = [column for column in self.columns if column not in names]
        if unknown:
            shown = ", ".join(map(repr, names[:_SHOWN_NAMES]))
            raise InputError(f"--where: no column {unknown[0]!r}: there are {shown}", path=path)

    def bind(
        self, types: Mapping[str, Any], path: str, *, constants: Mapping[str, str] | None = None
    ) -> Any:
        """Make an expression of pyarrow for columns of these types; None is a type of text.

        What only the ``constants`` of a file decide is True or False instead.

        Raises
        ------
        InputError
            If there is no such column, or if it holds something that no value can be compared with.
        """
        self.check_columns([*types, *(constants or {})], path)
        return _Binding(types, constants or {}, path).of(self.condition)

    def bind_polars(self, types: Mapping[str, Any], path: str) -> Any:
        """Make the same expression for polars; the types are Arrow's, too."""
        self.check_columns(list(types), path)
        return _PolarsBinding(types, {}, path).of(self.condition)


def read_where(text: str) -> Where:
    """Read an expression.

    Raises
    ------
    QueryError
        If it is none; says where.
    """
    return Where(text, _Parser(text).read())


def _tests(condition: Condition | Test) -> Iterator[Test]:
    if isinstance(condition, Test):
        yield condition
    else:
        for part in condition.parts:
            yield from _tests(part)


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens: list[tuple[str, str, int]] = []
        self._next = self._depth = 0
        place, end = 0, len(text.rstrip())
        while place < end:
            match = _TOKEN.match(text, place)
            if match is None:
                raise self._error(
                    "no word, number or sign",
                    place + len(text[place:]) - len(text[place:].lstrip()),
                )
            kind = str(match.lastgroup)
            word = match[kind]
            if kind == "word" and word.lower() in _KEYWORDS:
                kind, word = "sign", word.lower()
            self._tokens.append((kind, word, match.start(match.lastgroup or 0)))
            place = match.end()

    def read(self) -> Condition | Test:
        condition = self._any()
        if self._next < len(self._tokens):
            raise self._error("'and' or 'or' is missing")
        return condition

    def _any(self) -> Condition | Test:
        return self._joined("or", lambda: self._joined("and", self._one))

    def _joined(self, word: str, part: Callable[[], Condition | Test]) -> Condition | Test:
        parts = [part()]
        while self._take(word):
            parts.append(part())
        return parts[0] if len(parts) == 1 else Condition(word, tuple(parts))

    def _one(self) -> Condition | Test:
        self._depth += 1
        if self._depth > _MOST_NESTED:
            raise self._error("too many parentheses")
        try:
            if self._take("not"):
                return Condition("not", (self._one(),))
            if self._take("("):
                condition = self._any()
                self._expect(")")
                return condition
            return self._test()
        finally:
            self._depth -= 1

    def _test(self) -> Condition | Test:
        kind, column, _ = self._peek()
        if kind not in ("word", "quoted"):
            raise self._error("a column is missing")
        self._next += 1
        column = column.replace('""', '"') if kind == "quoted" else column
        if self._take("is"):
            turned = self._take("not")
            self._expect("null")
            test = Test(column, "null")
            return Condition("not", (test,)) if turned else test
        turned = self._take("not")
        if self._take("in"):
            self._expect("(")
            values = [self._value()]
            while self._take(","):
                values.append(self._value())
            self._expect(")")
            test = Test(column, "in", tuple(values))
            return Condition("not", (test,)) if turned else test
        kind, sign, _ = self._peek()
        if turned or kind != "sign" or sign not in _COMPARE:
            raise self._error("one of = != < <= > >= in is")
        self._next += 1
        return Test(column, sign, (self._value(),))

    def _value(self) -> Value:
        kind, word, _ = self._peek()
        self._next += 1
        if kind == "number":
            return int(word) if re.fullmatch(r"[+-]?\d+", word) else float(word)
        if kind == "text":
            return word.replace("''", "'")
        if (kind, word) in (("sign", "true"), ("sign", "false")):
            return word == "true"
        self._next -= 1
        raise self._error("a value is missing: 'text' in single quotes, or a number")

    def _peek(self) -> tuple[str, str, int]:
        if self._next < len(self._tokens):
            return self._tokens[self._next]
        return "end", "", len(self._text)

    def _take(self, word: str) -> bool:
        kind, found, _ = self._peek()
        if kind == "sign" and found == word:
            self._next += 1
            return True
        return False

    def _expect(self, word: str) -> None:
        if not self._take(word):
            raise self._error(f"{word!r} is missing")

    def _error(self, problem: str, place: int | None = None) -> QueryError:
        place = self._peek()[2] if place is None else place
        shown = self._text[place : place + 20]
        where = f"before {shown!r}" if shown else "at its end"
        return QueryError(f"--where is not understood {where}: {problem}")


class _Binding:
    """Makes expressions of pyarrow, or truths where the folders of a file decide."""

    def __init__(self, types: Mapping[str, Any], constants: Mapping[str, str], path: str) -> None:
        self._types, self._constants, self._path = types, constants, path

    def of(self, condition: Condition | Test) -> Any:
        if isinstance(condition, Test):
            return self._test(condition)
        parts = [self.of(part) for part in condition.parts]
        if condition.word == "not":
            return not parts[0] if isinstance(parts[0], bool) else ~parts[0]
        decides = condition.word == "or"
        if decides in [part for part in parts if isinstance(part, bool)]:
            return decides
        rest = [part for part in parts if not isinstance(part, bool)]
        if not rest:
            return not decides
        joined = rest[0]
        for part in rest[1:]:
            joined = joined | part if decides else joined & part
        return joined

    def _test(self, test: Test) -> Any:
        if test.column in self._types:
            kind = self._types[test.column]
            field = self._field(test.column)
            if test.sign == "null":
                return field.is_null()
            if kind is None:
                return self._untyped(test, field)
            values = [self._cast(value, kind, test.column) for value in test.values]
            return self._compared(test.sign, field, values, kind)
        return self._constant(test, self._constants[test.column])

    def _field(self, name: str) -> Any:
        from pyarrow import compute as pc

        return pc.field(name)

    def _compared(self, sign: str, field: Any, values: Sequence[Any], kind: Any) -> Any:
        """Compare a column of some type with values of that."""
        del kind  # Arrow heeds it
        return _compared(sign, field, values)

    def _untyped(self, test: Test, field: Any) -> Any:
        import pyarrow as pa

        if all(isinstance(value, str) for value in test.values):
            return _compared(test.sign, field, list(test.values))
        if any(isinstance(value, (str, bool)) for value in test.values):
            raise self._mixed(test)
        number = field.cast(pa.float64())
        return _compared(test.sign, number, [float(value) for value in test.values])

    def _constant(self, test: Test, stated: str) -> bool:
        if test.sign == "null":
            return False
        if all(isinstance(value, str) for value in test.values):
            return bool(_compared(test.sign, stated, list(test.values)))
        if any(isinstance(value, (str, bool)) for value in test.values):
            raise self._mixed(test)
        try:
            number = float(stated)
        except ValueError:
            raise InputError(
                f"--where: {test.column}={stated} is not a number: compare it with text, in single "
                "quotes",
                path=self._path,
            ) from None
        return bool(_compared(test.sign, number, list(test.values)))

    def _mixed(self, test: Test) -> InputError:
        return InputError(
            f"--where: {test.column!r} is compared with numbers or with text, not with both, nor "
            "with true and false",
            path=self._path,
        )

    def _cast(self, value: Value, kind: Any, column: str) -> Any:
        """Make a value of a column's type; refuse what can only be a mistake."""
        import pyarrow as pa

        kind = getattr(kind, "value_type", kind)
        is_number = pa.types.is_integer(kind) or pa.types.is_floating(kind)
        is_number = is_number or pa.types.is_decimal(kind)
        of_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        fits = (
            pa.types.is_boolean(kind)
            if isinstance(value, bool)
            else of_text or pa.types.is_temporal(kind)
            if isinstance(value, str)
            else is_number
        )
        try:
            if not fits:
                raise pa.ArrowInvalid
            if pa.types.is_integer(kind) or pa.types.is_decimal(kind):
                return pa.scalar(value)  # which may be 2.5
            return pa.scalar(value).cast(kind)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OverflowError) as error:
            shown = f"'{value}'" if isinstance(value, str) else str(value).lower()
            raise InputError(
                f"--where: column {column!r} holds {kind}, which is not compared with {shown}",
                path=self._path,
            ) from error


class _PolarsBinding(_Binding):
    """Makes expressions of polars that choose the same rows."""

    def _field(self, name: str) -> Any:
        import polars

        return polars.col(name)

    def _compared(self, sign: str, field: Any, values: Sequence[Any], kind: Any) -> Any:
        import pyarrow as pa

        found = _compared(sign, field, [value.as_py() for value in values])
        # To polars, what is not a number is larger than all numbers.
        is_above = sign in (">", ">=") and pa.types.is_floating(kind)
        return found & field.is_not_nan() if is_above else found


def _compared(sign: str, one: Any, values: Sequence[Any]) -> Any:
    if sign != "in":
        return _COMPARE[sign](one, values[0])
    found = one == values[0]
    for value in values[1:]:
        found = found | (one == value)
    return found
