"""What numba lacks for shared-memory kernels: atomics, bit tricks, prefetch, clock and yield.

Every array that is reached through an atomic must be passed into the compiled function as an
argument. Indices are never negative and never checked. Little-endian machines only.
"""

# numba calls the code generators by position and reads their annotations nowhere.
from __future__ import annotations

import hashlib

from numba import config, njit, types
from numba.extending import intrinsic

from oocbfs.kernels.internals import APART, LINKED, cgutils, host_cpu, ir


def _name_of_value(value):
    """Return what a variable of an enclosing function stands for, the same in every process."""
    function = getattr(value, "py_func", value)
    name = getattr(function, "__qualname__", None)
    return repr(value) if name is None else f"{function.__module__}.{name}"


def named_apart(function):
    """Let the name of a function that another one makes tell what it was made with.

    Compiled code is linked by names, to which numba adds a number that is only unique in a process.
    Functions that were made with different others, compiled by several processes and loaded from
    the cache into one, would be taken for each other.
    """
    names = []
    for cell in function.__closure__ or ():
        try:
            names.append(_name_of_value(cell.cell_contents))
        except ValueError:  # is given its value later
            names.append("")
    if names:
        digest = hashlib.blake2b("\n".join(names).encode(), digest_size=6)
        function.__qualname__ += f".{digest.hexdigest()}"
    return function


def _decorator(options):
    make = njit(**options)
    return lambda function: make(named_apart(function))


# For functions that only compiled code calls.
kernel = _decorator(LINKED)
# For large ones that several functions call: a copy in each takes long to compile.
apart = _decorator(APART)
# For the smallest ones, which cost less than a call with all those arrays.
inlined = _decorator({**LINKED, "forceinline": True})

_I32 = ir.IntType(32)
_I64 = ir.IntType(64)


def element_pointer(context, builder, array_type, array, index):
    """Return the address of array[index] without a bounds or wrap-around test."""
    view = context.make_array(array_type)(context, builder, array)
    return cgutils.get_item_pointer(context, builder, array_type, view, [index], wraparound=False)


def _read_modify_write(operation, ordering):
    def typed(typingctx, array, index, value):
        def codegen(context, builder, signature, args):
            pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
            return builder.atomic_rmw(operation, pointer, args[2], ordering)

        return array.dtype(array, types.intp, array.dtype), codegen

    typed.__name__ = f"atomic_{operation}"
    typed.__doc__ = f"Apply {operation} to array[index] atomically; return what was there before."
    return intrinsic(typed)


atomic_add = _read_modify_write("add", "acq_rel")
atomic_and = _read_modify_write("and", "acq_rel")
atomic_or = _read_modify_write("or", "monotonic")
atomic_min = _read_modify_write("umin", "monotonic")


@intrinsic
def compare_and_swap(typingctx, array, index, expected, desired):
    """Store desired in array[index] if it holds expected; tell whether it did."""

    def codegen(context, builder, signature, args):
        pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
        pair = builder.cmpxchg(pointer, args[2], args[3], "acq_rel", "monotonic")
        return builder.extract_value(pair, 1)

    return types.boolean(array, types.intp, array.dtype, array.dtype), codegen


@intrinsic
def load_acquire(typingctx, array, index):
    """Read array[index]; later reads see what its writer stored before releasing it."""

    def codegen(context, builder, signature, args):
        pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.load_atomic(pointer, "acquire", signature.args[0].dtype.bitwidth // 8)

    return array.dtype(array, types.intp), codegen


@intrinsic
def store_release(typingctx, array, index, value):
    """Write array[index] after everything this thread wrote before."""

    def codegen(context, builder, signature, args):
        pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
        width = signature.args[0].dtype.bitwidth // 8
        builder.store_atomic(args[2], pointer, "release", width)
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), codegen


@intrinsic
def load_word(typingctx, data, index):
    """Read the 8 bytes from data[index] on as one integer, at any alignment."""

    def codegen(context, builder, signature, args):
        pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
        return builder.load(builder.bitcast(pointer, _I64.as_pointer()), align=1)

    return types.uint64(data, types.intp), codegen


@intrinsic
def prefetch(typingctx, array, index):
    """Ask for the cache line of array[index]; any address is harmless.

    It is brought to the second level of caches. More lines can be on their way there than to the
    first level, and they leave the first level to what is in use. With the first 32 bytes of a row
    asked for, a bottom-up level of the uniform graph of scale 22 took 0.74 of the time.
    """

    def codegen(context, builder, signature, args):
        return _prefetch_to(2, context, builder, signature, args)

    return types.void(array, types.intp), codegen


