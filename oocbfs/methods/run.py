"""One search by a method: what its host loop works with, and what is noted of every level."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import FormatError, QueueError
from oocbfs.gpu.device import Argument, Memory, u32, u64
from oocbfs.kernels.constants import NO_HEAD
from oocbfs.kernels.methods.axes import SCAN_SEGMENT, SCAN_TILE, TallyWord, Word
from oocbfs.results.counts import Counts, sum_counts
from oocbfs.results.levels import Beside, LevelLog

if TYPE_CHECKING:
    from oocbfs.methods.search import MethodSearch

SECTOR_BYTES = 32
NO_LEVEL = NO_HEAD


def entry(kernel: str) -> str:
    """Return the name that a method's kernel is compiled under."""
    return f"method_{kernel}"


class Run:
    """What a host loop works with: launches, words, queues that change places."""

    def __init__(
        self,
        search: MethodSearch,
        sources: NDArray[np.uint32],
        max_depth: int | None,
        target: int | None,
    ) -> None:
        self.search = search
        self.device = search.device
        self.num_vertices = search.num_vertices
        self.num_arcs = search.num_arcs
        self.arguments = search.arguments.copy()
        # The level that the next step finds, and the number of vertices in the queue, or of edges.
        self.level = 1
        self.frontier = sources.size
        self.sources = sources
        self.max_depth = self.num_vertices if max_depth is None else max_depth
        self.log = LevelLog(() if search.device.usage.slow_bytes is None else ("host",))
        # Whether the kernels of a step claim vertices; None where it may change them again. Where
        # nobody claims, each vertex is written by its owner, and there are no duplicates.
        self.claims: list[bool | None] = []
        self.copied_bytes = 0
        self._target = None if target is None else search.memory["levels"].slice(target, target + 1)
        self._tallies = np.zeros(len(TallyWord), np.uint64)
        self._words = np.zeros(len(Word), np.uint64)
        self.start()

    def start(self) -> None:
        """Clear what the last search left, and begin at the sources."""
        device, memory = self.device, self.search.memory
        device.take_counts()
        device.upload(memory["words"], self._words)
        device.upload(memory["tallies"], self._tallies)
        self.launch_steps("start", 0, self.num_vertices)
        if self.search.program.from_edges:
            self.level = 0
            device.upload(memory["edges"], self.sources)
            if "edge_parents" in memory:
                device.upload(memory["edge_parents"], self.sources)
        else:
            device.upload(memory["queue"], self.sources)
            self.launch_steps("sources", 0, self.sources.size)
        self.around = self._with_tallies(device.take_counts())
        self.marks = [device.mark()]

    # What loops launch.

    def launch(
        self, kernel: str, count: int, *, level: int | None = None, inward: bool = False
    ) -> None:
        """Start an expansion, a contraction or a pull over so many items."""
        rows = self.search.in_rows if inward else self.search.out_rows
        wanted = self.level if level is None else level
        self._start(kernel, count, rows.struct, u64(count), u32(wanted))

    def launch_steps(self, kernel: str, first: int, count: int, *, inward: bool = False) -> None:
        """Start a step over vertices that claims nothing."""
        rows = self.search.in_rows if inward else self.search.out_rows
        self._start(kernel, count, rows.struct, u64(first), u64(count))

    def compact(self, kernel: str, count: int, wanted: int) -> None:
        """Start a pass over the levels of all, or of a list, for the vertices of one level."""
        self._start(kernel, count, u64(count), u32(wanted))

    def scan_tiles(self, count: int) -> None:
        """Start the scan of each tile of the counts."""
        num_tiles = -(-count // SCAN_TILE)
        blocks = min(self.num_blocks("tiles"), max(1, num_tiles))
        self._launch("tiles", blocks, u64(count))

    def list_unvisited(self) -> int:
        """Make an ascending list of the unvisited by two scans; gives how many there are."""
        segments = -(-self.num_vertices // SCAN_SEGMENT)
        with self.into_list():
            self.compact("count", self.num_vertices, NO_LEVEL)
            self.scan_tiles(segments)
            self._launch("sums", 1, u64(segments))
            self.compact("write", self.num_vertices, NO_LEVEL)
        return self.read(Word.QUEUE_END)

    @contextmanager
    def into_list(self) -> Iterator[None]:
        """Let kernels write the list in place of the next queue."""
        kept = int(self.arguments["next_queue"])
        self.arguments["next_queue"] = self.arguments["list"]
        yield
        self.arguments["next_queue"] = kept

    def _start(self, kernel: str, count: int, *arguments: Argument) -> None:
        program = self.search.program
        threads = program.threads(kernel)
        needed = -(-count * program.lanes(kernel) // threads)
        blocks = min(self.num_blocks(kernel), needed)
        if program.whole_grid == kernel:
            blocks = -(-self.num_vertices // threads)
        elif program.num_threads is not None and kernel == "expand":
            blocks = program.num_threads // threads
        self._launch(kernel, max(1, blocks), *arguments)

    def num_blocks(self, kernel: str) -> int:
        """Return how many blocks of a kernel run at a time."""
        return self.device.num_blocks(entry(kernel), self.search.program.threads(kernel))

    def _launch(self, kernel: str, blocks: int, *arguments: Argument) -> None:
        threads = self.search.program.threads(kernel)
        self.device.launch(entry(kernel), blocks, threads, (self.arguments, *arguments))

    # What loops say and ask.

    def reset(self) -> None:
        """Set all words to 0 but the last, which says that a row is damaged."""
        words = self.search.memory["words"].slice(0, Word.DAMAGED)
        self.device.upload(words, self._words[: Word.DAMAGED])

    def read(self, word: Word) -> int:
        """Read one word back."""
        return int(self.read_words(word, word)[0])

    def read_words(self, first: Word, last: Word) -> Sequence[int]:
        """Read neighbouring words back, at once."""
        part = self.search.memory["words"].slice(first, last + 1)
        return [int(value) for value in self.device.download(part)]

    def read_queue(self, word: Word = Word.QUEUE_END) -> int:
        """Read back how much a queue got, and refuse more than it can hold."""
        found = self.read(word)
        self.check_queue(found, word)
        return found

    def check_queue(self, found: int, word: Word = Word.QUEUE_END) -> None:
        """Refuse more than a queue can hold."""
        what, name = ("edges", "edge") if word is Word.EDGE_END else ("vertices", "queue")
        capacity = int(self.arguments[f"{name}_capacity"])
        if found > capacity:
            raise QueueError(
                f"method {self.search.choice}: level {self.level} needs room for {found:,} {what}, "
                f"and its queue has room for {capacity:,}: filter more, or use --method auto"
            )

    def swap(self, name: str) -> None:
        """Let the next queue take the place of the present one."""
        mine, theirs = int(self.arguments[name]), int(self.arguments[f"next_{name}"])
        self.arguments[name], self.arguments[f"next_{name}"] = theirs, mine

    def memory(self, name: str) -> Memory:
        """Return an array."""
        return self.search.memory[name]

    def wants_more(self) -> bool:
        """Return whether the levels found so far are not yet all that was asked for."""
        if self.level > self.max_depth:
            return False
        if self._target is None:
            return True
        return int(self.device.download(self._target)[0]) == NO_LEVEL

    def note(self, kind: str, *, claims: bool | None = True) -> None:
        """Record the step that found a level, and go on to the next."""
        self.marks.append(self.device.mark())
        counts = self._with_tallies(self.device.take_counts())
        edges, moved = counts.edges_examined or 0, SECTOR_BYTES * (counts.pcie_sectors or 0)
        # The size of a frontier is known when all levels are.
        direction = kind.partition(",")[0]
        self.log.add(direction, 0, Beside(counts, kind), edges=edges, host_bytes=moved)
        self.claims.append(claims)
        self.level += 1

    def _with_tallies(self, counts: Counts) -> Counts:
        """Add what kernels counted, and what was copied to the device on purpose."""
        before = self._tallies
        self._tallies = self.search.inspect(self.search.memory["tallies"])
        grown = [int(value) for value in self._tallies - before]
        sectors = counts.pcie_sectors
        if sectors is not None:
            sectors += -(-self.copied_bytes // SECTOR_BYTES)
            self.copied_bytes = 0
        return replace(
            counts,
            edges_examined=grown[TallyWord.EXAMINED],
            claims_won=grown[TallyWord.WON],
            claims_lost=grown[TallyWord.LOST],
            queue_writes=grown[TallyWord.QUEUED],
            edge_queue_writes=grown[TallyWord.EDGES_QUEUED],
            pcie_sectors=sectors,
        )

    def finish(self) -> None:
        """Refuse what damaged rows gave, and count what was done after the last level."""
        if self.read(Word.DAMAGED):
            raise FormatError("a row is damaged: run 'oocbfs verify'")
        after = self._with_tallies(self.device.take_counts())
        self.around = replace(sum_counts([self.around, after]), duplicates=0)
