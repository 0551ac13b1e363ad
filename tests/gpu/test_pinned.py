"""The routes by which host memory is pinned; every failure undoes them. CUDA is a double."""

from __future__ import annotations

import ctypes
import mmap
import resource
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.formats.io.direct import page_aligned
from oocbfs.gpu.pinned import PinError, Route, map_pinned
from oocbfs.progress import Phases
from oocbfs.search.graph import open_file
from tests.support.gpu.cuda_double import Runtime, off_the_page


@pytest.fixture
def mapped(tmp_path: Path) -> np.ndarray:
    """Return a read-only array that shows the second page of a file, as containers do."""
    path = tmp_path / "graph.ocg"
    path.write_bytes(bytes(range(256)) * 64)
    with path.open("rb") as file:
        whole = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    return whole[mmap.PAGESIZE : mmap.PAGESIZE + 5000]


def pin(runtime: Runtime, array: np.ndarray) -> tuple[list[Route], int]:
    routes: list[Route] = []
    with map_pinned(runtime, array, 0, routes.append) as address:
        inside = address
    return routes, inside


def test_a_mapping_is_registered_as_it_is(mapped: np.ndarray) -> None:
    runtime = Runtime()
    routes, address = pin(runtime, mapped)
    assert routes == [Route.IN_PLACE]
    assert address == mapped.ctypes.data + (1 << 40)
    assert runtime.calls[0] == ("deviceGetAttribute", 113, 0)
    assert runtime.calls[1] == ("hostRegister", mapped.ctypes.data, 2 * mmap.PAGESIZE, 2 | 8)
    assert runtime.calls[-1] == ("hostUnregister", mapped.ctypes.data)


def test_a_private_mapping_is_the_second_choice(mapped: np.ndarray) -> None:
    runtime = Runtime(read_only=False)
    routes, address = pin(runtime, mapped)
    assert routes == [Route.PRIVATE]
    assert address != mapped.ctypes.data + (1 << 40)
    assert runtime.names() == ["deviceGetAttribute", "hostRegister", "hostUnregister"]
    assert runtime.calls[1][3] == 2


def test_the_private_mapping_shows_the_same_bytes(mapped: np.ndarray) -> None:
    runtime = Runtime(read_only=False)
    with map_pinned(runtime, mapped, 0, lambda _: None) as address:
        assert ctypes.string_at(address - (1 << 40), 5000) == mapped.tobytes()


def test_a_copy_is_the_last_choice(mapped: np.ndarray) -> None:
    runtime = Runtime(refused=("hostRegister",))
    routes: list[Route] = []
    with map_pinned(runtime, mapped, 0, routes.append) as address:
        assert routes == [Route.COPY]
        assert ctypes.string_at(address - (1 << 40), 5016) == mapped.tobytes() + bytes(16)
    assert runtime.names()[-2:] == ["hostAlloc", "freeHost"]
    assert not runtime.pinned


@pytest.mark.parametrize("second", [Route.PRIVATE, Route.COPY])
def test_pages_that_others_registered_stay_so(mapped: np.ndarray, second: Route) -> None:
    """A batch and a search may want the same pages; the second takes another route."""
    runtime = Runtime()
    if second is Route.COPY:
        mapped = page_aligned(mapped.size)
    with map_pinned(runtime, mapped, 0, lambda _: None):
        before = set(runtime.pinned)
        assert pin(runtime, mapped)[0] == [second]
        assert set(runtime.pinned) == before
    assert not runtime.pinned


def test_memory_that_is_no_file_is_copied() -> None:
    array = off_the_page(np.arange(100, dtype=np.uint8))
    array.flags.writeable = False
    assert pin(Runtime(read_only=False), array)[0] == [Route.COPY]


def test_refusal_of_every_route_is_explained(mapped: np.ndarray) -> None:
    runtime = Runtime(refused=("hostRegister", "hostAlloc"))
    with pytest.raises(PinError, match=r"in place.*private.*copied.*free host memory") as caught:
        pin(runtime, mapped)
    assert "\n" not in str(caught.value)
    assert not runtime.pinned


def test_a_low_limit_is_named(mapped: np.ndarray) -> None:
    before = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (1024, before[1]))
    try:
        with pytest.raises(PinError, match=r"only 1\.0 KB may be locked.*ulimit -l unlimited"):
            pin(Runtime(refused=("hostRegister", "hostAlloc")), mapped)
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, before)


@pytest.fixture
def pieces(tmp_path: Path) -> np.ndarray:
    """Return a mapped file of several pages, to be registered a page at a time."""
    path = tmp_path / "graph.ocg"
    path.write_bytes(np.random.default_rng(1).bytes(5 * mmap.PAGESIZE + 100))
    with path.open("rb") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)


def pin_pages(runtime: Runtime, array: np.ndarray) -> list[Route]:
    routes: list[Route] = []
    show = Phases(show=False)
    with map_pinned(runtime, array, 0, routes.append, show, piece_bytes=mmap.PAGESIZE) as address:
        assert ctypes.string_at(address - (1 << 40), array.size) == array.tobytes()
        assert runtime.pinned
    return routes


def test_pieces_are_registered_side_by_side(pieces: np.ndarray) -> None:
    runtime = Runtime()
    assert pin_pages(runtime, pieces) == [Route.IN_PLACE]
    registered = [call[1:3] for call in runtime.calls if call[0] == "hostRegister"]
    first = pieces.ctypes.data
    assert registered == [(first + i * mmap.PAGESIZE, mmap.PAGESIZE) for i in range(6)]
    assert not runtime.pinned


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize("accepted", range(6))
def test_a_piece_that_is_refused_undoes_its_route(
    pieces: np.ndarray, accepted: int, read_only: bool
) -> None:
    runtime = Runtime(refused=("hostRegister",), accepted=accepted, read_only=read_only)
    assert pin_pages(runtime, pieces) == [Route.COPY]
    assert not runtime.pinned


@pytest.mark.parametrize("accepted", range(6))
def test_ctrl_c_in_the_middle_leaves_nothing_pinned(pieces: np.ndarray, accepted: int) -> None:
    runtime = Runtime(refused=("hostRegister",), accepted=accepted, error=KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        pin_pages(runtime, pieces)
    assert not runtime.pinned
    assert runtime.names().count("hostUnregister") == accepted + 1


def test_pieces_that_are_scattered_are_copied(pieces: np.ndarray) -> None:
    runtime = Runtime(scattered=True)
    routes: list[Route] = []
    with map_pinned(runtime, pieces, 0, routes.append, piece_bytes=mmap.PAGESIZE):
        assert routes == [Route.COPY]
    assert not runtime.pinned


def test_decompressed_tails_are_pinned_in_place(tmp_path: Path) -> None:
    edges = np.random.default_rng(1).integers(0, 3000, (20000, 2))
    oocbfs.convert(edges, tmp_path / "g", codec="zstd")
    with open_file(tmp_path / "g") as graph:
        tails = graph._stored.rows.tails
        runtime = Runtime(read_only=False)
        assert pin_pages(runtime, tails) == [Route.IN_PLACE]
        assert all(call[3] == 2 for call in runtime.calls if call[0] == "hostRegister")


def test_everything_is_undone_when_the_search_fails(mapped: np.ndarray) -> None:
    for runtime in (Runtime(), Runtime(read_only=False), Runtime(refused=("hostRegister",))):
        with pytest.raises(ZeroDivisionError), map_pinned(runtime, mapped, 0, lambda _: None):
            raise ZeroDivisionError
        assert runtime.names()[-1] in ("hostUnregister", "freeHost")
