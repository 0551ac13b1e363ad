"""Columns as fields of text, and lines of fields: any number of columns, joined two at a time.

Field i is text[bounds[i] : bounds[i + 1]].
"""

from __future__ import annotations

import numpy as np
from numba import types
from numpy.typing import NDArray

from oocbfs.kernels.array_types import I64, READ_I64, READ_U8, READ_U64, U8
from oocbfs.kernels.cache import compiled
from oocbfs.kernels.names.format import BESIDE_BYTES, put_name
from oocbfs.kernels.results.format_text import put_decimal

Fields = tuple[NDArray[np.uint8], NDArray[np.int64]]
_NUMBER_BYTES = 21
_MINUS = np.uint8(45)


@compiled(types.void(U8, I64, READ_U64, types.boolean), _nrt=False)
def _put_numbers(out, bounds, values, signed):
    """Write each number, which is one with a sign if ``signed``."""
    place = 0
    for i in range(values.size):
        value = values[i]
        if signed and np.int64(value) < 0:
            out[place] = _MINUS
            place += 1
            value = np.uint64(-np.int64(value))
        place = put_decimal(out, place, value)
        bounds[i + 1] = place


@compiled(types.void(U8, I64, READ_U8, READ_I64, types.uint8), _nrt=False)
def _put_names(out, bounds, text, names, separator):
    """Write each name, in quotes where it needs them."""
    place = 0
    for i in range(bounds.size - 1):
        place = put_name(out, place, text, names[i], names[i + 1], separator)
        bounds[i + 1] = place


@compiled(types.void(U8, I64, READ_U8, READ_I64, READ_U8, READ_I64, types.uint8), _nrt=False)
def _join(out, bounds, text, fields, other_text, other_fields, separator):
    """Write each field, the separator, and the field of the other column."""
    place = 0
    for i in range(bounds.size - 1):
        for k in range(fields[i], fields[i + 1]):
            out[place] = text[k]
            place += 1
        out[place] = separator
        place += 1
        for k in range(other_fields[i], other_fields[i + 1]):
            out[place] = other_text[k]
            place += 1
        bounds[i + 1] = place


def number_fields(values: NDArray[np.int64] | NDArray[np.uint64]) -> Fields:
    """Write numbers as fields."""
    out = np.empty(_NUMBER_BYTES * values.size, np.uint8)
    bounds = np.zeros(values.size + 1, np.int64)
    _put_numbers(out, bounds, values.view(np.uint64), values.dtype.kind == "i")
    return out[: int(bounds[-1])], bounds


def name_fields(text: NDArray[np.uint8], names: NDArray[np.int64], separator: str) -> Fields:
    """Write names as fields, in quotes where they would be taken for something else."""
    out = np.empty(2 * text.size + BESIDE_BYTES * names.size, np.uint8)
    bounds = np.zeros(names.size, np.int64)
    _put_names(out, bounds, text, names, np.uint8(ord(separator)))
    return out[: int(bounds[-1])], bounds


def join_fields(one: Fields, other: Fields, separator: str) -> Fields:
    """Join the fields of two columns, with a separator between them."""
    out = np.empty(one[0].size + other[0].size + one[1].size - 1, np.uint8)
    bounds = np.zeros(one[1].size, np.int64)
    _join(out, bounds, *one, *other, np.uint8(ord(separator)))
    return out, bounds
