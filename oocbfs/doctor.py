"""Look at this machine: what it has, what is missing, what that would enable and how to get it.

Imports nothing that might be missing; versions come from what is installed, not from importing it.
"""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

from oocbfs.errors import OocbfsError
from oocbfs.formats.io import machine
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.gpu.nvidia import HEADERS_WHEEL, LIBRARY, Driver, ask_driver, find_headers
from oocbfs.memory import available_bytes, format_size, locked_limit

Target = tuple[str | int, ...]
# Packages that not everybody needs: what each enables, and what pip installs for it.
_EXTRAS = (
    ("matplotlib", "--plot", "'oocbfs[plot]'"),
    ("distributed", "--cluster tcp://…", "'oocbfs[cluster]'"),
    ("mpi4py", "--cluster mpi", "'oocbfs[mpi]'"),
    ("argcomplete", "oocbfs completion", "'oocbfs[completion]'"),
    ("pyarrow", "Parquet, Feather and Arrow, to_arrow()", "'oocbfs[arrow]'"),
    ("pandas", "to_pandas()", "pandas"),
    ("scipy", "SciPy matrices as input, Graph.to_scipy()", "scipy"),
)
# How many sources a batch takes at a time where the graph stays on disk.
_WIDTHS = (8, 16, 32, 64)
_RESULTS = ("levels", "validation", "prediction", "format_text", "components", "checking", "tuples")
_NAMES = ("fields", "parse", "words", "table", "sort", "merge", "stored", "format")


@dataclass(frozen=True)
class Finding:
    """One part: what was found, or else what it would enable and how to get it.

    ``values`` are what was found in numbers, for programs.
    """

    part: str
    found: str | None
    enables: str = ""
    get: str = ""
    values: dict[str, int | str | None] = field(default_factory=dict)


def examine(library: str = LIBRARY) -> list[Finding]:
    """Look at everything that an engine or an option depends on."""
    driver = ask_driver(library)
    return [
        *_machine(),
        Finding("cpu engine", _versions("numba", "numpy"), "every search", "pip install oocbfs"),
        _cupy(),
        _nvrtc(),
        Finding(
            "CUDA headers",
            find_headers(),
            "compiling the kernels for a GPU",
            f"pip install {HEADERS_WHEEL}",
        ),
        *_gpus(driver),
        _locked_memory(),
        _compiler(),
        *(
            Finding(package, _versions(package), enables, f"pip install {wanted}")
            for package, enables, wanted in _EXTRAS
        ),
    ]


def _machine() -> Iterator[Finding]:
    name = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    except OSError:
        pass
    cores: dict[str, int | str | None] = {
        "usable_cores": machine.usable_cores(),
        "cores": os.cpu_count(),
    }
    shown = f"{cores['usable_cores']} cores usable of {cores['cores']}"
    yield Finding("CPU", f"{name}, {shown}", values=cores)
    total, available = machine.total_bytes(), available_bytes()
    yield Finding(
        "RAM",
        f"{format_size(total)}, {format_size(available)} available",
        values={"total_bytes": total, "available_bytes": available},
    )


def _versions(*packages: str) -> str | None:
    """Name the packages and their versions; None if one is missing."""
    try:
        return ", ".join(f"{package} {metadata.version(package)}" for package in packages)
    except metadata.PackageNotFoundError:
        return None


def _cupy() -> Finding:
    builds = sorted(
        f"{distribution.metadata['Name']} {distribution.version}"
        for distribution in metadata.distributions()
        if (distribution.metadata["Name"] or "").lower().split("-")[0] == "cupy"
    )
    enables, get = "--engine cuda", "pip install 'oocbfs[gpu]'"
    if not builds or find_spec("cupy") is None:
        return Finding("CuPy", None, enables, get)
    if len(builds) > 1:
        listed = ", ".join(builds)
        return Finding("CuPy", None, enables, f"keep one of {listed}: they overwrite each other")
    if "rocm" in builds[0]:
        return Finding("CuPy", None, enables, f"replace {builds[0]}: pip install cupy-cuda12x")
    return Finding("CuPy", builds[0])


