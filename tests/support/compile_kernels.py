"""Compile every kernel, or load it from the cache, before workers start that need the same ones.

``python -m tests.support.compile_kernels NUMBER`` compiles one part of them.
"""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from tests.support import children

# Compiling all takes minutes, more where the machine is busy.
_PATIENCE_SECONDS = 1800
# Folders of kernels in parts that take about the same time.
PARTS = (
    (
        "oocbfs.kernels.bfs",
        "oocbfs.kernels.components",
        "oocbfs.kernels.convert",
        "oocbfs.kernels.distances",
        "oocbfs.kernels.methods",
        "oocbfs.kernels.ordered",
        "oocbfs.kernels.shards",
        "oocbfs.kernels.point",
    ),
    (
        "oocbfs.kernels.many",
        "oocbfs.kernels.names",
        "oocbfs.kernels.results",
        "oocbfs.kernels.disk",
        "oocbfs.disk",
        "oocbfs.cluster.shards",
    ),
)


def compile_all() -> None:
    """Compile the parts side by side."""
    command = [sys.executable, "-m", "tests.support.compile_kernels"]
    root = Path(__file__).parents[2]
    started = [subprocess.Popen([*command, str(number)], cwd=root) for number in range(len(PARTS))]
    try:
        for process in started:
            children.finish(process, timeout=_PATIENCE_SECONDS)
    finally:
        for process in started:
            process.kill()
    ends = [process.returncode for process in started]
    if any(ends):
        raise RuntimeError(f"kernels cannot be compiled: {command} ended with {ends}")


def compile_part(number: int) -> None:
    """Prepare the kernels of some folders."""
    for package in PARTS[number]:
        for info in pkgutil.iter_modules(import_module(package).__path__):
            module = import_module(f"{package}.{info.name}")
            if module.__name__ == "oocbfs.disk.many":
                for width in module.WORDS:
                    module.load(width)
            elif hasattr(module, "load"):
                module.load()
            for value in vars(module).values():
                if hasattr(value, "prepare"):
                    value.prepare()


if __name__ == "__main__":
    compile_part(int(sys.argv[1]))
