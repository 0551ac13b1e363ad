"""The compiled code that takes what searches say of all vertices."""

from __future__ import annotations

from oocbfs.kernels.compiling import code_of
from oocbfs.kernels.distances import bounds, cut, walks

CODE = tuple(
    map(
        code_of,
        (
            bounds.narrow,
            bounds.survey,
            bounds.depths,
            bounds.count_inside,
            bounds.add,
            bounds.cap,
            cut.cut_searches,
            walks.sum_neighbours,
        ),
    )
)