@intrinsic
def prefetch_once(typingctx, array, index):
    """Ask for the cache line of array[index], which is read once: it takes no room from others."""

    def codegen(context, builder, signature, args):
        return _prefetch_to(0, context, builder, signature, args)

    return types.void(array, types.intp), codegen


def _prefetch_to(locality, context, builder, signature, args):
    pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
    byte_pointer = ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte_pointer, _I32, _I32, _I32])
    function = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    read, where, data = (ir.Constant(_I32, value) for value in (0, locality, 1))
    builder.call(function, [builder.bitcast(pointer, byte_pointer), read, where, data])
    return context.get_dummy_value()


@intrinsic
def store_past_caches(typingctx, array, index, value):
    """Write array[index] to memory without reading its cache line first, which nobody needs."""

    def codegen(context, builder, signature, args):
        pointer = element_pointer(context, builder, signature.args[0], args[0], args[1])
        store = builder.store(args[2], pointer)
        once = builder.module.add_metadata([ir.Constant(_I32, 1)])
        store.set_metadata("nontemporal", once)
        return context.get_dummy_value()

    return types.void(array, types.intp, array.dtype), codegen


@intrinsic
def trailing_zeros(typingctx, word):
    """Count the zero bits below the lowest one; 64 for zero."""

    def codegen(context, builder, signature, args):
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@intrinsic
def leading_zeros(typingctx, word):
    """Count the zero bits above the highest one; 64 for zero."""

    def codegen(context, builder, signature, args):
        return builder.ctlz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), codegen


@intrinsic
def count_ones(typingctx, word):
    """Count the one bits."""

    def codegen(context, builder, signature, args):
        return builder.ctpop(args[0])

    return types.int64(types.uint64), codegen


def extracts_fast() -> bool:
    """Return whether the processor we compile for extracts bits in one step.

    Early Zens do it in microcode, which takes longer than shifting.
    """
    if config.CPU_NAME is not None or config.CPU_FEATURES is not None:
        return False
    name, features = host_cpu()
    return bool(features.get("bmi2")) and name not in ("znver1", "znver2")


@intrinsic
def pack_sevens(typingctx, word):
    """Pack the low seven bits of each of the five lowest bytes, 35 bits in all."""

    def codegen(context, builder, signature, args):
        if extracts_fast():
            kind = ir.FunctionType(_I64, [_I64, _I64])
            function = cgutils.get_or_insert_function(builder.module, kind, "llvm.x86.bmi.pext.64")
            return builder.call(function, [args[0], ir.Constant(_I64, 0x7F_7F_7F_7F_7F)])
        value = ir.Constant(_I64, 0)
        for group in range(5):
            moved = builder.lshr(args[0], ir.Constant(_I64, group))
            kept = builder.and_(moved, ir.Constant(_I64, 0x7F << 7 * group))
            value = builder.or_(value, kept)
        return value

    return types.uint64(types.uint64), codegen


@intrinsic
def yield_core(typingctx):
    """Let another thread run on this core."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(_I32, [])
        builder.call(cgutils.get_or_insert_function(builder.module, kind, "sched_yield"), [])
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def sleep_microseconds(typingctx, duration):
    """Sleep for at least this long."""

    def codegen(context, builder, signature, args):
        kind = ir.FunctionType(_I32, [_I32])
        function = cgutils.get_or_insert_function(builder.module, kind, "usleep")
        builder.call(function, [builder.trunc(args[0], _I32)])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@intrinsic
def nanoseconds(typingctx, clock):
    """Read the POSIX clock (time.CLOCK_MONOTONIC) in nanoseconds."""

    def codegen(context, builder, signature, args):
        timespec = ir.ArrayType(_I64, 2)
        out = cgutils.alloca_once(builder, timespec)
        kind = ir.FunctionType(_I32, [_I32, timespec.as_pointer()])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        builder.call(function, [builder.trunc(args[0], _I32), out])
        value = builder.load(out)
        seconds, rest = (builder.extract_value(value, part) for part in (0, 1))
        return builder.add(builder.mul(seconds, ir.Constant(_I64, 1_000_000_000)), rest)

    return types.int64(types.int64), codegen
