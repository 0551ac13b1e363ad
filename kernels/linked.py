"""Compile functions that only compiled code calls without making machine code of each.

numba optimises every function together with all that it calls, and makes machine code of that. For
a function that is called by others, which are called by others, it does so again and again. What is
compiled here is only translated, and then linked into the function that Python calls, where all of
it is optimised once.
"""

# numba's classes have no annotations.
from __future__ import annotations

from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import NativeLowering


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
        """Give the passes of numba, and another one for the translation."""
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        for i, (step, _) in enumerate(passes.passes):
            if step is NativeLowering:
                passes.passes[i] = self._lowering, "translate"
        passes.finalize()
        return [passes]


class ApartCompiler(LinkedCompiler):
    """The same for functions that are not copied into their callers."""

    _lowering = _ApartLowering
