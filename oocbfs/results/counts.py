"""What a search on a device did, as far as somebody counts it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple


class HottestWord(NamedTuple):
    """The word of an array that most atomics of one level went to."""

    array: str
    word: int
    atomics: int


@dataclass(frozen=True)
class Counts:
    """The work of one level, or of several; None is what was not counted.

    Launches and read-backs are the host's, edges, claims and the queue's writes the kernels'. The
    others are counted by the emulator alone: sectors have 32 bytes, a load is one instruction of a
    warp, and the work of a warp are its memory instructions. ``busiest_work`` and ``mean_work`` are
    those of the busiest warp and of the mean warp of each launch, summed up.
    """

    launches: int = 0
    read_backs: int = 0
    read_back_bytes: int = 0
    edges_examined: int | None = None
    claims_won: int | None = None
    claims_lost: int | None = None
    queue_writes: int | None = None
    edge_queue_writes: int | None = None
    duplicates: int | None = None
    atomics_by_array: dict[str, int] | None = None
    hottest_word: HottestWord | None = None
    pcie_sectors: int | None = None
    device_sectors: int | None = None
    loads: int | None = None
    load_lanes: int | None = None
    busiest_work: float | None = None
    mean_work: float | None = None

    @property
    def atomics(self) -> int | None:
        """Atomics on all arrays."""
        return None if self.atomics_by_array is None else sum(self.atomics_by_array.values())

    @property
    def lanes_used(self) -> float | None:
        """Lanes of a load that take part, in the mean."""
        return _ratio(self.load_lanes, self.loads)

    @property
    def warp_imbalance(self) -> float | None:
        """Work of the busiest warp of a launch over that of the mean warp."""
        return _ratio(self.busiest_work, self.mean_work)

    def summary(self) -> dict[str, Any]:
        """Return the columns that people look at, for JSON and tables."""
        hottest = self.hottest_word
        return {
            **{name: getattr(self, name) for name in COLUMNS},
            "atomics_by_array": self.atomics_by_array,
            "hottest_word": None if hottest is None else hottest._asdict(),
        }


# Each with its heading in a table and its width; those without are not shown there.
COLUMNS = {
    "launches": ("launches", 8),
    "read_backs": ("read-backs", 10),
    "read_back_bytes": ("bytes back", 10),
    "edges_examined": None,
    "claims_won": ("claims won", 11),
    "claims_lost": ("lost", 7),
    "queue_writes": ("queue writes", 12),
    "edge_queue_writes": None,
    "duplicates": ("duplicates", 10),
    "atomics": ("atomics", 10),
    "pcie_sectors": ("PCIe sectors", 12),
    "device_sectors": ("device sectors", 14),
    "lanes_used": ("lanes", 5),
    "warp_imbalance": ("busiest ÷ mean warp", 19),
}
_SUMMED = tuple(
    name for name in Counts.__dataclass_fields__ if name not in ("atomics_by_array", "hottest_word")
)


def sum_counts(all_counts: Iterable[Counts]) -> Counts:
    """Sum up; what a part did not count is not counted in the sum."""
    all_counts = list(all_counts)
    sums: dict[str, Any] = {}
    for name in _SUMMED if all_counts else ():
        values = [getattr(one, name) for one in all_counts]
        sums[name] = None if None in values else sum(values)
    by_array = [one.atomics_by_array for one in all_counts]
    if all_counts and None not in by_array:
        total = Counter[str]()
        for found in by_array:
            total.update(found or {})
        sums["atomics_by_array"] = dict(total)
    words = [one.hottest_word for one in all_counts if one.hottest_word is not None]
    hottest = max(words, key=lambda word: word.atomics, default=None)
    return Counts(**sums, hottest_word=hottest)


def with_work(counts: Counts, edges: int = 0, lost: int = 0, found: int = 0) -> Counts:
    """Add what kernels counted; a vertex that was found is in the queue once."""
    return replace(
        counts,
        edges_examined=edges,
        claims_won=found,
        claims_lost=lost,
        queue_writes=found,
        duplicates=0,
    )


def _ratio(share: float | None, whole: float | None) -> float | None:
    return share / whole if share is not None and whole else None
