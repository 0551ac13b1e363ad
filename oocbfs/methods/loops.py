"""Host loops of methods that do the same on every level, or look at the frontier's size alone."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from oocbfs.kernels.methods.axes import SCAN_TILE, Word
from oocbfs.methods.run import Run

# The share of all vertices above which v3.2 and v3.3 go bottom-up: one in so many.
BOTTOM_UP_SHARE = 26
TOP_DOWN, BOTTOM_UP = "top-down", "bottom-up"


def _level_by_level(step: Callable[[Run], None]) -> Callable[[Run], None]:
    """Make the loop that takes a step for each level, until one finds or changes nothing."""

    @wraps(step)
    def loop(run: Run) -> None:
        while run.frontier and run.wants_more():
            run.reset()
            step(run)

    return loop


def _see_changes(run: Run, direction: str, *, claims: bool = True) -> None:
    """End a step that fills no queue: only whether it changed anything is known."""
    run.frontier = run.read(Word.CHANGED)
    run.note(direction, claims=claims)


def _take_queue(run: Run, direction: str, *, claims: bool = True) -> None:
    """End a step that has filled the next vertex queue."""
    run.swap("queue")
    run.frontier = run.read_queue()
    run.note(direction, claims=claims)


@_level_by_level
def until_unchanged(run: Run) -> None:
    """Relax from all vertices of the level, until a level changes nothing."""
    run.launch("expand", run.num_vertices)
    _see_changes(run, TOP_DOWN)


@_level_by_level
def by_flags(run: Run) -> None:
    """Relax from all vertices with a flag, then move the flags."""
    run.launch("expand", run.num_vertices)
    run.launch_steps("move", 0, run.num_vertices)
    _see_changes(run, TOP_DOWN)


@_level_by_level
def by_product(run: Run) -> None:
    """Multiply by the whole matrix, masked by what is visited, until nothing is new."""
    run.launch("pull", run.num_vertices, inward=True)
    _see_changes(run, BOTTOM_UP, claims=False)


def _expand_queue(run: Run) -> None:
    run.launch("expand", run.frontier)
    _take_queue(run, TOP_DOWN)


@_level_by_level
def by_queue(run: Run) -> None:
    """Go from one vertex queue to the next."""
    _expand_queue(run)


@_level_by_level
def by_scan(run: Run) -> None:
    """Mark, count, scan and assign; the sums of the tiles are added up by the host."""
    run.launch("expand", run.frontier)
    run.launch("count", run.frontier)
    run.scan_tiles(run.frontier)
    num_tiles = -(-run.frontier // SCAN_TILE)
    ends = np.cumsum(run.device.download(run.memory("sums"), num_tiles), dtype=np.uint64)
    found = int(ends[-1])
    before = np.concatenate([[0], ends[:-1]]).astype(np.uint32)
    run.device.upload(run.memory("sums"), before)
    run.check_queue(found)
    run.launch("assign", run.frontier)
    run.swap("queue")
    run.frontier = found
    run.note(TOP_DOWN)


@_level_by_level
def by_single_scan(run: Run) -> None:
    """Mark the level in the array of levels, then look there for the queue."""
    run.launch("mark", run.frontier)
    run.compact("queue", run.num_vertices, run.level)
    _take_queue(run, TOP_DOWN)


@_level_by_level
def by_share(run: Run) -> None:
    """Go bottom-up where the frontier is a large share; both directions fill the queue."""
    if _is_large(run):
        run.launch("pull", run.num_vertices, inward=True)
        _take_queue(run, BOTTOM_UP, claims=False)
    else:
        _expand_queue(run)


@_level_by_level
def by_share_with_rebuild(run: Run) -> None:
    """Go bottom-up on bitmaps where the frontier is a large share; then rebuild the queue."""
    if _is_large(run):
        run.compact("bits", run.num_vertices, run.level - 1)
        run.launch("pull", run.num_vertices, inward=True)
        run.compact("rebuild", run.num_vertices, run.level)
        _take_queue(run, BOTTOM_UP, claims=False)
    else:
        _expand_queue(run)


def _is_large(run: Run) -> bool:
    return run.frontier * BOTTOM_UP_SHARE > run.num_vertices


@_level_by_level
def two_phase(run: Run) -> None:
    """Expand the vertex queue into the edge queue, and contract that."""
    run.launch("expand", run.frontier)
    run.launch("contract", _take_edges(run))
    _take_queue(run, TOP_DOWN)


def _take_edges(run: Run) -> int:
    """Let the next edge queue take the place of the present one; return how much is in it."""
    run.swap("edges")
    mine, theirs = (int(run.arguments[name]) for name in ("edge_parents", "next_edge_parents"))
    run.arguments["edge_parents"], run.arguments["next_edge_parents"] = theirs, mine
    return run.read_queue(Word.EDGE_END)


@_level_by_level
def contract_expand(run: Run) -> None:
    """Go from one edge queue to the next; the first holds the sources, which level 0 finds."""
    _contract_expand(run)


def _contract_expand(run: Run) -> None:
    run.launch("contract_expand", run.frontier)
    run.frontier = _take_edges(run)
    run.note(TOP_DOWN)


@_level_by_level
def hybrid(run: Run) -> None:
    """Contract and expand in one kernel while the edge queue has no more edges than threads run."""
    resident = run.num_blocks("contract") * run.search.program.threads("contract")
    if run.frontier <= resident:
        _contract_expand(run)
        return
    run.launch("contract", run.frontier)
    run.swap("queue")
    run.launch("expand", run.read_queue())
    run.frontier = _take_edges(run)
    run.note(TOP_DOWN)


def block_borders(offsets: NDArray[np.uint64], num_blocks: int) -> NDArray[np.int64]:
    """Return the vertices at which blocks of about the same number of edges begin, and the end."""
    num_vertices = offsets.size - 1
    wanted = np.arange(1, num_blocks) * (int(offsets[-1]) / num_blocks)
    inner = np.searchsorted(offsets, wanted)
    return np.unique(np.concatenate([[0], inner, [num_vertices]])).astype(np.int64)


def by_blocks(run: Run) -> None:
    """Bring all edges to the device, block by block, until a pass changes no depth."""
    rows = run.search.in_rows
    borders = block_borders(rows.offsets, run.search.program.num_blocks)
    changed = 1
    while changed:
        run.reset()
        for first, end in pairwise(borders):
            edges = rows.columns[int(rows.offsets[first]) : int(rows.offsets[end])]
            run.device.upload(run.memory("block"), edges)
            run.copied_bytes += edges.nbytes
            run.launch_steps("relax", int(first), int(end - first), inward=True)
        changed = run.read(Word.CHANGED)
        run.note("relax", claims=None)
