"""Host loops of methods that choose a way for each level by the edges it would check."""

from __future__ import annotations

from dataclasses import dataclass

from oocbfs.kernels.methods.axes import Word
from oocbfs.methods.run import NO_LEVEL, Run

# Of all edges: from here on a level goes bottom-up (xbfs section 4.3).
XBFS_SHARE = 0.1
TOP_DOWN, BOTTOM_UP = "top-down", "bottom-up"


@dataclass
class _Xbfs:
    """The levels of xbfs: which parts of it are used, and what the last level left."""

    run: Run
    with_list: bool
    with_mark: bool
    # The edges of the frontier, and of the one before.
    edges: int = 0
    edges_before: int = 0
    # Items of bottom-up's list that holds the frontier, where the queue does not.
    listed: int = -1
    alive: bool = True
    # The level after was found in part: only a scan of all levels finds its whole frontier.
    early: bool = False

    def loop(self) -> None:
        """Search."""
        run = self.run
        offsets = run.search.out_rows.offsets
        self.edges = int((offsets[run.sources + 1] - offsets[run.sources]).sum())
        while self.alive and run.wants_more():
            run.reset()
            if self.edges >= XBFS_SHARE * run.num_arcs and self.edges:
                self._bottom_up()
            else:
                self._top_down()

    def _bottom_up(self) -> None:
        """Let a sorted list of the unvisited look for the frontier."""
        run = self.run
        count = run.list_unvisited()
        run.reset()
        run.launch("pull", count, inward=True)
        changed, _, next_edges, early = run.read_words(Word.CHANGED, Word.EARLY)
        self.alive, self.early = bool(changed) or self.early, bool(early)
        self.listed = count
        self._go_on(next_edges)
        run.note(BOTTOM_UP, claims=False)

    def _top_down(self) -> None:
        run = self.run
        by_list = self.listed >= 0 and self.with_list
        if self.listed >= 0 and not by_list:
            run.compact("queue", run.num_vertices, run.level - 1)
            run.swap("queue")
            run.frontier = run.read_queue()
            run.reset()
        count = self.listed if by_list else run.frontier
        growth = self.edges / self.edges_before if self.edges_before else 1.0
        if self.early or (self.with_mark and self.edges * growth >= XBFS_SHARE * run.num_arcs):
            run.launch("mark_list" if by_list else "mark", count)
            run.compact("queue", run.num_vertices, run.level)
            kind = "top-down, scan"
        else:
            run.launch("expand_list" if by_list else "expand", count)
            kind = "top-down, list" if by_list else TOP_DOWN
        run.swap("queue")
        found, *_, next_edges = run.read_words(Word.QUEUE_END, Word.NEXT_EDGES)
        run.check_queue(found)
        run.frontier = found
        self.listed, self.early, self.alive = -1, False, found > 0
        self._go_on(next_edges)
        run.note(kind)

    def _go_on(self, next_edges: int) -> None:
        self.edges_before, self.edges = self.edges, next_edges


def double_scan(run: Run) -> None:
    """Go bottom-up over lists of the unvisited; top-down scans all levels for its queue."""
    _Xbfs(run, with_list=False, with_mark=False).loop()


def no_queue(run: Run) -> None:
    """Go on top-down with bottom-up's list."""
    _Xbfs(run, with_list=True, with_mark=False).loop()


def xbfs(run: Run) -> None:
    """Use a scan of the levels before the first level bottom-up, too."""
    _Xbfs(run, with_list=True, with_mark=True).loop()


# GSWITCH: shares of edges and of vertices.
_PULL_FACTOR = 5
_FEW_INACTIVE = 0.01
_MANY_ACTIVE = 0.06
_FUSED_SHARE = 0.001
# Mean degree of the frontier from which a warp takes a row, and the whole block takes its rows.
_WARP_DEGREE = 8
_STRICT_DEGREE = 64


def gswitch(run: Run) -> None:
    """Choose direction, form of the frontier, balance and fusion by shares."""
    offsets = run.search.out_rows.offsets
    edges = int((offsets[run.sources + 1] - offsets[run.sources]).sum())
    unvisited, unvisited_edges = run.num_vertices - run.frontier, run.num_arcs - edges
    while run.frontier and run.wants_more():
        run.reset()
        push, pull = (part / max(1, run.num_arcs) for part in (edges, unvisited_edges))
        if push + pull < _FUSED_SHARE:
            run.launch("fused", run.frontier)
            kind, claims = "top-down, fused", True
        elif _PULL_FACTOR * push < pull:
            kind, claims = _push(run, edges), True
        else:
            kind, claims = _pull(run, unvisited), False
        if kind != "top-down, fused":
            run.compact("queue", run.num_vertices, run.level)
        run.swap("queue")
        found, *_, edges = run.read_words(Word.QUEUE_END, Word.NEXT_EDGES)
        run.check_queue(found)
        run.frontier = found
        unvisited -= found
        unvisited_edges -= edges
        run.note(kind, claims=claims)


def _push(run: Run, edges: int) -> str:
    degree = edges / run.frontier
    is_many = run.frontier > _MANY_ACTIVE * run.num_vertices
    balance = "thread" if degree < _WARP_DEGREE else "warp"
    if is_many:
        run.launch(f"push_all_{balance}", run.num_vertices)
        return f"top-down, bitmap, {balance}"
    balance = "strict" if degree >= _STRICT_DEGREE else balance
    run.launch(f"push_{balance}", run.frontier)
    return f"top-down, queue, {balance}"


def _pull(run: Run, unvisited: int) -> str:
    if unvisited >= _FEW_INACTIVE * run.num_vertices:
        run.launch("pull_all", run.num_vertices, inward=True)
        return "bottom-up, bitmap"
    with run.into_list():
        run.compact("unvisited", run.num_vertices, NO_LEVEL)
    count = run.read(Word.QUEUE_END)
    run.reset()
    run.launch("pull_list", count, inward=True)
    return "bottom-up, queue"
