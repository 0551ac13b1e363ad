"""Let a GPU read host memory in place: three routes, from no copy at all to one copy.

1. Register the memory as it is: the read-only mapping of the file, where the device can read such
   memory, or memory of ours that holds a decompressed section.
2. Map the file again, privately writable, and register that: the driver pins pages for writing, so
   the system may give each its own copy, but nothing of ours reads the file.
3. Copy into pinned memory of the driver's.

Memory is registered piece by piece, so that a bar moves and Ctrl-C works. A piece is noted before
it is registered, so that nothing stays pinned after an interrupt. Memory is given back only after
all kernels that may read it have ended.

Memory that the host changes meanwhile takes none of these routes: it is allocated pinned.
"""

from __future__ import annotations

import ctypes
import logging
import mmap
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import OocbfsError
from oocbfs.formats.io.ordered import available_threads, ordered_map
from oocbfs.kernels.constants import SLACK_BYTES
from oocbfs.memory import format_size, locked_limit
from oocbfs.progress import Phases

# Numbers of the CUDA runtime that CuPy does not name.
_HOST_REGISTER_MAPPED = 2
_HOST_REGISTER_READ_ONLY = 8
_HOST_ALLOC_MAPPED = 2
_ATTRIBUTE_READ_ONLY_REGISTER = 113

_PAGE = mmap.PAGESIZE
PIECE_BYTES = 256 << 20
# Copied by one thread at a time.
_COPY_BYTES = 16 << 20
# Tries to find out how much can be pinned: halves, until one is granted, and steps between.
_HALVES, _STEPS = 16, 4

_log = logging.getLogger(__name__)


class Route(Enum):
    """How the tails reached the GPU."""

    IN_PLACE = "registered in place"
    PRIVATE = "registered a private mapping of the file"
    COPY = "copied into pinned memory"


class PinError(OocbfsError):
    """Host memory that the driver would not pin; says which limit to raise."""


class _NotApplicableError(Exception):
    """A route that does not fit this array or device."""


@contextmanager
def map_pinned(
    runtime: Any,
    array: NDArray[np.uint8],
    device_id: int,
    chosen: Callable[[Route], object],
    phases: Phases | None = None,
    piece_bytes: int = PIECE_BYTES,
) -> Iterator[int]:
    """Yield the device's address of the array, and tell ``chosen`` which route it took."""
    job = _Job(runtime, array, device_id, phases or Phases(show=False), piece_bytes)
    refusals = []
    for route, attempt in (
        (Route.IN_PLACE, _register_in_place),
        (Route.PRIVATE, _register_private),
        (Route.COPY, _copy),
    ):
        with ExitStack() as stack:
            try:
                address = stack.enter_context(attempt(job))
            except (runtime.CUDARuntimeError, OSError, _NotApplicableError) as error:
                refusals.append(f"{route.value}: {str(error).splitlines()[0]}")
                continue
            chosen(route)
            size, why = format_size(array.nbytes), "; ".join(refusals)
            _log.log(
                logging.INFO if refusals else logging.DEBUG,
                "the GPU reads %s of host memory: %s%s",
                size,
                route.value,
                f" ({why})" if why else "",
            )
            yield address
            return
    raise PinError(
        f"the driver would not pin {format_size(array.nbytes)} of host memory "
        f"({'; '.join(refusals)}): {_advise(array.nbytes)}"
    )


@contextmanager
def allocate_pinned(runtime: Any, size: int) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Yield pinned memory on a page boundary, and the device's address of it."""
    with ExitStack() as stack:
        try:
            pinned = stack.enter_context(_allocate(runtime, size))
        except runtime.CUDARuntimeError as error:
            raise PinError(
                f"the driver would not allocate {format_size(size)} of pinned host memory "
                f"({str(error).splitlines()[0]}): {_advise(size)}"
            ) from error
        yield pinned


def find_pinnable(runtime: Any, most_bytes: int) -> int:
    """Return how much of so many bytes the driver pins, by a few tries; most of it is refused."""

    def is_granted(size: int) -> bool:
        try:
            with _allocate(runtime, size):
                return True
        except runtime.CUDARuntimeError:
            return False

    sizes = (most_bytes >> by for by in range(1, _HALVES + 1))
    granted = next((size for size in sizes if size >= _PAGE and is_granted(size)), 0)
    step = granted
    for _ in range(_STEPS if granted else 0):
        step //= 2
        if is_granted(granted + step):
            granted += step
    return granted


def _advise(num_bytes: int) -> str:
    limit = locked_limit()
    if limit is not None and limit < num_bytes:
        return (
            f"only {format_size(limit)} may be locked, raise it with 'ulimit -l unlimited' or by "
            "memlock in /etc/security/limits.conf"
        )
    return "free host memory, or use --engine cpu"


class _Job(NamedTuple):
    """What every route is given."""

    runtime: Any
    array: NDArray[np.uint8]
    device_id: int
    phases: Phases
    piece_bytes: int


