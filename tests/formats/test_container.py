"""Opening a container: what is refused, and that nothing damaged gets through."""

import random
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.errors import FormatError
from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.reader import Container
from oocbfs.graph.rows import neighbours
from oocbfs.graph.verifier import verify
from oocbfs.search.graph import open_file
from tests.support.crafting import make_archive, rewrite, section_place, set_header, sign
from tests.support.exhaustive import ALL
from tests.support.strategies import name_edges, stored_edges

SORTS = ["natural", "degree", "directed", "zstd", "frames", "directed frames", "names"]
HUB = 1100  # its tail takes two segments


@pytest.fixture(scope="module")
def originals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Small containers of every sort, a hub with several segments among them."""
    folder = tmp_path_factory.mktemp("originals")
    rng = np.random.default_rng(7)
    hub = np.stack((np.full(HUB, 3), rng.choice(60_000, HUB, replace=False) + 4), axis=1)
    edges = np.concatenate((hub, rng.integers(0, 60, (300, 2))))
    files = {}
    for name, settings in {
        "natural": {"order": "natural", "ids": "compact"},
        "degree": {"order": "degree", "ids": "compact"},
        "directed": {"order": "dbg", "ids": "compact", "directed": True},
        "zstd": {"order": "degree", "ids": "compact"},
        "frames": {"order": "degree", "ids": "compact", "codec": "zstd"},
        "directed frames": {"order": "dbg", "ids": "compact", "directed": True, "codec": "zstd"},
        "names": {"order": "degree", "ids": "names"},
    }.items():
        path = folder / f"{name}.ocg"
        named = name_edges(edges.tolist()) if name == "names" else edges
        oocbfs.convert(named, path, **settings)  # type: ignore[arg-type]
        if name == "zstd":
            make_archive(path)
        verify(path, threads=1)
        files[name] = path.read_bytes()
    return files


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "g.ocg"


@pytest.mark.parametrize("name", ["directed", "directed frames", "names"])
def test_every_header_byte_flipped_is_refused(
    originals: dict[str, bytes], path: Path, name: str
) -> None:
    data = bytearray(originals[name])
    for place in range(layout.PAGE_BYTES):
        data[place] ^= 1 << (place % 8)
        path.write_bytes(data)
        with pytest.raises(FormatError):
            Container(path)
        data[place] ^= 1 << (place % 8)


@pytest.mark.parametrize("name", ["natural", "directed", "zstd", "frames", "names"])
def test_truncation_at_every_boundary_is_refused(
    originals: dict[str, bytes], path: Path, name: str
) -> None:
    data = originals[name]
    boundaries = {0, 1, 8, 4095, 4096, len(data) - 1, *range(0, len(data), 4096)}
    for size in boundaries - {len(data)}:
        path.write_bytes(data[:size])
        with pytest.raises(FormatError):
            Container(path)
    path.write_bytes(data + b"\0")
    with pytest.raises(FormatError):
        Container(path)


def test_version_message_names_both_versions(originals: dict[str, bytes], path: Path) -> None:
    path.write_bytes(set_header(bytearray(originals["natural"]), version=9))
    with pytest.raises(FormatError, match=r"version 9, this oocbfs reads versions 1, 2 and 3"):
        Container(path)


@pytest.mark.parametrize(
    "fields",
    [
        {"num_vertices": 2**32 - 1},
        {"num_vertices": 5},
        {"num_arcs": 2**50},
        {"flags": 2},
        {"flags": 1},
        {"order": 7},
        {"order": 1},
        {"block_shift": 60},
        {"num_sections": 200},
        {"chunk_table_offset": 2**63},
        {"num_chunks": 2**60},
        {"reserved": 1},
        {"first_id": 1},
        {"first_id": 2**64 - 1},
        {"max_degree": 2**40},
    ],
)
def test_nonsense_with_valid_checksums_is_refused(
    originals: dict[str, bytes], path: Path, fields: dict[str, int]
) -> None:
    path.write_bytes(set_header(bytearray(originals["natural"]), **fields))
    with pytest.raises(FormatError):
        Container(path)


@pytest.mark.parametrize("name", SORTS)
def test_mutated_bytes_are_never_accepted(
    originals: dict[str, bytes], path: Path, name: str
) -> None:
    """400 files, or 2,000, with 1 to 4 changed bytes anywhere: every one is refused."""
    rng = random.Random(name)
    original = originals[name]
    for _ in range(2000 if ALL else 400):
        data = bytearray(original)
        for _ in range(rng.randint(1, 4)):
            data[rng.randrange(len(data))] ^= rng.randint(1, 255)
        if data == original:
            continue
        path.write_bytes(data)
        with pytest.raises(FormatError):
            verify(path, threads=1)


@pytest.mark.parametrize("name", SORTS)
def test_mutated_and_signed_files_do_not_crash(
    originals: dict[str, bytes], path: Path, name: str
) -> None:
    """300 files, or 1,500, changed and signed: refused, or a sound graph, and never a crash."""
    rng = random.Random(name)
    original = originals[name]
    count = int(np.frombuffer(original, layout.HEADER, 1)[0]["num_sections"])
    table = np.frombuffer(original, layout.SECTION, count, layout.SECTION_TABLE_OFFSET)
    places = [(0, 1024)] + [(int(r["offset"]), int(r["stored_bytes"])) for r in table]
    for _ in range(1500 if ALL else 300):
        data = bytearray(original)
        for _ in range(rng.randint(1, 3)):
            offset, size = rng.choice(places)
            data[offset + rng.randrange(size)] = rng.choice(
                (0, 1, 127, 128, 255, rng.randrange(256))
            )
        path.write_bytes(sign(data))
        try:
            stored_edges(path)
        except (FormatError, AssertionError):
            with pytest.raises(FormatError):
                verify(path, threads=1)
            continue
        try:
            verify(path, threads=1)
        except FormatError:
            continue
        check_sound(path)


def check_sound(path: Path) -> None:
    """What verify accepts is a graph: no loops, and symmetric or the transpose of its in-rows."""
    with open_file(path) as graph:
        forward = graph.to_scipy()
        order = (
            np.arange(graph.num_vertices)
            if graph._stored.order is None
            else np.asarray(graph._stored.order)
        )
        backward = np.zeros(forward.shape, bool)
        for stored, natural in enumerate(order):
            backward[order[neighbours(graph._stored.in_rows, stored)], natural] = True
    assert not forward.diagonal().any()
    assert np.array_equal(forward.toarray() != 0, backward)


def graph_file(originals: dict[str, bytes], path: Path, name: str = "degree") -> Path:
    path.write_bytes(originals[name])
    return path


@pytest.mark.parametrize(
    ("kind", "index", "value", "message"),
    [
        (Kind.STARTS, 5, 2**32 - 1, "tail start"),
        (Kind.STARTS, 0, 1, "tail start"),
        (Kind.BASES, 0, 2**63, "tail start"),
        (Kind.HEADS, 0, 2**32 - 2, "head is not a vertex"),
        (Kind.ORDER, 0, 1, "permutation"),
        (Kind.ORDER, 0, 2**32 - 1, "permutation"),
        (Kind.IDS, 0, 2**40, "ids are not sorted"),
        (Kind.DEGREES, 1, 0, "add up"),
        (Kind.TAILS, 0, 255, r"past its segment|longer than|not a vertex|ascending"),
        (Kind.TAILS, 1023, 128, r"past its segment|longer than"),
    ],
)
def test_broken_promises_are_named(
    originals: dict[str, bytes], path: Path, kind: Kind, index: int, value: int, message: str
) -> None:
    graph_file(originals, path)
    rewrite(path, kind, index, value)
    with pytest.raises(FormatError, match=message):
        verify(path)


def test_asymmetry_is_found(originals: dict[str, bytes], path: Path) -> None:
    """A neighbour replaced by another keeps every local promise, but not symmetry."""
    data = bytearray(graph_file(originals, path).read_bytes())
    offset, size = section_place(bytes(data), Kind.TAILS)
    hits = 0
    for place in range(offset + 1, offset + size):
        if data[place] == 1:
            changed = bytearray(data)
            changed[place] = 2
            changed[place + 1] -= 1 if 1 <= changed[place + 1] < 128 else 0
            path.write_bytes(sign(changed))
            with pytest.raises(FormatError) as caught:
                verify(path, threads=1)
            hits += "symmetric" in str(caught.value)
    assert hits > 0


def test_wrong_transpose_is_found(originals: dict[str, bytes], path: Path) -> None:
    data = bytearray(graph_file(originals, path, "directed").read_bytes())
    offset, size = section_place(bytes(data), Kind.IN_TAILS)
    messages = set()
    for place in range(offset, offset + size - 1):
        if 1 <= data[place + 1] < 127 and 1 <= data[place] < 127:
            changed = bytearray(data)
            changed[place] += 1
            changed[place + 1] -= 1
            path.write_bytes(sign(changed))
            with pytest.raises(FormatError) as caught:
                verify(path, threads=1)
            messages.add(str(caught.value))
    assert any("transpose" in message for message in messages)


@pytest.mark.parametrize("name", ["zstd", "frames"])
def test_packed_files_hold_the_same_graph(
    originals: dict[str, bytes], tmp_path: Path, name: str
) -> None:
    raw = graph_file(originals, tmp_path / "raw.ocg", "degree")
    packed = graph_file(originals, tmp_path / "packed.ocg", name)
    with Container(raw) as a, Container(packed) as b:
        for kind in a.sections:
            np.testing.assert_array_equal(a.section(kind), b.section(kind))


def test_raw_sections_are_views_of_the_mapping(originals: dict[str, bytes], path: Path) -> None:
    with Container(graph_file(originals, path)) as container:
        for kind in container.sections:
            section = container.section(kind)
            assert np.shares_memory(section, container.bytes)
            assert not section.flags.writeable


def test_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be opened"):
        open_file(tmp_path / "none.ocg")
    with pytest.raises(FormatError, match="is a folder without a manifest"):
        oocbfs.open(tmp_path)
    with pytest.raises(FormatError, match="is a folder, a pipe or a device"):
        open_file(tmp_path)
