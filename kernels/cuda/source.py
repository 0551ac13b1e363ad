"""The CUDA sources and what they share with Python: options, control words, argument structs."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np

from oocbfs.kernels.constants import MAX_VARINT_BYTES, SAMPLE_STRIDE, SEGMENT_BYTES

FOLDER = Path(__file__).parents[1]
BLOCK_THREADS = 256
# Blocks that a multiprocessor must be able to hold at a time: the compiler may then use 64
# registers a thread, and spills none.
BLOCKS_PER_MULTIPROCESSOR = 4
SMALL_BLOCK_THREADS = 512
# Bytes of a row that one lane of small_levels decodes while the others do theirs: as many as rows
# of roads and meshes have.
SMALL_BYTES_PER_VERTEX = 8
# What a level reads from disk, or does not. Smaller blocks waste fewer bytes, but a disk takes as
# long for a read of 4 KB as for one of 16 KB (scripts/bench disk).
DISK_BLOCK_BYTES = 16 << 10
# How many levels one launch of small_levels may run, each of which records its queue end.
MAX_SMALL_LEVELS = 4096
# Sectors of tails that small_levels keeps in device memory, at most: 512 KB, a power of two.
CACHED_SECTORS = 1 << 14
# While a search runs on a device, the level of a vertex is a byte: modulo this number, so that two
# values are left, for vertices that are not reached and for levels of long ago.
LEVEL_PERIOD = 254
# Control words in which sectors of rows are summed up: slow, fast, and what of each a cut can save.
SECTOR_WORDS = 4
# Parts of the vertices. A level may be cut in two at one of the borders between them.
NUM_RANGES = 8

# The folder and file of each kernel.
_BFS = {
    "initialise": "bfs/initialise",
    "visit_sources": "bfs/visit_sources",
    "bottom_up_heads": "bfs/bottom_up_heads",
    "bottom_up_tails": "bfs/bottom_up_tails",
    "top_down": "bfs/top_down",
    "top_down_hubs": "bfs/top_down_hubs",
    "small_levels": "bfs/small_levels",
    "mark_blocks": "disk/mark_blocks",
    "top_down_staged": "disk/top_down_staged",
    "bottom_up_staged": "disk/bottom_up_staged",
    "forget": "results/forget",
    "deep_levels": "results/deep_levels",
    "invert_order": "results/invert_order",
    "levels_to_ids": "results/levels_to_ids",
    "deep_levels_to_ids": "results/deep_levels_to_ids",
    "parents_to_ids": "results/parents_to_ids",
}
# Of the check of what a search found.
_CHECK = {
    "check_rows": "results/check_rows",
    "check_hubs": "results/check_hubs",
    "check_found": "results/check_found",
}
_COMPONENTS = {
    "components_heads": "components/heads",
    "components_link": "components/link",
    "components_sample": "components/sample",
    "components_firsts": "components/firsts",
    "components_tails": "components/tails",
    "components_compress": "components/compress",
}
# Of searches from many sources at once.
_MANY = {
    "many_initialise": "many/initialise",
    "many_sources": "many/sources",
    "many_top_down": "many/top_down",
    "many_top_down_hubs": "many/top_down_hubs",
    "many_heads": "many/heads",
    "many_tails": "many/tails",
    "many_commit": "many/commit",
}
# Of searches on several devices, beside some of those above.
_DEVICES = {
    "gather_words": "devices/gather_words",
    "scatter_words": "devices/scatter_words",
    "merge_words": "devices/merge_words",
    "find_parents": "devices/find_parents",
}
# Of nothing but time: see oocbfs/first_contact/rates.py.
_MEASURE = {
    "measure_nothing": "measure/nothing",
    "measure_stream": "measure/stream",
    "measure_scattered": "measure/scattered",
    "measure_chase": "measure/chase",
}
_FILES = {**_BFS, **_CHECK, **_COMPONENTS, **_MANY, **_DEVICES, **_MEASURE}
BFS_KERNELS = tuple(_BFS)
CHECK_KERNELS = tuple(_CHECK)
# Compiled with KernelOptions(block_cyclic=True).
DEVICES_KERNELS = (
    "initialise",
    "visit_sources",
    "bottom_up_heads",
    "bottom_up_tails",
    "top_down",
    "top_down_hubs",
    "deep_levels",
    *_DEVICES,
)
COMPONENTS_KERNELS = tuple(_COMPONENTS)
MANY_KERNELS = tuple(_MANY)
MEASURE_KERNELS = tuple(_MEASURE)
KERNELS = tuple(_FILES)
# Bits that searches from many sources keep of a level plus 1, and the number of levels that fit.
MANY_PLANES = 8
MOST_MANY_LEVELS = (1 << MANY_PLANES) - 2


class Control(IntEnum):
    """Positions of the control words. Sums only grow; the host takes differences between levels."""

    QUEUE_END = 0
    # Sectors of the rows of vertices that any kernel of large levels but bottom_up_heads found:
    # SECTOR_WORDS words, as are the other two.
    FOUND_SECTORS = 1
    HEADS_RAN = 5
    HEADS_FOUND = 6
    HEADS_FOUND_SECTORS = 7
    PENDING = 11
    # Number of hubs listed so far << 32 | number of their segments.
    HUBS = 12
    LEVELS_RUN = 13
    # Of the frontier at which small_levels stopped.
    FRONTIER_SECTORS = 14
    DAMAGED = 18
    SHORT_ROWS = 19
    LONG_ROWS = 20
    HUB_ROWS = 21
    # Neighbours that heads passes looked at, and all other kernels; and how many of these another
    # lane had claimed in the meantime.
    HEADS_TESTED = 22
    EDGES = 23
    CLAIMS_LOST = 24
    # Turns in which small_levels used its cache.
    CACHE_TURNS = 25
    # What searching is expected to read, by the memory in which rows begin: one word for each of
    # PARTS, twice.
    PENDING_SLOW_BYTES = 26
    PENDING_FAST_BYTES = 26 + NUM_RANGES


CONTROL_WORDS = Control.PENDING_FAST_BYTES + NUM_RANGES

ROWS_STRUCT = np.dtype(
    [(name, "<u8") for name in ("heads", "starts", "bases", "slow", "fast")]
    + [(name, "<u8") for name in ("fast_begin", "fast_end", "readable_begin", "readable_end")]
    + [("num_vertices", "<u4"), ("shift", "<u4"), ("num_ids", "<u4")],
    align=True,
)
SEARCH_STRUCT = np.dtype(
    [
        (name, "<u8")
        for name in (
            "levels",
            "parents",
            "queue",
            "pending",
            "visited",
            "claimed",
            "hubs",
            "hub_segments",
            "control",
            "level_ends",
            "expanded_blocks",
            "searched_blocks",
            "cuts",
            "first_target",
            "cache_tags",
            "cache_data",
            "cache_sectors",
            "reached",
        )
    ]
)
BLOCK_CYCLIC_STRUCT = np.dtype(
    [(name, "<u8") for name in ("reached", "marked", "sent", "received", "num_words", "stride")]
    + [("devices", "<u4"), ("device", "<u4")]
)
# What brings results into the order of ids.
TO_IDS_STRUCT = np.dtype([(name, "<u8") for name in ("stored_at", "order", "num_vertices")])
SECTORS_STRUCT = np.dtype(
    [(name, "<u8") for name in ("slow", "fast", "skippable_slow", "skippable_fast")]
)
CHECKED_STRUCT = np.dtype([(name, "<u8") for name in ("confirmed", "broken")])
MANY_STRUCT = np.dtype(
    [
        (name, "<u8")
        for name in (
            "seen",
            "frontier",
            "next_frontier",
            "planes",
            "queue",
            "pending",
            "hubs",
            "hub_segments",
            "control",
        )
    ]
)


class ForestControl(IntEnum):
    """Positions of the control words of connected components."""

    DAMAGED = 0
    EDGES = 1
    TAIL_BYTES = 2


FOREST_STRUCT = np.dtype([(name, "<u8") for name in ("labels", "samples", "control")])


@dataclass(frozen=True)
class KernelOptions:
    """Variants of the kernels, chosen when they are compiled."""

    with_parents: bool = True
    # Bytes that one pending vertex loads at a time: 32 (a sector) or 128 (a line).
    probe_bytes: int = 32
    # Count rows by length class; for tests and statistics.
    count_rows: bool = False
    # Several devices have a shard each: see kernels/devices.
    block_cyclic: bool = False

    def definitions(self) -> tuple[str, ...]:
        """Return the compiler options that select this variant."""
        values = {
            **asdict(self),
            **{f"control_{word.name}": int(word) for word in Control},
            "control_words": CONTROL_WORDS,
            "num_ranges": NUM_RANGES,
            "sector_words": SECTOR_WORDS,
            "segment_bytes": SEGMENT_BYTES,
            "disk_block_bytes": DISK_BLOCK_BYTES,
            "block_threads": BLOCK_THREADS,
            "blocks_per_multiprocessor": BLOCKS_PER_MULTIPROCESSOR,
            "small_block_threads": SMALL_BLOCK_THREADS,
            "small_bytes_per_vertex": SMALL_BYTES_PER_VERTEX,
            **{f"forest_{word.name}": int(word) for word in ForestControl},
            "forest_words": len(ForestControl),
            "forest_struct_bytes": FOREST_STRUCT.itemsize,
            "max_varint_bytes": MAX_VARINT_BYTES,
            "sample_stride": SAMPLE_STRIDE,
            "rows_struct_bytes": ROWS_STRUCT.itemsize,
            "many_planes": MANY_PLANES,
            "many_struct_bytes": MANY_STRUCT.itemsize,
            "search_struct_bytes": SEARCH_STRUCT.itemsize,
            "block_cyclic_struct_bytes": BLOCK_CYCLIC_STRUCT.itemsize,
            "to_ids_struct_bytes": TO_IDS_STRUCT.itemsize,
            "level_period": LEVEL_PERIOD,
            "checked_struct_bytes": CHECKED_STRUCT.itemsize,
        }
        return tuple(f"-D{name.upper()}={int(value)}u" for name, value in values.items())


class Variant(NamedTuple):
    """A kernel under a name of its own: a source that is compiled with definitions of its own."""

    name: str
    file: str
    definitions: tuple[tuple[str, str], ...]


# A name of the table above, or a variant.
Kernel = str | Variant


def name_of(kernel: Kernel) -> str:
    """Return the name that a kernel is launched by."""
    return kernel if isinstance(kernel, str) else kernel.name


def definitions_of(kernel: Kernel) -> tuple[str, ...]:
    """Return the compiler options that only this kernel has."""
    if isinstance(kernel, str):
        return ()
    return tuple(f"-D{name}={value}" for name, value in kernel.definitions)


def headers(folder: Path = FOLDER) -> list[Path]:
    """Return the files that kernels include."""
    found = sorted(folder.glob("*/*.cuh"))
    if not found:
        raise FileNotFoundError(f"{folder}: holds no CUDA headers: install oocbfs again")
    return found


def header_name(header: Path) -> str:
    """Return a header's name as kernels include it: with its folder."""
    return f"{header.parent.name}/{header.name}"


def compiler_options(
    options: KernelOptions, folder: Path = FOLDER, kernel: Kernel = ""
) -> tuple[str, ...]:
    """Return what NVRTC is called with.

    Compiled kernels are kept by source and options: what is included must show in these.
    """
    digest = hashlib.sha256()
    for path in headers(folder):
        digest.update(header_name(path).encode() + b"\0" + path.read_bytes() + b"\0")
    included = f"-DHEADERS_DIGEST=0x{digest.hexdigest()[:16]}"
    own = definitions_of(kernel)
    return ("--std=c++17", f"-I{folder}", included, *options.definitions(), *own)


def source(kernel: Kernel, folder: Path = FOLDER) -> Path:
    """Return the file that holds a kernel."""
    file = _FILES[kernel] if isinstance(kernel, str) else kernel.file
    return folder / f"{file}.cu"


def sources(kernels: Sequence[Kernel], folder: Path = FOLDER) -> list[Path]:
    """Return the files that hold some kernels."""
    return [source(kernel, folder) for kernel in kernels]
