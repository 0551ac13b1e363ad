"""All that is used of numba and llvmlite beyond what they promise to keep, and why.

Versions differ in it, so only those are taken that were run: ``scripts/lowest`` runs the lowest,
``scripts/test`` the newest. No other module imports ``numba.core``, ``numba.np`` or ``llvmlite``.

``ir``, ``cgutils``
    write what numba has no words for (atomics, prefetch, vectors, system calls) in LLVM's language.
``host_cpu``
    tells whether the processor moves bits fast, which decides how a row is decoded.
``AttributeTemplate``, ``as_dtype``, ``view_array``
    let ``state.levels`` be an array that lies behind an address: see ``structs``.
``LINKED``, ``APART``
    compile functions that only compiled code calls without making machine code of each.
``FunctionCache`` and all from there on
    keep code under a key of our own, and compile all signatures at the first call: see ``cache``.
``event``
    tells when something is compiled, so that a command can say so.
``global_compiler_lock``
    is held by who compiles or loads code. A process that is forked meanwhile would wait for it for
    ever, so a fork waits.
"""

# numba's classes have no annotations.
from __future__ import annotations

import os
import re
import threading
from functools import partial

import numba

from oocbfs.errors import OocbfsError
from oocbfs.kernels.threads import uninterrupted

# The same as in pyproject.toml. Before 0.66, llvmlite gives the attribute of ApartCompiler to the
# function's result; before 0.63, numba's libraries have no _reload_init.
LOWEST, BEYOND = (0, 66), (0, 69)


def check_version(version):
    """Refuse a numba that this was never run with."""
    if not LOWEST <= tuple(map(int, re.findall(r"\d+", version)[:2])) < BEYOND:
        low, beyond = (".".join(map(str, bound)) for bound in (LOWEST, BEYOND))
        raise OocbfsError(
            f"numba {version} is installed, but kernels need one from {low} to below {beyond}: "
            f"pip install 'numba>={low},<{beyond}'"
        )


check_version(numba.__version__)

# Others may lack what is imported here.
from llvmlite import ir
from llvmlite.binding import get_host_cpu_features, get_host_cpu_name
from numba.core import cgutils, event
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
)
from numba.core.caching import _CacheLocator as CacheLocator
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_lock import global_compiler_lock
from numba.core.compiler_machinery import register_pass
from numba.core.runtime import rtsys
from numba.core.typed_passes import NativeLowering
from numba.core.typing.templates import AttributeTemplate
from numba.np.arrayobj import populate_array
from numba.np.numpy_support import as_dtype

__all__ = [
    "APART",
    "LINKED",
    "AttributeTemplate",
    "CacheLocator",
    "CompileResultCacheImpl",
    "FunctionCache",
    "as_dtype",
    "cgutils",
    "event",
    "ir",
]


# How long a fork waits for another thread that compiles.
_COMPILE_SECONDS = 60.0
_forking = threading.local()


def _let_compiling_end():
    """Wait until no other thread compiles, and let none begin before the process has forked."""
    _forking.is_held = global_compiler_lock._lock.acquire(timeout=_COMPILE_SECONDS)


def _let_compiling_begin():
    """Let threads compile again, if they were kept from it."""
    if _forking.is_held:
        global_compiler_lock._lock.release()


def _let_child_compile():
    """Let a forked process compile, whoever of its parent does."""
    if _forking.is_held:
        global_compiler_lock._lock.release()
    else:
        global_compiler_lock._lock._at_fork_reinit()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_let_compiling_end,
        after_in_parent=_let_compiling_begin,
        after_in_child=_let_child_compile,
    )


def host_cpu():
    """Return the name of this processor, and what it can do."""
    return get_host_cpu_name(), get_host_cpu_features()


def view_array(context, builder, kind, address, shape, strides, item_bytes):
    """Make an array of memory that numba does not own, so that nothing is counted for it."""
    made = context.make_array(kind)(context, builder)
    populate_array(
        made,
        data=builder.inttoptr(address, made.data.type),
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides),
        itemsize=item_bytes,
        meminfo=None,
    )
    return made._getvalue()


def keep_code_in(dispatcher, cache):
    """Let a function find its code in this cache; numba's own choose folder and key themselves."""
    dispatcher._cache = cache


def load_code(cache, signature, target):
    """Load code as numba does, but without what compiling needs.

    numba would first import all of that, and SciPy, if it is there. Code that is compiled needs its
    runtime only.
    """
    rtsys.initialize(target)
    return cache._load_overload(signature, target)


def are_kept(kernel, signatures):
    """Return whether the cache has code for all signatures, or any if none is named; loads none."""
    cache, codegen = kernel._cache, kernel.targetctx.codegen()
    index = cache._cache_file._load_index()
    if not signatures:
        return any(machine == codegen.magic_tuple() for _, machine, _ in index)
    return all(cache._index_key(signature, codegen) in index for signature in signatures)