def _nvrtc() -> Finding:
    found = next(
        (
            f"{distribution.metadata['Name']} {distribution.version}"
            for distribution in metadata.distributions()
            if (distribution.metadata["Name"] or "").startswith("nvidia-cuda-nvrtc")
        ),
        None,
    )
    toolkit = os.environ.get("CUDA_PATH") or shutil.which("nvcc")
    if found is None and toolkit:
        found = f"CUDA toolkit ({toolkit})"
    get = "pip install 'oocbfs[gpu]', or a CUDA toolkit"
    return Finding("NVRTC", found, "compiling the kernels for a GPU", get)


def _gpus(driver: Driver) -> Iterator[Finding]:
    yield Finding(
        "NVIDIA driver",
        driver.version if driver.problem is None else None,
        "--engine cuda",
        driver.problem or "",
    )
    for number, gpu in enumerate(driver.gpus):
        link = str(gpu.link) if gpu.link else None
        yield Finding(
            f"GPU {number}",
            f"{gpu.name}, {format_size(gpu.vram_bytes)}, "
            f"compute capability {gpu.capability}, PCIe {link or 'link unknown'}",
            values={
                "name": gpu.name,
                "vram_bytes": gpu.vram_bytes,
                "link": link,
            },
        )


def _locked_memory() -> Finding:
    limit = locked_limit()
    if limit is None:
        return Finding("memory lock limit", "none", values={"limit_bytes": None})
    advice = "where a driver refuses to pin more, 'ulimit -l unlimited' raises it"
    found = f"{format_size(limit)}; {advice}"
    return Finding("memory lock limit", found, values={"limit_bytes": limit})


def _compiler() -> Finding:
    wanted = os.environ.get("CXX", "g++")
    get = "install g++, or name a compiler in CXX"
    return Finding("C++ compiler", shutil.which(wanted), "--engine emulator", get)


def compile_ahead(on_done: Callable[[], object]) -> None:
    """Compile what every command needs into the cache, in as many processes as there are cores.

    ``on_done`` is called after each of NUM_COMPILED parts.

    Raises
    ------
    OocbfsError
        If something cannot be compiled.
    """
    for _ in ordered_map(_compile, _COMPILED, available_threads()):
        on_done()


def _compile(targets: tuple[Target, ...]) -> None:
    """Compile in a process."""
    from oocbfs.kernels.compiling import start

    process = start(targets)
    try:
        _, errors = process.communicate()
    except BaseException:
        process.kill()
        raise
    if process.returncode:
        last = errors.decode(errors="replace").strip().rpartition("\n")[2]
        raise OocbfsError(f"a kernel does not compile here: {last}")


def _modules(*names: str) -> tuple[Target, ...]:
    return tuple(
        ("oocbfs.kernels.compiling", "prepare_module", f"oocbfs.kernels.{name}") for name in names
    )


# What one process each compiles, the longest first.
_COMPILED: tuple[tuple[Target, ...], ...] = (
    (("oocbfs.kernels.bfs.search", "load"),),
    (("oocbfs.kernels.many.search", "load"),),
    (("oocbfs.disk.bfs", "load"),),
    tuple(("oocbfs.disk.many", "load", width) for width in _WIDTHS),
    (("oocbfs.kernels.components.connect", "load"), ("oocbfs.disk.components", "load")),
    (("oocbfs.kernels.shards.run", "load"), ("oocbfs.cluster.shards.disk", "load")),
    _modules(*(f"shards.{name}" for name in ("copying", "forest", "merge", "messages", "to_ids"))),
    _modules(
        "convert.parse",
        "convert.parse_columns",
        "convert.ids",
        "convert.radix",
        "convert.arrange",
        "convert.graph_keys",
        "convert.gaps",
        "convert.choose",
        "frames",
        "disk.read",
    ),
    _modules("convert.webgraph", "ordered.search"),
    _modules("components.strong", "distances.bounds", "distances.walks", "distances.cut"),
    _modules("point.pairs", "point.lookup"),
    _modules("point.near", "point.edges", "point.listing"),
    _modules("convert.cluster", "convert.communities", "convert.generate", "varint"),
    _modules("many.spread", "methods.sequential"),
    _modules(*(f"results.{name}" for name in _RESULTS)),
    _modules(*(f"names.{name}" for name in _NAMES)),
)
NUM_COMPILED = len(_COMPILED)
