"""Compiled kernels, kept on disk under a key that covers every file they are compiled from.

numba keeps what it compiled as long as the file that holds the function does not change. But a
kernel also contains the functions and constants that it takes from other files, and a change of
those must not leave old code in use. So the key here is a digest of a kernel's file and of all
files that it imports.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import re
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numba import config, njit, types

from oocbfs.kernels.atomics import named_apart
from oocbfs.kernels.cache_folder import cache_folder
from oocbfs.kernels.internals import (
    CacheLocator,
    CompileResultCacheImpl,
    FunctionCache,
    allow_conversions,
    answer_calls_meanwhile,
    are_kept,
    at_first_call,
    can_compile,
    compile_uninterrupted,
    keep_code_in,
    load_code,
    types_of,
)
from oocbfs.kernels.threads import renewed_after_fork, uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Several threads may call a kernel for the first time.
_preparing = renewed_after_fork(threading.RLock())
_PACKAGE = "oocbfs.kernels"
_ROOT = Path(__file__).parent
_IMPORT = re.compile(
    rf"^\s*(?:from|import)\s+{re.escape(_PACKAGE)}\b([\w.]*)(?:\s+import\s+(\([^)]*\)|.*))?",
    re.MULTILINE,
)

_KERNEL = re.compile(r"^ *@(?:kernel|inlined|apart|compiled)\b", re.MULTILINE)


def compiled(*signatures: object, **options: object) -> Callable[[Callable[..., Any]], Any]:
    """Compile a function for these signatures, or for the first arguments that it is called with.

    Options are those of ``numba.njit``. The function is compiled when it is first called: a command
    needs few of all kernels that it imports. The compiled code is kept on disk, and runs without
    the GIL.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        dispatcher = njit(nogil=True, **options)(named_apart(function))
        keep_code_in(dispatcher, _KernelCache(function))

        def compile_all() -> None:
            with _preparing:
                if can_compile(dispatcher):
                    for signature in signatures:
                        dispatcher.compile(signature)
                        _take_writable(dispatcher, signature)
                    dispatcher.disable_compile()

        def prepare(*_: object) -> object:
            """Compile all signatures, or load them from the cache."""
            if can_compile(dispatcher):
                uninterrupted(compile_all)
            return dispatcher

        dispatcher.wanted_signatures = signatures
        if signatures:
            dispatcher.prepare = prepare
            at_first_call(dispatcher, prepare)
            answer_calls_meanwhile(dispatcher)
        else:
            compile_uninterrupted(dispatcher)
        return dispatcher

    return decorate


def _take_writable(dispatcher: Any, signature: Any) -> None:
    """Let compiled code take arrays that can be written to where it only reads."""
    given = [
        kind.copy(readonly=False) if isinstance(kind, types.Array) else kind
        for kind in signature.args
    ]
    allow_conversions(dispatcher, given, signature.args)


def is_cached(kernel: Any, called_with: tuple[Any, ...] = ()) -> bool:
    """Return whether a kernel is compiled, here or in the cache: for some arguments, or for all.

    All are the signatures that it has, or the only types that it is called with.
    """
    if not can_compile(kernel):
        return True
    signatures = kernel.wanted_signatures
    if called_with:
        signatures = (types_of(kernel, called_with),)
    with suppress(OSError, EOFError, pickle.UnpicklingError):  # what is damaged is compiled anew
        return bool(are_kept(kernel, signatures))
    return False


def nothing_is_cached() -> bool:
    """Return whether this is the first time that anything is compiled."""
    folders = (_folder_for(folder) for folder in (_ROOT, *_ROOT.iterdir()) if folder.is_dir())
    return not any(any(folder.glob("*.nbi")) for folder in folders)


def count_kernels(path: Path) -> int:
    """Count the functions that are compiled with a kernel in this file, roughly."""
    return sum(len(_KERNEL.findall(_read(file)[1])) for file in imported_files(path))


def imported_files(path: Path) -> set[Path]:
    """Return a kernel's file and all files of kernels that it imports, directly or not."""
    found: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file not in found:
            found.add(file)
            waiting.extend(_imports(_read(file)[1]))
    return found


@cache
def _read(path: Path) -> tuple[bytes, str]:
    content = path.read_bytes()
    return hashlib.sha256(content).digest(), content.decode()


def _imports(text: str) -> Iterator[Path]:
    """Yield the files of kernels that a file's text names in its imports."""
    for module, names in _IMPORT.findall(text):
        base = _ROOT.joinpath(*module.split(".")[1:])
        candidates = [base, *(base / name for name in re.findall(r"\w+", names))]
        for candidate in candidates:
            yield from filter(
                Path.is_file, (candidate.with_suffix(".py"), candidate / "__init__.py")
            )


@cache
def source_digest(path: Path) -> bytes:
    """Digest everything that a kernel in this file is compiled from."""
    digest = hashlib.sha256()
    for file in sorted(imported_files(path)):
        digest.update(os.path.relpath(file, _ROOT).encode() + b"\0" + _read(file)[0])
    return digest.digest()


@cache
def _folder_for(sources: Path) -> Path:
    """Return the folder for the kernels of a folder: beside them, or where the user can write."""
    name = f"{sources.name}_{hashlib.sha256(os.fsencode(sources)).hexdigest()[:24]}"
    asked = Path(config.CACHE_DIR) / name if config.CACHE_DIR else sources / "__pycache__"
    return cache_folder(name, asked)


class _Locator(CacheLocator):  # type: ignore[misc]
    """Where numba keeps a function's code, and by what that goes out of date."""

    def __init__(self, function: Callable[..., Any], path: str) -> None:
        self._py_file = path  # numba reads it in its warnings
        self._line = function.__code__.co_firstlineno

    def get_cache_path(self) -> str:
        return str(_folder_for(Path(self._py_file).parent))

    def get_source_stamp(self) -> bytes:
        return source_digest(Path(self._py_file))

    def get_disambiguator(self) -> str:
        return str(self._line)

    @classmethod
    def from_function(cls, function: Callable[..., Any], path: str) -> _Locator:
        return cls(function, path)


class _Implementation(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (_Locator,)


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Loads and saves code; a cache that is damaged or not writable costs time, not the run."""

    _impl_class = _Implementation

    def load_overload(self, signature: object, target: object) -> object:
        # Unpickling a damaged file may raise anything.
        try:
            return load_code(self, signature, target)
        except Exception:  # noqa: BLE001
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, *arguments: object) -> None:
        with suppress(OSError):
            super().save_overload(*arguments)
