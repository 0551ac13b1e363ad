"""Panels of what was found, which notebooks and reports show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from oocbfs.memory import format_size
from oocbfs.pictures.charts import columns, lines, rounded, stacks
from oocbfs.pictures.svg import Panel

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored

# Smallest and largest size, components, vertices; see ``ComponentsResult.size_classes``.
SizeClass = tuple[int, int, int, int]
# More levels than this are a line.
_COLUMNS = 40


def file_panel(graph: AnyStored) -> Panel:
    """Draw what takes how much of a graph file."""
    parts: dict[str, float] = {}
    info = graph.info()
    sizes = {part["name"]: part["stored_bytes"] for part in info["sections"]}
    sizes |= {part["name"]: part["bytes"] for part in info.get("parts", ())}
    for number, (name, size) in enumerate(sorted(sizes.items(), key=lambda part: -part[1])):
        # There are eight colours.
        shown = name.replace("_", " ") if number < 7 else "others"
        parts[shown] = parts.get(shown, 0) + size
    kinds = {name: f"c{number}" for number, name in enumerate(parts)}
    return stacks("parts of the file", {format_size(int(sum(parts.values()))): parts}, kinds)


def levels_panel(sizes: Sequence[int]) -> Panel:
    """Draw how many vertices are at each level."""
    if len(sizes) > _COLUMNS:
        return lines("vertices by level", {"vertices": ("0", sizes)})
    named = {str(level): size for level, size in enumerate(sizes)}
    return columns("vertices by level", named, "level", of=sum(sizes))


def sizes_panel(classes: Sequence[SizeClass]) -> Panel:
    """Draw how many components there are of each class of sizes."""
    counts = count_by_size(classes)
    return columns("components by size", counts, "vertices", of=sum(counts.values()))


def count_by_size(classes: Sequence[SizeClass]) -> dict[str, int]:
    """Count components by sizes that double, empty classes between others too."""
    counted = {largest: components for _, largest, components, _ in classes}
    if not counted:
        return {}
    bounds = [1 << bits for bits in range(min(counted).bit_length() - 1, max(counted).bit_length())]
    return {
        rounded(bound) if bound <= 2 else f"≤{rounded(bound)}": counted.get(bound, 0)
        for bound in bounds
    }


def sources_panel(sizes: Mapping[str, Sequence[int]]) -> Panel:
    """Draw how many vertices are at each level from each of a few sources."""
    series = {name: (str(number), values) for number, (name, values) in enumerate(sizes.items())}
    return lines("vertices by level", series)
