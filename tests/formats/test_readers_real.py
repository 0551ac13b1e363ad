"""The public graphs that OOCBFS_GRAPHS points to, against the counts in their README."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared
from oocbfs.formats.readers.open import open_edges

pytestmark = pytest.mark.skipif(
    "OOCBFS_GRAPHS" not in os.environ, reason="OOCBFS_GRAPHS names no folder of public graphs"
)
GRAPHS = Path(os.environ.get("OOCBFS_GRAPHS", "."))

# file: vertices, edges as listed, distinct edges without loops, directed or unknown.
COUNTS: dict[str, tuple[int, int, int, bool | None]] = {
    "road/NY.gr.xz": (264_346, 365_050, 365_050, False),
    "road/FLA.gr.xz": (1_070_376, 1_343_951, 1_343_951, False),
    "web/web-NotreDame.txt.gz": (325_729, 1_497_134, 1_497_134 - 27_455, True),
    "social/soc-Epinions1.txt.gz": (75_879, 508_837, 508_837, True),
    "social/email-Enron.txt": (36_692, 367_662, 2 * 183_831, None),
    "social/facebook_combined.txt.gz": (4_039, 88_234, 88_234, None),
    "social/wiki-Vote.txt": (7_115, 103_689, 103_689, True),
    "cite/arxiv-cit-hep-th.jlg": (27_770, 352_807, 352_807 - 39, True),
    "p2p/p2p-31.e": (62_586, 147_892, 147_892, None),
    "formats/gap/4.el": (13, 256, 53, None),
    "formats/gap/4.wel": (13, 256, 53, None),
    "formats/gap/4.gr": (14, 256, 53, True),
    "formats/gap/4.mtx": (14, 256, 53, True),
    "formats/gap/4w.mtx": (14, 256, 53, True),
    "formats/gap/4.graph": (14, 53, 53, True),
    "formats/gap/4w.graph": (14, 53, 53, True),
    "formats/metis/airfoil1.graph": (4_253, 2 * 12_289, 2 * 12_289, False),
    "formats/metis/astro-ph.graph": (16_706, 2 * 121_251, 2 * 121_251, False),
    "formats/metis/celegans_metabolic.graph": (453, 2 * 2_025, 2 * 2_025, False),
    "formats/metis/jazz.graph": (198, 2 * 2_742, 2 * 2_742, False),
    "formats/metis/karate.graph": (34, 2 * 78, 2 * 78, False),
    "formats/metis/lesmis.graph": (77, 2 * 254, 2 * 254, False),
    "formats/metis/polblogs.graph": (1_490, 2 * 16_715, 2 * 16_715, False),
    "formats/mtx/A.mtx": (7, 15, 15, False),
    "formats/mtx/comments_west0067.mtx": (67, 295, 292, True),
    "formats/mtx/complex.mtx": (3, 9, 6, True),
    "formats/mtx/full.mtx": (3, 9, 6, True),
    "formats/mtx/jagmesh7.mtx": (1_138, 4_294, 3_156, False),
    "formats/mtx/karate.mtx": (34, 78, 78, False),
    "formats/mtx/matrix_fp64.mtx": (7, 12, 12, True),
    "formats/mtx/skew_fp64.mtx": (6, 10, 10, False),
    "formats/mtx/west0067_jumbled.mtx": (67, 294, 292, True),
    "truth/example-directed.e": (10, 17, 17, True),
    "truth/example-undirected.e": (9, 12, 12, False),
}
REFUSED = {
    "formats/mtx/empty.mtx": "not square",
    "formats/mtx/lp_afiro.mtx": "not square",
    "formats/mtx/lp_afiro_structure.mtx": "not square",
    "formats/mtx/mangled1.mtx": "mtx:1: need: %%MatrixMarket matrix",
    "formats/mtx/mangled2.mtx": "mtx:1: unknown layout 'mangled'",
    "formats/mtx/mangled3.mtx": "mtx:1: unknown field 'mangled'",
    "formats/mtx/mangled4.mtx": "mtx:1: unknown symmetry 'mangled'",
    "formats/mtx/mangled_format.mtx": "an array cannot be a pattern",
    "formats/mtx/west0067_noheader.mtx": "mtx:1: the %%MatrixMarket banner is missing",
    "truth/example-directed.properties": "properties:4: vertex id",
    "truth/lagraph-karate-source30-levels-parents.txt": "txt:1: vertex id",
}


def num_vertices(declared: Declared, ends: np.ndarray[tuple[int, ...], np.dtype[np.uint64]]) -> int:
    if declared.vertex_ids is not None:
        return declared.vertex_ids.size
    return np.unique(ends).size if declared.num_vertices is None else declared.num_vertices


@pytest.mark.parametrize("file", COUNTS)
def test_counts(file: str) -> None:
    stream = open_edges([GRAPHS / file], threads=2)
    batches = list(stream.batches())
    ends = np.array(
        [np.concatenate([b.sources for b in batches]), np.concatenate([b.targets for b in batches])]
    )
    proper = ends[:, ends[0] != ends[1]]
    # Pairs of ids below 2^32 fit in one number, which sorts a hundred times faster than columns.
    distinct = np.unique(proper[0] << np.uint64(32) | proper[1]).size
    vertices = num_vertices(stream.declared, ends)
    found = (vertices, ends.shape[1], distinct, stream.declared.directed)
    assert found == COUNTS[file]
    assert stream.done == stream.total


@pytest.mark.parametrize("file", REFUSED)
def test_refusals(file: str) -> None:
    with pytest.raises(InputError) as caught:
        list(open_edges([GRAPHS / file]).batches())
    assert REFUSED[file] in str(caught.value)
    assert "\n" not in str(caught.value)
