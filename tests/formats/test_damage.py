"""Damaged files with valid checksums: every engine says so, and none leaves its arrays."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.errors import FormatError, OocbfsError
from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import Kind
from oocbfs.kernels import varint
from oocbfs.kernels.bfs import search as bfs
from oocbfs.kernels.components import connect as components
from oocbfs.kernels.constants import NO_HEAD, SLACK_BYTES
from oocbfs.kernels.many import search as many
from oocbfs.kernels.results import checking as check
from oocbfs.kernels.results import prediction as kernels
from oocbfs.kernels.results import validation
from oocbfs.kernels.rows import Rows, read_only
from oocbfs.kernels.shards import run as shards
from oocbfs.kernels.shards.state import BOTTOM_UP, SMALL, TAKE, TOP_DOWN, Bitmaps
from oocbfs.plan.many import DiskShare, ManyPlan
from oocbfs.plan.prediction import sample_levels
from oocbfs.progress import Phases
from oocbfs.search.graph import open_file
from oocbfs.search.many import Searches
from oocbfs.settings import Settings
from tests.support import children
from tests.support.crafting import overwrite, rewrite

# The tail of the hub is so long that threads share it.
HUB = 20_000


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a hub that everybody knows, some other edges, and ids with gaps."""
    path = tmp_path_factory.mktemp("damage") / "g.ocg"
    rng = np.random.default_rng(5)
    spokes = np.stack((np.zeros(HUB, np.int64), np.arange(1, HUB + 1)), axis=1)
    edges = 3 * np.concatenate((spokes, rng.integers(1, HUB, (3 * HUB, 2))))
    oocbfs.convert(edges, path, order="degree", ids="compact", codec="raw")
    return path


@pytest.fixture
def path(original: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "g.ocg"
    copy.write_bytes(original.read_bytes())
    return copy


def in_a_child(call: str) -> None:
    """Run a function of this module where a crash is only a wrong exit code."""
    code = f"import tests.formats.test_damage as module; module.{call}"
    done = children.run_python(code, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])


def search_without_heads(path: str) -> None:
    with open_file(path) as graph, pytest.raises(FormatError, match="it has a tail but no head"):
        graph.bfs(0, options=Settings(direction="top-down"))


def test_heads_lost_to_ones_do_not_crash(path: Path) -> None:
    overwrite(path, Kind.HEADS, 0, b"\xff" * layout.PAGE_BYTES)
    in_a_child(f"search_without_heads({str(path)!r})")


def overwritten(path: str, **fields: int) -> Rows:
    """Load rows, then give all numbers of some fields one value, as if the file was overwritten."""
    with open_file(path) as graph:
        rows = read_only(graph._stored.rows)
    arrays: dict[str, Any] = {}
    for name in ("heads", "bases", "starts", "tails", "degrees"):
        array = getattr(rows, name)
        room = np.zeros(array.size + SLACK_BYTES, array.dtype)
        room[: array.size] = fields[name] % (1 << 64) if name in fields else array
        arrays[name] = room[: array.size]
    return read_only(rows._replace(**arrays))


