"""Vectors and bits moved in parallel, which numba has no words for; see ``atomics``."""

# numba calls the code generators by position and reads their annotations nowhere.
from __future__ import annotations

from numba import types
from numba.extending import intrinsic

from oocbfs.kernels.atomics import element_pointer
from oocbfs.kernels.internals import cgutils, ir

_I32 = ir.IntType(32)
_I64 = ir.IntType(64)


def _splat(builder, lanes, value):
    """Return a vector whose lanes all hold the value."""
    zeros = ir.Constant(lanes, None)
    one = builder.insert_element(zeros, value, ir.Constant(_I32, 0))
    first = ir.Constant(ir.VectorType(_I32, lanes.count), None)
    return builder.shuffle_vector(one, zeros, first)


def _move_bits(name, instruction):
    """Make an intrinsic of two words for processors that ``extracts_fast`` is true of."""

    def typed(typingctx, word, mask):
        def codegen(context, builder, signature, args):
            kind = ir.FunctionType(_I64, [_I64, _I64])
            function = cgutils.get_or_insert_function(builder.module, kind, instruction)
            return builder.call(function, args)

        return types.uint64(types.uint64, types.uint64), codegen

    typed.__name__ = name
    return intrinsic(typed)


# Move the lowest bits of a word to where a mask has ones, and from there to the lowest.
spread_bytes = _move_bits("spread_bytes", "llvm.x86.bmi.pdep.64")
extract_bits = _move_bits("extract_bits", "llvm.x86.bmi.pext.64")


@intrinsic
def store_ids(typingctx, out, index, base, low, high):
    """Store the 8 ids that follow ``base`` by gaps in out[index:]; return the sum of the gaps.

    ``low`` and ``high`` are varints of at most two bytes, each in two bytes of its own. A gap is
    one more than its varint.
    """
    lanes, shorts = ir.VectorType(_I32, 8), ir.VectorType(ir.IntType(16), 8)

    def codegen(context, builder, signature, args):
        pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
        zeros = ir.Constant(lanes, None)
        both = ir.Constant(ir.VectorType(_I64, 2), None)
        both = builder.insert_element(both, args[3], ir.Constant(_I32, 0))
        both = builder.insert_element(both, args[4], ir.Constant(_I32, 1))
        varints = builder.bitcast(both, shorts)
        lower = builder.and_(varints, ir.Constant(shorts, [0x7F] * 8))
        upper = builder.lshr(varints, ir.Constant(shorts, [1] * 8))
        upper = builder.and_(upper, ir.Constant(shorts, [0x3F80] * 8))
        sums = builder.zext(builder.or_(lower, upper), lanes)
        sums = builder.add(sums, ir.Constant(lanes, [1] * 8))
        for distance in (1, 2, 4):
            sources = [8 + i if i < distance else i - distance for i in range(8)]
            moved = builder.shuffle_vector(sums, zeros, ir.Constant(lanes, sources))
            sums = builder.add(sums, moved)
        bases = _splat(builder, lanes, builder.trunc(args[2], _I32))
        vector = builder.bitcast(pointer, lanes.as_pointer())
        builder.store(builder.add(sums, bases), vector, align=4)
        return builder.zext(builder.extract_element(sums, ir.Constant(_I32, 7)), _I64)

    return types.int64(out, types.intp, types.int64, types.uint64, types.uint64), codegen


@intrinsic
def copy_ids(typingctx, out, index, ids, begin):
    """Copy ids[begin : begin + 8] to out[index:]."""
    lanes = ir.VectorType(_I32, 8)

    def codegen(context, builder, signature, args):
        source = element_pointer(context, builder, signature.args[2], args[2], args[3])
        pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
        loaded = builder.load(builder.bitcast(source, lanes.as_pointer()), align=4)
        builder.store(loaded, builder.bitcast(pointer, lanes.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(out, types.intp, ids, types.intp), codegen


@intrinsic
def store_copies(typingctx, out, index, value):
    """Store 16 copies of a value in out[index:]."""
    lanes = ir.VectorType(_I32, 16)

    def codegen(context, builder, signature, args):
        pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
        copies = _splat(builder, lanes, builder.trunc(args[2], _I32))
        builder.store(copies, builder.bitcast(pointer, lanes.as_pointer()), align=4)
        return context.get_dummy_value()

    return types.void(out, types.intp, types.int64), codegen


def _change_where(change, context, builder, signature, args):
    """Change those of 64 bytes whose bit is set in the word: one instruction with such masks.

    ``change(old, values)`` returns what becomes of the bytes, given the value in all lanes.
    """
    lanes = ir.VectorType(ir.IntType(8), 64)
    pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
    vector = builder.bitcast(pointer, lanes.as_pointer())
    mask = builder.bitcast(args[2], ir.VectorType(ir.IntType(1), 64))
    old = builder.load(vector, align=1)
    changed = change(old, _splat(builder, lanes, args[3]))
    builder.store(builder.select(mask, changed, old), vector, align=1)
    return context.get_dummy_value()


@intrinsic
def store_where(typingctx, out, index, word, value):
    """Store value in the byte out[index + b] for every bit b of the word."""

    def codegen(context, builder, signature, args):
        return _change_where(lambda old, values: values, context, builder, signature, args)

    return types.void(out, types.intp, types.uint64, types.uint8), codegen


@intrinsic
def where_equal(typingctx, values, index, value):
    """Return a word whose bit b says whether the byte values[index + b] is this value."""
    lanes = ir.VectorType(ir.IntType(8), 64)

    def codegen(context, builder, signature, args):
        pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
        found = builder.load(builder.bitcast(pointer, lanes.as_pointer()), align=1)
        equal = builder.icmp_unsigned("==", found, _splat(builder, lanes, args[2]))
        return builder.bitcast(equal, _I64)

    return types.uint64(values, types.intp, types.uint8), codegen


@intrinsic
def add_where(typingctx, counters, index, word, amount):
    """Add amount to the byte counters[index + b] for every bit b of the word; they wrap around."""

    def codegen(context, builder, signature, args):
        return _change_where(builder.add, context, builder, signature, args)

    return types.void(counters, types.intp, types.uint64, types.uint8), codegen