def types_of(kernel, arguments):
    """Return the types by which numba chooses the code for a call."""
    return tuple(map(kernel.typeof_pyval, arguments))


def can_compile(dispatcher):
    """Return whether a function still takes new signatures."""
    return dispatcher._can_compile


def at_first_call(dispatcher, prepare):
    """Let numba ask this for what to call when it has no code for some arguments."""
    dispatcher._compile_for_args = prepare


def compile_uninterrupted(dispatcher):
    """Let numba compile for new types, or load such code, where no signal interrupts it.

    Half of that leaves its tables broken for the rest of the process, and an exception inside of
    llvmlite's callbacks is lost.
    """
    compile_for = dispatcher._compile_for_args
    dispatcher._compile_for_args = lambda *arguments, **named: uninterrupted(
        partial(compile_for, *arguments, **named)
    )


def allow_conversions(dispatcher, given, wanted):
    """Let code for some types be called with others.

    numba would find out at the first call that this is possible. But if two threads make it, one of
    them learns that there is nothing new to find, and is refused.
    """
    dispatcher.typingctx.install_possible_conversions(given, wanted)


def answer_calls_meanwhile(dispatcher):
    """Let a call find its code that began while a function still took new signatures.

    Such a call wants code for its very types, and is refused if another thread forbids compiling
    while numba looks at the arguments. The last that it asks is this: its types are entered then.
    """
    search = dispatcher._search_new_conversions

    def enter(*arguments):
        found = search(*arguments)
        if found:
            given = types_of(dispatcher, arguments)
            signature = dispatcher.typingctx.resolve_overload(
                dispatcher, dispatcher.nopython_signatures, given, {}
            )
            code = dispatcher.overloads[signature.args].entry_point
            dispatcher._insert([kind._code for kind in given], code, False)
        return found

    dispatcher._search_new_conversions = enter


def address_of_code(kernel):
    """Return the address at which other compiled code can call a kernel with one signature."""
    (compiled,) = kernel.overloads.values()
    return compiled.library.get_pointer_to_function(compiled.fndesc.llvm_cfunc_wrapper_name)


# numba optimises every function together with all that it calls, and makes machine code of that.
# For a function that is called by others, which are called by others, it does so again and again.
# What is compiled by the following is only translated, and then linked into the function that
# Python calls, where all of it is optimised once.


@register_pass(mutates_CFG=True, analysis_only=False)
class _LinkedLowering(NativeLowering):  # type: ignore[misc]
    """Translate a function to LLVM's language, and leave the rest to its callers."""

    _name = "oocbfs_linked_lowering"

    def run_pass(self, state):
        """Translate the function; it has no machine code afterwards."""
        library = state.targetctx.codegen().create_library(state.func_id.func_qualname)
        library.enable_object_caching()

        def finalize():
            library._finalize_dynamic_globals()
            library._finalized = True

        library._optimize_final_module = _do_nothing
        library._finalize_final_module = finalize
        state.library = library
        state.flags.no_compile = True
        super().run_pass(state)
        # Callers know the function by this, which must be a C function, and call it never.
        entry = [].append
        state.targetctx.insert_user_function(entry, state.cr.fndesc, [library])
        state.reload_init.extend(library._reload_init)
        state.cr = state.cr._replace(cfunc=entry)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class _ApartLowering(_LinkedLowering):
    """Translate a function that stays one, however often it is called."""

    _name = "oocbfs_apart_lowering"

    def run_pass(self, state):
        """Translate the function, and forbid LLVM to copy it into its callers."""
        super().run_pass(state)
        function = state.library._final_module.get_function(state.cr.fndesc.llvm_func_name)
        function.add_function_attribute("noinline")
        return True


def _do_nothing():
    """Optimise nothing."""


class LinkedCompiler(CompilerBase):  # type: ignore[misc]
    """numba's own passes, but for the last one."""

    _lowering = _LinkedLowering

    def define_pipelines(self):
        """Return the passes of numba, and another one for the translation."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        for i, (step, _) in enumerate(passes.passes):
            if step is NativeLowering:
                passes.passes[i] = self._lowering, "translate"
        passes.finalize()
        return [passes]


class ApartCompiler(LinkedCompiler):
    """The same for functions that are not copied into their callers."""

    _lowering = _ApartLowering


# For functions that only compiled code calls: no wrappers for Python, and no reference counts
# (numba's own string loops use the same option), which every tuple of arrays would otherwise
# carry along.
LINKED = {
    "nogil": True,
    "_nrt": False,
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    "pipeline_class": LinkedCompiler,
    # Else a function would take it from the one that is compiled first of all that call it.
    "forceinline": False,
}
APART = {**LINKED, "pipeline_class": ApartCompiler}