def run_kernels(path: str, **fields: int) -> None:
    """Run every kernel that reads mapped rows; what it finds does not matter."""
    sound, rows = overwritten(path), overwritten(path, **fields)
    n = rows.heads.size
    levels, parents = np.empty(n, np.int32), np.empty(n, np.uint32)
    sources = np.zeros(1, np.uint32)
    for direction in (bfs.AUTO, bfs.TOP_DOWN, bfs.BOTTOM_UP):
        for threads in (1, 2):
            for tree in (None, parents):
                for source in (0, n - 1):
                    sources[0] = source
                    bfs.search(
                        rows, rows, sources, levels, tree, threads=threads, direction=direction
                    )
                    assert levels.max() < n
    for threads in (1, 2):
        for alpha in (1e-9, 1e9):
            many.search_many(rows, rows, sources, levels=True, threads=threads, alpha=alpha)
        components.connect(rows, None, parents, threads=threads)
        components.connect(rows, rows, parents, threads=threads)
        assert parents.max() < n
    bfs.search(sound, sound, sources, levels, parents)
    index = rows.bases, rows.starts
    stored = rows.heads, *index, rows.shift, rows.tails, (0, 1)
    no_order, no_ids = np.empty(0, np.uint32), np.empty(0, np.uint64)
    validation.check_levels(
        np.zeros(n, np.uint8), levels, parents.astype(np.int64), no_order, no_ids, 0, *stored,
        9, True, 0, n,
    )  # fmt: skip
    validation.join_rows(np.arange(n, dtype=np.uint32), no_order, *stored, 0, n)
    check.check_rows(
        np.zeros(2, np.uint64), rows.heads, *index, rows.shift, rows.tails,
        rows.degrees, n, rows.degrees, (0, 1), 0, n, np.uint64(1),
    )  # fmt: skip
    ends = np.empty((2, 4 * n), np.uint64)
    for row in (0, n - 1):
        for stored_at in (no_order, np.arange(n, dtype=np.uint32)[::-1].copy()):
            varint.decode_rows(
                *ends, rows.heads, *index, rows.shift, rows.tails, rows.degrees, n, no_order,
                stored_at, row, False,
            )  # fmt: skip
    words = np.zeros((2, n // 64 + 2), np.uint64)
    words[:, 0], words[:, n // 64] = 1, 1 << (n - 1) % 64
    for threads in (1, 2):
        team = shards.Team([shards.HeldShard(0, n // 64 + 1, rows, rows)], 1, threads)
        marks = team.make_marks(n // 64 + 2)
        for task in (BOTTOM_UP, TOP_DOWN, TAKE, SMALL):
            visited, found = np.zeros((2, n // 64 + 2), np.uint64)
            of_all = Bitmaps(words[0], words[1], visited, visited, found, marks)
            of_all = of_all._replace(levels=np.zeros(64 * (n // 64 + 2), np.uint8), parents=parents)
            team.lead(of_all, of_all, functools.partial(team.step, task), non_isolated=n)
        team.list_neighbours(words[1, :-1], 2, 64)
    tables = np.zeros((n + 2, 8), np.int64), np.zeros((n + 2, 8), np.int64)
    kernels.count_searched(
        *tables, np.zeros(0, np.uint32), levels, rows.heads, *index, rows.tails, rows.shift, 0, 0
    )
    kernels.find_searched_blocks(
        np.zeros(32, np.int32), levels, rows.heads, *index, rows.shift, 0, 0, 1 << 14
    )


OVERWRITTEN = [
    {"heads": 1 << 31},
    {"heads": NO_HEAD - 1},
    {"heads": NO_HEAD},
    {"bases": 1 << 40},
    {"bases": -(1 << 40)},
    {"starts": NO_HEAD},
    {"degrees": 0},
    {"degrees": 1 << 31},
    {"tails": 0},
    {"tails": 127},
    {"tails": 128},
    {"tails": 255},
]


def run_all_kernels(path: str) -> None:
    for fields in OVERWRITTEN:
        print(fields, file=sys.stderr)
        run_kernels(path, **fields)


def test_an_index_overwritten_after_its_checks_leads_nowhere(original: Path) -> None:
    in_a_child(f"run_all_kernels({str(original)!r})")


RUNS: dict[str, Callable[[oocbfs.Graph], object]] = {
    "bfs": lambda g: g.bfs(0).levels,
    "parents": lambda g: g.bfs(0, parents=True).parents,
    "disk": lambda g: g.bfs(0, engine="disk").levels,
    "together": lambda g: list(g.bfs_many([0, 3], emit="levels", strategy="together")),
    "one-per-core": lambda g: list(g.bfs_many([0, 3], emit="levels", strategy="one-per-core")),
    "many from disk": lambda g: list(
        Searches(g._stored, "levels", ManyPlan("together", 2, disk=DiskShare(8, 1 << 30))).run(
            [0, 3]
        )
    ),
    "components": lambda g: g.components().labels,
    "components from disk": lambda g: g.components(engine="disk").labels,
    "neighbours": lambda g: g.neighbors(0),
    "edges": lambda g: list(g.edges()),
}


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("value", [5, HUB + 1])
def test_an_order_that_is_no_permutation_is_refused(path: Path, name: str, value: int) -> None:
    rewrite(path, Kind.ORDER, 1000, value)
    with open_file(path) as graph, pytest.raises(FormatError, match="order is damaged"):
        RUNS[name](graph)


def test_ids_that_do_not_ascend_are_not_called_unknown(path: Path) -> None:
    rewrite(path, Kind.IDS, HUB // 2, 1)
    with open_file(path) as graph:
        with pytest.raises(FormatError, match="ids are damaged"):
            graph.bfs(3 * (HUB // 2))
        with pytest.raises(FormatError, match="ids are damaged"):
            graph.bfs(0, parents=True)


@pytest.mark.parametrize(
    ("kind", "value"), [(Kind.DEGREES, 0), (Kind.DEGREES, 3), (Kind.HEADS, NO_HEAD)]
)
def test_a_row_at_odds_with_its_degree_is_refused(path: Path, kind: Kind, value: int) -> None:
    with open_file(path) as graph:
        last = int(np.flatnonzero(graph._stored.stored_degrees == 1)[-1])  # a head and no tail
        vertex = int(graph._stored.ids_of(np.array([last]))[0])
    rewrite(path, kind, last, value)
    with open_file(path) as graph:
        for ask in (graph.neighbors, graph.in_neighbors):
            with pytest.raises(FormatError, match="damaged"):
                ask(vertex)
        with pytest.raises(FormatError, match="damaged"):
            list(graph.edges())


def test_a_path_that_breaks_off_is_no_traceback(path: Path) -> None:
    """The last vertex says that it knows another than the hub, which does not know it."""
    with open_file(path) as graph:
        last = graph.num_vertices - 1
        vertex = int(graph._stored.ids_of(np.array([last]))[0])
    rewrite(path, Kind.HEADS, last, last - 1)
    with open_file(path) as graph:
        found = graph.bfs(0, options=Settings(direction="top-down"))
        with pytest.raises(FormatError, match="no edge leads to vertex"):
            found.path_to(vertex)


def test_a_prediction_does_not_rest_on_damaged_rows(path: Path) -> None:
    overwrite(path, Kind.TAILS, 0, b"\xff" * 10 * HUB)
    with open_file(path) as graph, pytest.raises(FormatError, match="a row is damaged"):
        sample_levels(graph._stored, 3, Phases(show=False))


@pytest.mark.parametrize(
    "num_bytes", [b"\x80\x80\x80\x80\x10", b"\x81\x80\x80\x80\x70", b"\xff\xff\xff\xff\x7f"]
)
def test_neighbours_beyond_32_bits_are_damage(num_bytes: bytes) -> None:
    """They must not be taken for what their lower 32 bits say."""
    tails = np.frombuffer(num_bytes + bytes(SLACK_BYTES), np.uint8)
    rows = Rows(
        np.array([1, 0, 0, 4, 3], np.uint32),
        np.zeros(1, np.uint64),
        np.array([0, 0, 0, 0, len(num_bytes), len(num_bytes)], np.uint32),
        tails[: len(num_bytes)],
        np.array([1, 1, 1, 2, 1], np.uint32),
        16,
        6,
        2,
        5,
    )
    levels = np.empty(5, np.int32)
    for direction, source in ((bfs.TOP_DOWN, 3), (bfs.BOTTOM_UP, 0)):
        sources = np.array([source], np.uint32)
        assert bfs.search(rows, rows, sources, levels, direction=direction).malformed
    for alpha, source in ((1e-9, 3), (1e9, 0)):
        sources = np.array([source], np.uint32)
        assert many.search_many(rows, rows, sources, alpha=alpha).malformed
    assert components.connect(rows, None, np.empty(5, np.uint32)).malformed


def test_degrees_that_promise_too_little_are_damage_or_do_not_matter(path: Path) -> None:
    with open_file(path) as graph:
        expected = graph.bfs(3, threads=1).levels
    overwrite(path, Kind.DEGREES, 0, bytes(4 * (HUB + 1)))
    with open_file(path) as graph:
        for threads in (1, 2):
            for direction in ("auto", "top-down", "bottom-up"):
                try:
                    levels = graph.bfs(
                        3, threads=threads, options=Settings(direction=direction)
                    ).levels
                except OocbfsError:
                    continue
                np.testing.assert_array_equal(levels, expected)
