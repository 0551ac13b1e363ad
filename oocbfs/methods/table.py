"""The methods by name: what each does, whose it is, where it runs, and what can be chosen.

How a method runs is in ``oocbfs/methods/programs.py``: its kernels and its host loop.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Rows = Literal["csr", "ocg"]
AUTO = "auto"

DEVICES = ("emulator", "cuda")
EVERYWHERE = ("cpu", "disk", "emulator", "cuda")


@dataclass(frozen=True)
class Option:
    """What can be chosen after the colon; ``several`` values may be joined by a plus sign."""

    name: str
    values: tuple[str, ...]
    default: str
    several: bool = False


@dataclass(frozen=True)
class Method:
    """One way to search: a row of the table.

    ``rows`` are what it reads over PCIe: plain CSR or the compressed rows of the file.
    """

    name: str
    line: str
    paper: str
    engines: tuple[str, ...] = DEVICES
    rows: Rows = "csr"
    options: tuple[Option, ...] = ()

    def option(self, name: str) -> Option | None:
        """Return the option of a name, if the method has it."""
        return next((option for option in self.options if option.name == name), None)


_BLOCK = Option("block", ("256", "1024"), "256")
# With neither, lists of a length that depends on how warps interleave.
_CULLS = Option("filter", ("none", "mask", "warp", "history"), "mask+warp+history", several=True)
_GATHERS = Option(
    "gather",
    ("serial", "warp", "scan", "scan+warp", "scan+warp+block"),
    "scan+warp+block",
)
_BALANCE = Option("balance", ("stride", "fetch1", "fetch32", "donate"), "fetch32")
_BLOCKS = Option("blocks", ("1", "2", "4", "8", "16"), "4")
_PULL = Option("pull", ("thread", "warp"), "thread")

_RTX4070, _V33, _SEI = "rtx4070", "v3.3", "sei"
_MERRILL, _XBFS, _OURS = "merrill", "xbfs", "oocbfs"


def _plain(name: str, line: str, paper: str) -> Method:
    return Method(name, line, paper, options=(_BLOCK,))


def _merrill(name: str, line: str, section: str) -> Method:
    return Method(name, line, f"{_MERRILL} §{section}", options=(_CULLS, _GATHERS))


def _xbfs(name: str, line: str, section: str) -> Method:
    return Method(name, line, f"{_XBFS} §{section}", options=(_BALANCE, _BLOCK))


_TABLE = (
    _plain(
        "simple",
        "a thread for each vertex; those on the level relax their neighbours without atomics",
        f"{_RTX4070} §5.1",
    ),
    _plain(
        "harish",
        "two launches over all vertices: relax by flags, then move the flags",
        f"{_SEI} §2.3",
    ),
    _plain(
        "queue",
        "a thread for each queued vertex; atomicMin on the level, an atomicAdd for each find",
        f"{_RTX4070} §5.2",
    ),
    _plain(
        "scan",
        "plain writes, then degrees counted, scanned and assigned: no atomics",
        f"{_RTX4070} §5.3",
    ),
    _plain(
        "gunrock",
        "queue with parents and a thread for every vertex of the graph",
        f"{_RTX4070} §5.4",
    ),
    _plain(
        "v1",
        "threads take vertices from an atomic work queue; CAS on the level",
        f"{_V33} Table 1",
    ),
    _plain(
        "v2",
        "1,024 threads, each with a run of consecutive vertices of the queue",
        f"{_V33} Table 1",
    ),
    _plain(
        "v3.1",
        "a warp for each vertex, neighbours staged in shared memory",
        f"{_V33} Table 1",
    ),
    Method(
        "v3.2",
        "v3.1, bottom-up on bitmaps where the frontier exceeds n/26, the queue rebuilt over all n",
        f"{_V33} §2.3, §3.1",
        options=(_BLOCK, _PULL),
    ),
    Method(
        "v3.3",
        "compressed rows; both directions append to the queue, one atomicAdd a warp",
        f"{_V33} §3",
        rows="ocg",
        options=(_BLOCK, _PULL),
    ),
    _merrill("expand-contract", "one kernel, from vertex queue to vertex queue", "5.1"),
    _merrill("contract-expand", "one kernel, from edge queue to edge queue", "5.2"),
    _merrill("two-phase", "one kernel expands into an edge queue, the other contracts it", "5.3"),
    _merrill("hybrid", "two-phase while the edge queue is large, else contract-expand", "5.4"),
    _xbfs("scan-free", "CAS on the status, enqueued while searching", "4.1"),
    _xbfs("single-scan", "plain status writes, then a scan of the status that enqueues", "4.1"),
    _xbfs("double-scan", "bottom-up over a sorted list of the unvisited, by two scans", "4.2"),
    _xbfs("no-queue", "the first top-down level after bottom-up walks bottom-up's list", "4.1"),
    _xbfs("xbfs", "chooses among the four by the edges that a level checks", "4.3"),
    _xbfs("async", "xbfs, whose bottom-up gives the next level too where a row shows it", "5.2"),
    Method(
        "gswitch",
        "push or pull, queue or bitmap, balance and fusion chosen for each level by shares",
        f"{_RTX4070} §3, §6.2",
    ),
    Method(
        "edge-blocks",
        "each pass brings all blocks of edges to the GPU until no depth changes",
        f"{_SEI} §2.4",
        options=(_BLOCKS,),
    ),
    Method(
        "semiring",
        "a masked product of matrix and vector over (select, min): the least parent wins",
        f"{_SEI} §2.5",
        engines=("cpu", *DEVICES),
    ),
    Method(
        "list",
        "one thread, a list of neighbours for each vertex and a queue",
        f"{_SEI} §2.1",
        engines=("cpu",),
    ),
    Method("csr", "one thread over plain CSR rows", f"{_SEI} §2.2", engines=("cpu",)),
    Method(
        AUTO,
        "ours: heads first, then the direction that costs less",
        _OURS,
        engines=EVERYWHERE,
        rows="ocg",
    ),
)
METHODS = MappingProxyType({method.name: method for method in _TABLE})
