"""Compile the CUDA sources and the emulator's runtime into one shared object, once per variant."""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from pathlib import Path

from oocbfs.errors import OocbfsError
from oocbfs.kernels.cache_folder import cache_folder
from oocbfs.kernels.compiling import counting
from oocbfs.kernels.cuda.source import (
    BFS_KERNELS,
    FOLDER,
    KernelOptions,
    Variant,
    headers,
    source,
)
from oocbfs.kernels.cuda.source import sources as sources_of

_RUNTIME = Path(__file__).parent
_RUNTIME_UNITS = (
    "fibers.cpp",
    "lanes.cpp",
    "runtime.cpp",
    "accesses.cpp",
    "races.cpp",
    "counts.cpp",
)
_COMMON_FLAGS = ("-std=c++17", "-gdwarf-4", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wextra")
# What CUDA compilers accept silently and g++ would warn about in the kernels.
_KERNEL_FLAGS = ("-Wno-unknown-pragmas", "-Wno-parentheses", "-Wno-unused-function")


_ENTRY = re.compile(r"__global__\s+void\s+(?:__launch_bounds__\([^)]*\)\s*)?(\w+)\s*\(")


class Checks(Enum):
    """What a build watches besides collectives, barriers and host traffic."""

    NONE = "none"
    # Nothing more, but fibers switch by ucontext, as on machines for which no switch is written by
    # hand: 40 times slower.
    UCONTEXT = "ucontext"
    # Out-of-bounds accesses and undefined behaviour; python must run with libasan preloaded.
    MEMORY = "memory"
    # Every access of every lane, for data races and accesses outside every allocation.
    RACES = "races"
    # Every access of every lane, for sectors of device memory and all else that counts.cpp counts.
    COUNTS = "counts"


_RUNTIME_FLAGS = {
    Checks.NONE: ("-O2",),
    Checks.UCONTEXT: ("-O2", "-DEMULATOR_UCONTEXT"),
    Checks.MEMORY: ("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"),
    Checks.RACES: ("-O2", "-DEMULATOR_RACES"),
    Checks.COUNTS: ("-O2", "-DEMULATOR_COUNTS"),
}
# Every access calls a function, which the runtime has in place of the sanitizer's library.
_WATCHED = (
    "-fsanitize=thread",
    "--param=tsan-distinguish-volatile=1",
    "--param=tsan-instrument-func-entry-exit=0",
)
_CHECKED_FLAGS = {
    Checks.NONE: ("-O2",),
    Checks.UCONTEXT: _RUNTIME_FLAGS[Checks.UCONTEXT],
    Checks.MEMORY: _RUNTIME_FLAGS[Checks.MEMORY],
    Checks.RACES: ("-O1", *_WATCHED),
    Checks.COUNTS: ("-O1", *_WATCHED, "-DEMULATOR_COUNTS"),
}
_LINK_FLAGS = {
    Checks.NONE: (),
    Checks.UCONTEXT: (),
    Checks.MEMORY: ("-fsanitize=address,undefined",),
    Checks.RACES: (),
    Checks.COUNTS: (),
}


def find_compiler() -> str:
    """Return the C++ compiler: $CXX, or g++."""
    wanted = os.environ.get("CXX", "g++")
    found = shutil.which(wanted)
    if found is None:
        raise OocbfsError(
            f"the emulator needs a C++ compiler, and {wanted!r} was not found: "
            "install g++ or name one in CXX"
        )
    return found


def build(
    options: KernelOptions,
    checks: Checks = Checks.NONE,
    folder: Path = FOLDER,
    sources: Sequence[Path] = (),
    variants: Sequence[Variant] = (),
) -> Path:
    """Return the shared object for the kernels; compile it if it is not in the cache.

    The kernels are those of ``sources`` and ``variants``, by default the search's in ``folder``,
    which also holds what they include. A source may hold several kernels. They are compiled with
    what CXXFLAGS adds: -O0 takes a fifth of the time, and pays for kernels that run only once.
    """
    compiler = find_compiler()
    flags = (*_CHECKED_FLAGS[checks], *shlex.split(os.environ.get("CXXFLAGS", "")))
    kernels = list(sources)
    if not kernels and not variants:
        kernels = sources_of(BFS_KERNELS, folder)
    names = [name for file in kernels for name in _ENTRY.findall(file.read_text())]
    names += [variant.name for variant in variants]
    unit = "\n".join(
        ['#include "cuda.h"']
        + [f'#include "{file}"' for file in kernels]
        + [line for variant in variants for line in _included(variant, folder)]
        + [f"EMULATOR_EXPORT({name})" for name in names]
    )
    kernels += sorted(set(sources_of(variants, folder)))
    target = _cached(
        checks,
        ".so",
        (unit, compiler, *options.definitions(), *flags, *_RUNTIME_FLAGS[checks]),
        (*_runtime_files(), *headers(folder), *kernels),
    )
    with _locked(target) as is_missing:
        if is_missing:
            objects = [_runtime_object(compiler, name, checks) for name in _RUNTIME_UNITS]
            with _workshop(target) as (work, made):
                generated = work / "kernels.cpp"
                generated.write_text(unit)
                more = (*_KERNEL_FLAGS, *options.definitions(), f"-I{folder}")
                _compile(compiler, generated, work / "kernels.o", (*flags, *more))
                objects.append(work / "kernels.o")
                _run([compiler, "-shared", *_LINK_FLAGS[checks], *objects, "-ldl", "-o", made])
    return target


def _included(variant: Variant, folder: Path) -> Iterator[str]:
    """Write the lines that include a source with definitions that hold for nothing else."""
    for name, value in variant.definitions:
        yield f"#define {name} {value}"
    yield f'#include "{source(variant, folder)}"'
    for name, _ in variant.definitions:
        yield f"#undef {name}"


def _runtime_object(compiler: str, name: str, checks: Checks) -> Path:
    """Return a part of the runtime, which all variants of the kernels share."""
    flags = _RUNTIME_FLAGS[checks]
    target = _cached(checks, ".o", (name, compiler, *flags), _runtime_files())
    with _locked(target) as is_missing:
        if is_missing:
            with _workshop(target) as (_, made):
                _compile(compiler, _RUNTIME / name, made, flags)
    return target


def _runtime_files() -> list[Path]:
    return sorted(path for path in _RUNTIME.iterdir() if path.suffix in (".h", ".cpp"))


def _cached(checks: Checks, suffix: str, words: Iterable[str], files: Iterable[Path]) -> Path:
    """Name a build by everything that goes into it."""
    digest = hashlib.sha256()
    for word in (*words, *_COMMON_FLAGS, *_KERNEL_FLAGS, platform.machine()):
        digest.update(word.encode() + b"\0")
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return cache_folder("emulator") / f"{checks.value}-{digest.hexdigest()[:24]}{suffix}"


@contextmanager
def _locked(target: Path) -> Iterator[bool]:
    """Yield whether a target is missing; of several processes, one makes it and the others wait."""
    if target.exists():
        yield False
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    lock = target.with_suffix(".lock")
    with lock.open("w") as file:
        # Where the system has no locks, two processes may do the same work.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        try:
            yield not target.exists()
        finally:
            lock.unlink(missing_ok=True)


@contextmanager
def _workshop(target: Path) -> Iterator[tuple[Path, Path]]:
    """Yield a folder to work in and a file that becomes the target, whole or not at all."""
    with tempfile.TemporaryDirectory(dir=target.parent) as work:
        made = Path(work) / f"made{target.suffix}"
        yield Path(work), made
        made.replace(target)


def _compile(compiler: str, unit: Path, made: Path, flags: Iterable[str]) -> None:
    _run([compiler, *_COMMON_FLAGS, *flags, f"-I{_RUNTIME}", "-c", unit, "-o", made])


def _run(command: list[str | Path]) -> None:
    with counting():
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        line = " ".join(map(str, command))
        raise OocbfsError(f"the emulator could not be compiled:\n{line}\n{done.stderr.strip()}")
