"""Named tuples that compiled code gets as one address.

numba passes a tuple of arrays to every function with all fields of all arrays, a hundred numbers or
more, and most of the time to compile such functions goes there. Here the arrays of a named tuple
are described in one block of memory, and functions pass its address on. In their source nothing
changes: ``state.levels`` is an array.
"""

# numba calls the code generators by position and reads their annotations nowhere.
from __future__ import annotations

import ctypes
from array import array
from functools import cache
from itertools import chain, compress, count
from operator import is_not
from typing import TYPE_CHECKING, Any, get_type_hints

import numpy as np
from numba import types
from numba.extending import (
    infer_getattr,
    intrinsic,
    lower_getattr_generic,
    models,
    register_model,
)

from oocbfs.kernels.internals import AttributeTemplate, as_dtype, ir, view_array

if TYPE_CHECKING:
    from numpy.typing import NDArray

_I64 = ir.IntType(64)
_Expected = tuple[np.dtype[Any], int]


class StructType(types.Type):  # type: ignore[misc]
    """How compiled code sees a named tuple: its fields are arrays, as annotated, or int64.

    Fields of a named tuple in it are fields of the struct.
    """

    def __init__(self, kind: type[tuple[Any, ...]]) -> None:
        hints = get_type_hints(kind, include_extras=True)
        self.is_nested = any(map(_is_named_tuple, hints.values()))
        self.fields: dict[str, Any] = {}
        for name, hint in hints.items():
            if _is_named_tuple(hint):
                self.fields |= struct_type(hint).fields
            else:
                self.fields[name] = types.int64 if hint is int else hint.__metadata__[0]
        self.places: dict[str, int] = {}
        # The place of each field, and of arrays the dtype and the axes that compiled code expects.
        self.described: list[tuple[int, _Expected | None]] = []
        end = 0
        for field, of in self.fields.items():
            is_array = isinstance(of, types.Array)
            expected = (np.dtype(as_dtype(of.dtype)), of.ndim) if is_array else None
            self.places[field] = end
            self.described.append((end, expected))
            end += 1 + (of.ndim if is_array else 0)
        super().__init__(f"Struct({kind.__name__})")

    def values_of(self, values: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the values of a named tuple, and of one in it, in the order of the fields."""
        if not self.is_nested:
            return values
        return (*chain.from_iterable(v if isinstance(v, tuple) else (v,) for v in values),)


def _is_named_tuple(hint: Any) -> bool:
    return hasattr(hint, "_fields")


@cache
def struct_type(kind: type[tuple[Any, ...]]) -> StructType:
    """Return how compiled code sees a kind of named tuple."""
    return StructType(kind)


class Struct:
    """The values of a named tuple, described in a block of memory: they live as long as it does.

    Unless ``release`` lets them go.
    """

    def __init__(self, values: tuple[Any, ...]) -> None:
        self._kind = struct_type(type(values))
        self._values = self._kind.values_of(values)
        pairs = zip(self._kind.described, self._values, strict=True)
        # Not of NumPy, which takes several times as long for so few.
        self._words = array(
            "q", (word for (_, expected), value in pairs for word in _describe(expected, value))
        )
        self.address: int = self._words.buffer_info()[0]

    def with_values(self, values: tuple[Any, ...]) -> Struct:
        """Make a struct of other values; only those that are not the same cost time.

        It is another block of memory if any differs: a slow worker may still read this one.
        """
        values = self._kind.values_of(values)
        changed = [*compress(count(), map(is_not, values, self._values))]
        if not changed:
            return self
        other = Struct.__new__(Struct)
        other._kind, other._values, other._words = self._kind, values, self._words[:]
        for i in changed:
            place, expected = self._kind.described[i]
            for number, word in enumerate(_describe(expected, values[i]), place):
                other._words[number] = word
        other.address = other._words.buffer_info()[0]
        return other

    def release(self) -> None:
        """Let go of the values; who still reads the block must not look at arrays any more."""
        self._values = (None,) * len(self._values)


def _describe(expected: _Expected | None, value: Any) -> tuple[int, ...]:
    """Return the words that describe a value; compiled code takes it to be what it expects."""
    if expected is None:
        return (int(value),)
    if (value.dtype, value.ndim) != expected or not value.flags.c_contiguous:
        raise TypeError(f"compiled code cannot take {value.dtype} {value.shape} for {expected}")
    return (_address(value), *value.shape)


def _address(values: NDArray[Any]) -> int:
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(values))
    except (TypeError, ValueError):  # read-only, or empty; this takes five times as long
        address: int = values.__array_interface__["data"][0]
        return address


@register_model(StructType)
class _StructModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _I64)


@infer_getattr
class _StructAttributes(AttributeTemplate):  # type: ignore[misc]
    key = StructType

    def generic_resolve(self, struct, name):
        return struct.fields.get(name)


@lower_getattr_generic(StructType)
def _load_field(context, builder, struct, address, name):
    """Make the array that a field describes; what the block says does not change meanwhile."""
    block = builder.inttoptr(address, _I64.as_pointer())
    unchanging = builder.module.add_metadata([])

    def load(number):
        place = ir.Constant(_I64, struct.places[name] + number)
        word = builder.load(builder.gep(block, [place]))
        word.set_metadata("invariant.load", unchanging)
        return word

    kind = struct.fields[name]
    if not isinstance(kind, types.Array):
        return load(0)
    item_bytes = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    shape = [load(1 + axis) for axis in range(kind.ndim)]
    strides = [ir.Constant(_I64, item_bytes)]
    for size in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], size))
    size = ir.Constant(_I64, item_bytes)
    return view_array(context, builder, kind, load(0), shape, strides, size)


def at_address(kind: type[tuple[Any, ...]]) -> Any:
    """Make the function by which compiled code sees a kind of named tuple at its address."""
    struct = struct_type(kind)

    @intrinsic
    def view(typingctx, address):
        def codegen(context, builder, signature, args):
            return args[0]

        return struct(types.int64), codegen

    return view


@intrinsic
def call_at(typingctx, address, rows_out, rows_in, state, thread):
    """Call a compiled function of three structs and a number at its address."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(_I64, [_I64] * 4)
        return builder.call(builder.inttoptr(args[0], kind.as_pointer()), args[1:])

    arguments = types.int64, rows_out, rows_in, state, types.int64
    return types.int64(*arguments), codegen
