"""How each method runs: its kernels, by their axes, its arrays, and its host loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.cuda.source import Variant
from oocbfs.kernels.methods.axes import SCAN_SEGMENT, SCAN_TILE, Axes, TallyWord, Word
from oocbfs.methods import adaptive, loops
from oocbfs.methods.choice import MethodChoice
from oocbfs.methods.run import Run, entry

# Room in queues: what plain claims let pass twice needs more than the graph has.
_SPARE_SHARE = 0.5
_SPARE_ITEMS = 1 << 16


class Sizes(NamedTuple):
    """What arrays are as large as."""

    num_vertices: int
    num_arcs: int
    largest_block: int


@dataclass(frozen=True)
class Program:
    """A method with its options: what is compiled, what is allocated, and what the host does."""

    loop: Callable[[Run], None]
    # By the names that loops use: the source and its axes.
    parts: Mapping[str, tuple[str, Axes]]
    needs: frozenset[str] = frozenset()
    pulls: bool = False
    with_parents: bool = True
    # Launched with a thread for each vertex of the graph, and with so many threads.
    whole_grid: str = ""
    num_threads: int | None = None
    num_blocks: int = 0
    from_edges: bool = False
    start: Axes = field(default_factory=Axes)

    @property
    def kernels(self) -> list[Variant]:
        """All kernels, those that every method begins with included."""
        begins = {name: ("relax", replace(self.start, phase=name)) for name in ("start", "sources")}
        parts = begins | dict(self.parts)
        return [axes.variant(entry(name), file) for name, (file, axes) in parts.items()]

    def threads(self, kernel: str) -> int:
        """Return the threads of a block."""
        return self.parts[kernel][1].block if kernel in self.parts else self.start.block

    def lanes(self, kernel: str) -> int:
        """Return the threads that work on one item."""
        is_warp = kernel in self.parts and self.parts[kernel][1].gather == "warp"
        return 32 if is_warp else 1

    def largest_block(self, offsets: NDArray[np.uint64]) -> int:
        """Return the edges of the largest block, where edges come in blocks."""
        if not self.num_blocks:
            return 0
        borders = loops.block_borders(offsets, self.num_blocks)
        return int(np.diff(offsets[borders].astype(np.int64)).max(initial=0))

    def arrays(self, sizes: Sizes) -> dict[str, tuple[int, Any]]:
        """Return the size and type of every array."""
        n, m, largest_block = sizes
        queue = int(n * (1 + _SPARE_SHARE)) + _SPARE_ITEMS
        edges = int(m * (1 + _SPARE_SHARE)) + _SPARE_ITEMS
        counts = max(n, -(-n // SCAN_SEGMENT))
        shapes: dict[str, tuple[int, Any]] = {
            "levels": (n, np.uint32),
            "queue": (queue, np.uint32),
            "next_queue": (queue, np.uint32),
            "words": (len(Word), np.uint64),
            "tallies": (len(TallyWord), np.uint64),
        }
        if self.with_parents:
            shapes["parents"] = (n, np.uint32)
        possible = {
            "edges": (edges, np.uint32),
            "next_edges": (edges, np.uint32),
            "flags": (n, np.uint32),
            "next_flags": (n, np.uint32),
            "mask": (-(-n // 32), np.uint32),
            "bits": (-(-n // 32), np.uint32),
            "counts": (counts, np.uint32),
            "sums": (-(-counts // SCAN_TILE), np.uint32),
            "list": (n, np.uint32),
            "block": (largest_block, np.uint32),
        }
        shapes |= {name: possible[name] for name in self.needs}
        if self.with_parents and "edges" in self.needs:
            shapes |= {f"{name}_parents": (edges, np.uint32) for name in ("edge", "next_edge")}
        return shapes


def make_program(choice: MethodChoice, *, with_parents: bool) -> Program:
    """Put a method together."""
    options = choice.options
    base = Axes(rows=choice.method.rows, parents=with_parents, block=int(options.get("block", 256)))
    return _MAKERS[choice.name](choice, base)


def _simple(choice: MethodChoice, base: Axes) -> Program:
    expand = replace(base, input="all", emit="changed")
    return _program(base, loops.until_unchanged, {"expand": ("expand", expand)})


def _harish(choice: MethodChoice, base: Axes) -> Program:
    parts = {
        "expand": ("expand", replace(base, input="flags", emit="flags")),
        "move": ("relax", replace(base, phase="move")),
    }
    return _program(base, loops.by_flags, parts, "flags", "next_flags")


def _by_queue(**axes: Any) -> Callable[[MethodChoice, Axes], Program]:
    """Make a method that goes from vertex queue to vertex queue in one kernel."""

    def make(choice: MethodChoice, base: Axes) -> Program:
        return _program(base, loops.by_queue, {"expand": ("expand", replace(base, **axes))})

    return make


def _gunrock(choice: MethodChoice, base: Axes) -> Program:
    base = replace(base, parents=True)
    made = _by_queue(claim="min", emit="atomic")(choice, base)
    return replace(made, whole_grid="expand")


def _v2(choice: MethodChoice, base: Axes) -> Program:
    made = _by_queue(claim="cas", emit="atomic", balance="runs")(choice, base)
    return replace(made, num_threads=1024)


def _scan(choice: MethodChoice, base: Axes) -> Program:
    base = replace(base, parents=True)  # the parent settles which of several finds counts
    parts = {
        "expand": ("expand", base),
        "count": ("expand", replace(base, claim="settled", emit="count")),
        "tiles": ("prefix", Axes(phase="tiles", block=SCAN_TILE)),
        "assign": ("expand", replace(base, claim="settled", emit="assign")),
    }
    return _program(base, loops.by_scan, parts, "counts", "sums")


def _v32(choice: MethodChoice, base: Axes) -> Program:
    pull = replace(base, input="unmarked", bits=True, gather=_pull_gather(choice))
    parts = {
        "expand": ("expand", replace(base, claim="cas", emit="atomic", gather="warp")),
        "bits": ("compact", replace(base, phase="bits", input="all")),
        "pull": ("pull", pull),
        "rebuild": ("compact", replace(base, phase="queue", input="all", emit="atomic")),
    }
    return _program(base, loops.by_share_with_rebuild, parts, "mask", "bits", pulls=True)


def _v33(choice: MethodChoice, base: Axes) -> Program:
    pull = replace(base, input="all", emit="warp", gather=_pull_gather(choice))
    parts = {
        "expand": ("expand", replace(base, claim="test_cas", emit="warp", gather="warp")),
        "pull": ("pull", pull),
    }
    return _program(base, loops.by_share, parts, pulls=True)


def _pull_gather(choice: MethodChoice) -> str:
    return "warp" if choice.options["pull"] == "warp" else "serial"


def _merrill(choice: MethodChoice, base: Axes) -> Program:
    culls = choice.chosen("filter")
    base = replace(
        base,
        gather=choice.options["gather"],
        mask="mask" in culls,
        warp_cull="warp" in culls,
        history="history" in culls,
    )
    mask = ("mask",) if base.mask else ()
    if choice.name == "expand-contract":
        expand = {"expand": ("expand", replace(base, emit="block"))}
        return _program(base, loops.by_queue, expand, *mask)
    expand_only = replace(
        base, claim="all", emit="block", mask=False, warp_cull=False, history=False
    )
    both = {"expand": ("expand", expand_only), "contract": ("contract", base)}
    fused = {"contract_expand": ("contract", replace(base, expand=True))}
    loop, parts = {
        "two-phase": (loops.two_phase, both),
        "contract-expand": (loops.contract_expand, fused),
        "hybrid": (loops.hybrid, both | fused),
    }[choice.name]
    made = _program(base, loop, parts, "edges", "next_edges", *mask)
    return replace(made, from_edges=choice.name != "two-phase")


def _xbfs(choice: MethodChoice, base: Axes) -> Program:
    base = replace(base, balance=choice.options["balance"])
    counted = replace(base, sum_edges=True)
    scan_free = ("expand", replace(counted, claim="test_cas", emit="atomic"))
    queue = ("compact", replace(counted, phase="queue", input="all", emit="atomic"))
    if choice.name == "scan-free":
        return _program(base, loops.by_queue, {"expand": scan_free})
    if choice.name == "single-scan":
        parts = {"mark": ("expand", base), "queue": queue}
        return _program(base, loops.by_single_scan, parts)
    stop = "later" if choice.name == "async" else "first"
    parts = {
        "expand": scan_free,
        "queue": queue,
        "count": ("compact", replace(base, phase="count", input="all")),
        "tiles": ("prefix", Axes(phase="tiles", block=SCAN_TILE)),
        "sums": ("prefix", Axes(phase="sums", block=SCAN_TILE)),
        "write": ("compact", replace(base, phase="write", input="all")),
        "pull": ("pull", replace(counted, input="list", emit="changed", stop=stop)),
    }
    loop = adaptive.double_scan
    if choice.name != "double-scan":
        parts["expand_list"] = ("expand", replace(scan_free[1], input="list"))
        loop = adaptive.no_queue
    if choice.name in ("xbfs", "async"):
        parts["mark"] = ("expand", base)
        parts["mark_list"] = ("expand", replace(base, input="list"))
        loop = adaptive.xbfs
    return _program(base, loop, parts, "counts", "sums", "list", pulls=True)


def _gswitch(choice: MethodChoice, base: Axes) -> Program:
    fused = replace(base, claim="test_cas", emit="warp", sum_edges=True)
    queue = replace(base, phase="queue", input="all", emit="warp", sum_edges=True)
    parts = {
        "fused": ("expand", fused),
        "push_thread": ("expand", base),
        "push_warp": ("expand", replace(base, gather="warp")),
        "push_strict": ("expand", replace(base, gather="scan")),
        "push_all_thread": ("expand", replace(base, input="all")),
        "push_all_warp": ("expand", replace(base, input="all", gather="warp")),
        "pull_all": ("pull", replace(base, input="all", emit="changed")),
        "pull_list": ("pull", replace(base, input="list", emit="changed")),
        "queue": ("compact", queue),
        "unvisited": ("compact", replace(queue, sum_edges=False)),
    }
    return _program(base, adaptive.gswitch, parts, "list", pulls=True)


def _edge_blocks(choice: MethodChoice, base: Axes) -> Program:
    parts = {"relax": ("relax", replace(base, phase="block"))}
    made = _program(base, loops.by_blocks, parts, "block", pulls=True)
    return replace(made, num_blocks=int(choice.options["blocks"]))


def _semiring(choice: MethodChoice, base: Axes) -> Program:
    base = replace(base, parents=True)
    pull = replace(base, input="all", stop="never", emit="changed")
    return _program(base, loops.by_product, {"pull": ("pull", pull)}, pulls=True)


def _program(
    base: Axes,
    loop: Callable[[Run], None],
    parts: Mapping[str, tuple[str, Axes]],
    *needs: str,
    pulls: bool = False,
) -> Program:
    return Program(
        loop=loop,
        parts=parts,
        needs=frozenset(needs),
        pulls=pulls,
        with_parents=base.parents,
        start=Axes(parents=base.parents, block=base.block),
    )


_MAKERS: dict[str, Callable[[MethodChoice, Axes], Program]] = {
    "simple": _simple,
    "harish": _harish,
    "queue": _by_queue(claim="min", emit="atomic"),
    "scan": _scan,
    "gunrock": _gunrock,
    "v1": _by_queue(claim="cas", emit="atomic", balance="work"),
    "v2": _v2,
    "v3.1": _by_queue(claim="cas", emit="atomic", gather="warp"),
    "v3.2": _v32,
    "v3.3": _v33,
    **dict.fromkeys(("expand-contract", "contract-expand", "two-phase", "hybrid"), _merrill),
    **dict.fromkeys(("scan-free", "single-scan", "double-scan", "no-queue", "xbfs"), _xbfs),
    "async": _xbfs,
    "gswitch": _gswitch,
    "edge-blocks": _edge_blocks,
    "semiring": _semiring,
}
