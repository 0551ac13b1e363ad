"""WebGraph's formats: compressed by an encoder of our own in all codes, as text, and damaged."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import oocbfs
from oocbfs.errors import BudgetError, InputError
from oocbfs.formats.edges import Declared
from oocbfs.formats.io.limits import InputLimits
from oocbfs.formats.readers.chunks import BATCH_EDGES, CHUNK_BYTES
from oocbfs.formats.readers.open import open_edges
from tests.support.exhaustive import crossing
from tests.support.reading import read, refuse
from tests.support.strategies import Pairs
from tests.support.webgraph import Encoder, Lists

FEW = ("GAMMA", "DELTA")
CODES = {
    "OUTDEGREES": FEW,
    "REFERENCES": ("UNARY", *FEW),
    "BLOCK_COUNT": ("UNARY", *FEW),
    "BLOCKS": ("UNARY", *FEW),
    "INTERVALS": (*FEW, "ZETA2"),
    "RESIDUALS": ("ZETA", "ZETA1", "ZETA7", "NIBBLE", "GOLOMB", *FEW),
}


@st.composite
def lists(draw: st.DrawFn) -> Lists:
    """Draw lists that share much with each other, and that have runs."""
    size = draw(st.integers(1, 40))
    near = st.frozensets(st.integers(0, size - 1), max_size=size)
    drawn: list[list[int]] = []
    for _ in range(size):
        ids = set(draw(near))
        if draw(st.booleans()) and drawn:
            ids |= set(draw(st.sampled_from(drawn)))
        first = draw(st.integers(0, size))
        ids |= set(range(first, min(size, first + draw(st.integers(0, 9)))))
        drawn.append(sorted(ids))
    return drawn


def arcs(lists: Lists) -> Pairs:
    return [(node, id_) for node, ids in enumerate(lists) for id_ in sorted(ids)]


def like_a_web(size: int, seed: int = 3) -> Lists:
    """Make lists of which many resemble the one before, with far and near successors."""
    drawn = random.Random(seed)
    made: list[list[int]] = []
    for node in range(size):
        ids = set(drawn.sample(made[-1], len(made[-1]) // 2)) if node % 3 else set()
        ids |= {drawn.randrange(size) for _ in range(drawn.randrange(8))}
        first = drawn.randrange(size)
        ids |= set(range(first, min(size, first + drawn.randrange(12))))
        made.append(sorted(ids))
    return made


@pytest.mark.parametrize(
    "names", crossing(*CODES.values()), ids=lambda names: "-".join(map(str, names))
)
def test_every_code(tmp_path: Path, names: tuple[str, ...]) -> None:
    graph = like_a_web(60)
    for shrink, window, least in ((3, 7, 4), (1, 0, 1), (5, 1, 0), (2, 70, 2)):
        codes = dict(zip(CODES, names, strict=True))
        path = Encoder(graph, codes=codes, shrink=shrink, window=window, min_interval=least).write(
            tmp_path
        )
        assert read(path) == (arcs(graph), Declared(True, 0, len(graph)))


@settings(max_examples=60)
@given(
    graph=lists(),
    codes=st.fixed_dictionaries({}, optional={f: st.sampled_from(c) for f, c in CODES.items()}),
    window=st.integers(0, 9),
    least=st.integers(0, 5),
    shrink=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_any_graph(
    tmp_path_factory: pytest.TempPathFactory,
    graph: Lists,
    codes: dict[str, str],
    window: int,
    least: int,
    shrink: int,
    seed: int,
) -> None:
    encoder = Encoder(
        graph, codes=codes, window=window, min_interval=least, shrink=shrink, seed=seed
    )
    path = encoder.write(tmp_path_factory.mktemp("bv"))
    assert read(path) == (arcs(graph), Declared(True, 0, len(graph)))
    text = path.with_name("renamed")
    rows = "\n".join(" ".join(map(str, ids)) for ids in graph)
    text.write_text(f"{len(graph)}\n{rows}\n")
    assert read(text, format="webgraph-text") == (arcs(graph), Declared(True, 0, len(graph)))


def test_flags_of_the_rust_version(tmp_path: Path) -> None:
    """There, the flag of the blocks is that of their counts as well, and flags have no spaces."""
    graph = like_a_web(40)
    encoder = Encoder(graph, codes={"BLOCK_COUNT": "DELTA", "BLOCKS": "DELTA"})
    path = encoder.write(tmp_path)
    properties = path.with_suffix(".properties")
    written = encoder.properties().replace("BLOCK_COUNT_DELTA | ", "")
    properties.write_text(written)
    with pytest.raises(InputError):
        read(path)
    properties.write_text(f"endianness=big\n{written}")
    assert read(path)[0] == arcs(graph)
    path.write_bytes(encoder.data() + bytes(8))  # which fills words
    assert read(path)[0] == arcs(graph)


def test_lists_longer_than_chunks_and_batches(tmp_path: Path) -> None:
    """A node whose bits and successors have no room in the first buffers, and one that copies."""
    size = 300_001
    graph: list[list[int]] = [[] for _ in range(size)]
    graph[5] = list(range(size - 1))
    graph[7] = graph[5][:-1]
    graph[size - 1] = [0]
    codes = {"RESIDUALS": "ZETA"}  # which takes 30 bits for each residual
    path = Encoder(graph, codes=codes, shrink=30, min_interval=0, seed=5).write(tmp_path)
    assert path.stat().st_size > CHUNK_BYTES
    stream = open_edges([path])
    batches = [(batch.sources, batch.targets) for batch in stream.batches()]
    assert max(sources.size for sources, _ in batches) <= BATCH_EDGES
    found = np.concatenate(batches, axis=1)
    np.testing.assert_array_equal(found, np.array(arcs(graph), np.uint64).T)
    limits = InputLimits(line_bytes=1 << 18)
    with pytest.raises(BudgetError, match=r"node 5 .*300,000 successors.*memory"):
        list(open_edges([path], limits=limits).batches())


def test_memory_is_bounded(tmp_path: Path) -> None:
    """Of the bits a chunk, of the arcs a batch, and the lists that may be referred to."""
    size = 100_000
    graph = [[(node + k) % size for k in (1, 5, 11, 500)] for node in range(size)]
    codes = {"RESIDUALS": "ZETA"}
    path = Encoder(graph, codes=codes, shrink=30, window=3, min_interval=0).write(tmp_path)
    assert path.stat().st_size > 1.4 * CHUNK_BYTES
    list(open_edges([path]).batches())  # loads
    tracemalloc.start()
    num_arcs = sum(batch.sources.size for batch in open_edges([path]).batches())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert num_arcs == 4 * size > 1.5 * BATCH_EDGES
    # Buffers of three numbers, two of which are copied, and chunks as bytes and as words.
    assert peak < 5 * 8 * BATCH_EDGES + 6 * CHUNK_BYTES


def test_truncated(tmp_path: Path) -> None:
    encoder = Encoder(like_a_web(50))
    path = encoder.write(tmp_path)
    data = encoder.data()
    for size in range(len(data)):
        refuse(path, data[:size], r"truncated: it ends in the list of node \d+")
    refuse(path, data + b"\1", "more bytes than its nodes take")
    refuse(path, data + bytes(99), "more bytes than its nodes take")
    path.write_bytes(gzip.compress(data))
    assert read(path)[0] == arcs(encoder.lists)


def test_damaged(tmp_path: Path) -> None:
    """A changed bit is noticed, with the node, or gives other arcs of as many; never a crash."""
    encoder = Encoder(like_a_web(30), codes={"RESIDUALS": "NIBBLE"})
    path = encoder.write(tmp_path)
    data, refused = encoder.data(), 0
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit >> 3] ^= 128 >> (bit & 7)
        path.write_bytes(changed)
        try:
            found, _ = read(path)
        except InputError:
            refused += 1
        else:
            ends = np.array(found)
            assert len(found) == len(arcs(encoder.lists))
            assert ends.min() >= 0
            assert ends.max() < 30
    assert refused > 4 * len(data)


@pytest.mark.parametrize(
    ("bits", "changes", "message"),
    [
        # Two nodes each; the numbers are those of the record of the first that is wrong.
        ("00100", {}, "more successors than there are nodes in the list of node 0"),
        ("010" + "01", {}, "a reference to a list outside of the window in the list of node 0"),
        ("010" + "1" + "00100", {"window": 1}, "intervals of more successors .* node 0"),
        ("010" + "0010000", {"window": 0, "min_interval": 0}, "a successor that is no node"),
        ("1" + "010" + "01" + "011", {"window": 1}, "blocks that are longer .* node 1"),
        ("0" * 70 + "1" + "0" * 70, {}, "a number that no writer makes in the list of node 0"),
    ],
)
def test_records_that_no_writer_makes(
    tmp_path: Path, bits: str, changes: dict[str, int], message: str
) -> None:
    encoder = Encoder([[], []], codes={"RESIDUALS": "GAMMA"}, **changes)
    path = encoder.write(tmp_path)
    encoder.bits = bits + "1" * 9
    refuse(path, encoder.data(), f"damaged: {message}")


def test_successors_twice(tmp_path: Path) -> None:
    """Copied and given again as an interval, or as a residual; an interval and a residual."""
    # In gamma, 0 is "1", 1 is "010" and 2 is "011"; the first difference of 1 stands for -1.
    copies = ("010" + "1" + "1", "011" + "01" + "1")
    for records, changes in (
        ((*copies, "010"), {"min_interval": 0}),
        (("010" + "1" + "010" + "1" + "1", "011" + "01" + "1" + "010" + "010" + "1"), {}),
        (("011" + "1" + "010" + "1" + "1" + "1",), {}),
    ):
        encoder = Encoder(
            [[], []],
            codes={"RESIDUALS": "GAMMA"},
            **{"window": 1, "min_interval": 1, **changes},
        )
        path = encoder.write(tmp_path)
        encoder.bits = "".join(records) + "1" * 9
        refuse(path, encoder.data(), r"a successor twice in the list of node \d")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("BVGraph\n", "EFGraph\n", "graphclass is it.unimi.dsi.webgraph.EFGraph"),
        ("nodes=9", "nodes=-9", "nodes is '-9'"),
        ("nodes=9\n", "", "nodes is missing"),
        ("arcs=", "arcs=1", "arcs where .properties declares 1"),
        ("windowsize=7", "windowsize=x", "windowsize is 'x'"),
        ("zetak=3", "zetak=0", "zetak is '0'"),
        ("flags=", "flags=RESIDUALS_OMEGA", "unknown compression flag 'RESIDUALS_OMEGA'"),
        ("flags=", "flags=WHAT", "unknown compression flag 'WHAT'"),
        ("version", "endianness=little\nversion", "little-endian"),
    ],
)
def test_properties_that_are_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    encoder = Encoder(like_a_web(9))
    path = encoder.write(tmp_path)
    path.with_suffix(".properties").write_text(encoder.properties().replace(old, new))
    with pytest.raises(InputError, match=message) as caught:
        read(path)
    assert str(tmp_path / "x.") in str(caught.value)


def test_properties_must_be_beside(tmp_path: Path) -> None:
    path = Encoder(like_a_web(50)).write(tmp_path)
    path.with_suffix(".properties").unlink()
    with pytest.raises(InputError, match=r"needs its \.properties beside it"):
        read(path)
    with pytest.raises(InputError, match=r"x\.properties: cannot read: no such file"):
        read(path, format="webgraph")
    with pytest.raises(InputError, match=r"need the name X\.graph"):
        read(path.rename(tmp_path / "y"), format="webgraph")


def test_text(tmp_path: Path) -> None:
    path = tmp_path / "x.graph-txt"
    path.write_text("4\n1 2 3 \n\n0\n\n")
    assert read(path) == ([(0, 1), (0, 2), (0, 3), (2, 0)], Declared(True, 0, 4))
    # By content, too, where lines are no pairs.
    other = tmp_path / "other"
    other.write_bytes(gzip.compress(b"4\n1 2 3 \n\n0\n\n"))
    assert read(other) == read(path)
    path.write_text("0\n")
    assert read(path) == ([], Declared(True, 0, 0))
    refuse(path, "3\n1 2\n3\n\n", r"txt:3: vertex id 3 is outside of 0 … 2")
    refuse(path, "3\n1 2\n", "1 lines of successors where the first line declares 3 nodes")
    refuse(path, "2\n1\n0\n1\n", "more than 2 lines")
    refuse(path, "2 1\n1\n0\n", "need the number of nodes", "webgraph-text")
    # A number above pairs is no ASCII graph.
    refuse(other, "3\n0 1\n1 2\n", "too few columns")


def test_converted(tmp_path: Path) -> None:
    graph = like_a_web(300)
    path = Encoder(graph).write(tmp_path)
    report = oocbfs.convert(path, tmp_path / "x.ocg")
    assert report.directed
    assert report.vertices == 300
    assert report.edges_read == len(arcs(graph))
    with oocbfs.open(tmp_path / "x.ocg") as opened:
        for node, ids in enumerate(graph):
            assert opened.neighbors(node).tolist() == [id_ for id_ in ids if id_ != node]