def _register_in_place(job: _Job) -> AbstractContextManager[int]:
    address = job.array.ctypes.data
    if address % _PAGE:
        raise _NotApplicableError("not page-aligned")
    flags = _HOST_REGISTER_MAPPED
    if not _find_mapping(address).writable:
        if not job.runtime.deviceGetAttribute(_ATTRIBUTE_READ_ONLY_REGISTER, job.device_id):
            raise _NotApplicableError("the device cannot register read-only memory")
        flags |= _HOST_REGISTER_READ_ONLY
    return _register(job, address, flags)


@contextmanager
def _register_private(job: _Job) -> Iterator[int]:
    found = _find_mapping(job.array.ctypes.data)
    if found.path is None:
        raise _NotApplicableError("not a mapped file")
    if found.offset % mmap.ALLOCATIONGRANULARITY:
        raise _NotApplicableError("the section is not page-aligned in the file")
    with found.path.open("rb") as file:
        mapping = mmap.mmap(
            file.fileno(),
            job.array.nbytes,
            flags=mmap.MAP_PRIVATE,
            prot=mmap.PROT_READ | mmap.PROT_WRITE,
            offset=found.offset,
        )
    with mapping:
        # The view must not outlive this line: a mapping cannot close while one exists.
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapping))
        with _register(job, address, _HOST_REGISTER_MAPPED) as mapped:
            yield mapped


@contextmanager
def _copy(job: _Job) -> Iterator[int]:
    size = job.array.nbytes
    with _allocate(job.runtime, size) as (pinned, address):

        def copy(begin: int) -> int:
            piece = job.array[begin : begin + _COPY_BYTES]
            pinned[begin : begin + piece.size] = piece
            return piece.size

        with job.phases("copy", size, "B") as bar:
            for done in ordered_map(copy, range(0, size, _COPY_BYTES), available_threads()):
                bar.update(done)
        yield address


@contextmanager
def _allocate(runtime: Any, size: int) -> Iterator[tuple[NDArray[np.uint8], int]]:
    """Allocate on a page boundary, with zeros after the end for decoders that read ahead."""
    whole = size + SLACK_BYTES + _PAGE
    address = int(runtime.hostAlloc(whole, _HOST_ALLOC_MAPPED))
    try:
        first = -address % _PAGE
        memory = np.ctypeslib.as_array((ctypes.c_uint8 * whole).from_address(address))
        memory[first + size :] = 0
        yield memory[first : first + size], _device_address(runtime, address) + first
    finally:
        _give_back(runtime, runtime.freeHost, address)


@contextmanager
def _register(job: _Job, address: int, flags: int) -> Iterator[int]:
    """Register whole pages, piece by piece; the device must see them side by side."""
    size = -(-job.array.nbytes // _PAGE) * _PAGE
    runtime, ours, offsets = job.runtime, list[int](), set[int]()
    with ExitStack() as stack:
        stack.callback(_unregister, runtime, ours)
        with job.phases("pin", size, "B") as bar:
            for begin in range(address, address + size, job.piece_bytes):
                length = min(job.piece_bytes, address + size - begin)
                ours.append(begin)
                try:
                    runtime.hostRegister(begin, length, flags)
                except runtime.CUDARuntimeError:
                    ours.pop()  # it may be registered by others, and is then theirs
                    raise
                offsets.add(_device_address(runtime, begin) - begin)
                bar.update(length)
        if len(offsets) > 1:
            raise _NotApplicableError("the device does not see the pieces side by side")
        yield address + offsets.pop()


def _unregister(runtime: Any, pieces: list[int]) -> None:
    with ExitStack() as stack:
        for piece in pieces:
            stack.callback(_give_back, runtime, runtime.hostUnregister, piece)


def _give_back(runtime: Any, how: Callable[[int], object], address: int) -> None:
    """Take memory from the device, after the last kernel that may read it."""
    # CUDA refuses a piece that Ctrl-C kept from being registered, which is right. A device that
    # failed refuses everything; the system frees its memory when the process ends.
    try:
        with suppress(runtime.CUDARuntimeError):
            runtime.deviceSynchronize()
    finally:
        with suppress(runtime.CUDARuntimeError):
            how(address)


def _device_address(runtime: Any, address: int) -> int:
    return int(runtime.pointerGetAttributes(address).devicePointer)


class _Mapping(NamedTuple):
    """Whether pages may be written, and what file they show from which offset, if any."""

    writable: bool
    path: Path | None
    offset: int


def _find_mapping(address: int) -> _Mapping:
    """Look an address up in the system's list of mappings."""
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError as error:
        raise _NotApplicableError("the system does not list mappings") from error
    for line in lines:
        span, rights, offset, _, inode, *name = line.split(maxsplit=5)
        begin, end = (int(part, 16) for part in span.split("-"))
        if begin <= address < end:
            path = Path(name[0]) if name and inode != "0" else None
            if path is not None and not (path.exists() and path.stat().st_ino == int(inode)):
                path = None
            return _Mapping("w" in rights, path, int(offset, 16) + address - begin)
    raise _NotApplicableError("not mapped")
