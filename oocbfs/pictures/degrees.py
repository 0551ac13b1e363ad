"""The degrees of a graph, both axes logarithmic: in classes, and how many have at least each."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from oocbfs.pictures.charts import columns, powers, rounded
from oocbfs.pictures.svg import Panel

# So many points share each doubling of the degree.
_POINTS = 4


def degree_panels(histograms: Mapping[str, Mapping[int, int]]) -> list[Panel]:
    """Draw histograms by name, such as those of out-degrees and in-degrees."""
    panels = []
    tails = {}
    for number, (name, histogram) in enumerate(histograms.items()):
        panels.append(
            columns(
                f"vertices by {name}",
                degree_classes(histogram),
                name,
                kind=f"c{number}",
                of=sum(histogram.values()),
            )
        )
        tails[name] = str(number), degree_tail(histogram)
    names = " or ".join(histograms)
    return [*panels, powers(f"vertices of at least this {names}", tails, "degree")]


def degree_classes(histogram: Mapping[int, int]) -> dict[str, int]:
    """Sum up by powers of two, under the name of the smallest degree of each class; 0 is one."""
    classes: dict[int, int] = {}
    for degree, count in histogram.items():
        bits = degree.bit_length()
        classes[bits] = classes.get(bits, 0) + count
    most = max(classes, default=-1)
    first = min(classes, default=0)
    return {
        rounded(1 << bits - 1) if bits else "0": classes.get(bits, 0)
        for bits in range(first, most + 1)
    }


def degree_tail(histogram: Mapping[int, int]) -> list[tuple[float, float]]:
    """Return degrees above 0 and how many vertices have at least each, a few for each doubling."""
    degrees = np.fromiter(histogram, np.int64, len(histogram))
    counts = np.fromiter(histogram.values(), np.int64, len(histogram))
    if not degrees.size or degrees[-1] == 0:
        return []
    at_least = counts[::-1].cumsum()[::-1]
    exponents = np.arange(_POINTS * int(degrees[-1]).bit_length() + 1) / _POINTS
    found = np.unique(np.searchsorted(degrees, 2**exponents))
    chosen = np.append(found[found < degrees.size], degrees.size - 1)
    return [(float(degrees[i]), float(at_least[i])) for i in np.unique(chosen)]
