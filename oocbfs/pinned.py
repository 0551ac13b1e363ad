"""Let a GPU read host memory in place: three routes, from no copy at all to one copy.

1. Register the read-only mapping of the file, where the device can read such memory.
2. Map the file again, privately writable, and register that: the driver pins pages for writing, so
   the system may give each its own copy, but nothing of ours reads the file.
3. Copy into pinned memory of the driver's.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import OocbfsError
from oocbfs.kernels.constants import SLACK_BYTES

# Numbers of the CUDA runtime that CuPy does not name.
_HOST_REGISTER_MAPPED = 2
_HOST_REGISTER_READ_ONLY = 8
_HOST_ALLOC_MAPPED = 2
_ATTRIBUTE_READ_ONLY_REGISTER = 113

_PAGE = mmap.PAGESIZE


class Route(Enum):
    """How the tails reached the GPU."""

    READ_ONLY = "registered the file's mapping"
    PRIVATE = "registered a private mapping of the file"
    COPY = "copied into pinned memory"


class PinError(OocbfsError):
    """Host memory that the driver would not pin; says which limit to raise."""


@contextmanager
def map_pinned(
    runtime: Any,  # noqa: ANN401
    array: NDArray[np.uint8],
    device_id: int,
    chosen: Callable[[Route], None],
) -> Iterator[int]:
    """Give the device's address of the array while the context lasts, and say which route it took."""
    with ExitStack() as stack:
        refusals = []
        for route, attempt in (
            (Route.READ_ONLY, _register_read_only),
            (Route.PRIVATE, _register_private),
            (Route.COPY, _copy),
        ):
            try:
                address = attempt(runtime, array, device_id, stack)
            except (runtime.CUDARuntimeError, OSError, _NotApplicableError) as error:
                refusals.append(f"{route.value}: {error}")
                continue
            chosen(route)
            yield address
            return
        raise PinError(
            f"the driver would not pin {array.nbytes / 2**20:,.0f} MB of host memory "
            f"({'; '.join(refusals)}): free memory, or raise the limit shown by 'ulimit -l'"
        )


class _NotApplicableError(Exception):
    """A route that does not fit this array or device."""


def _register_read_only(
    runtime: Any,  # noqa: ANN401
    array: NDArray[np.uint8],
    device_id: int,
    stack: ExitStack,
) -> int:
    if array.ctypes.data % _PAGE:
        raise _NotApplicableError("not page-aligned")
    if not array.flags.writeable:
        if not runtime.deviceGetAttribute(_ATTRIBUTE_READ_ONLY_REGISTER, device_id):
            raise _NotApplicableError("the device cannot register read-only memory")
        flags = _HOST_REGISTER_MAPPED | _HOST_REGISTER_READ_ONLY
    else:
        flags = _HOST_REGISTER_MAPPED
    return _register(runtime, array.ctypes.data, array.nbytes, flags, stack)


def _register_private(
    runtime: Any,  # noqa: ANN401
    array: NDArray[np.uint8],
    device_id: int,
    stack: ExitStack,
) -> int:
    del device_id
    path, offset = _file_of(array)
    size = array.nbytes
    with path.open("rb") as file:
        mapping = mmap.mmap(
            file.fileno(), size, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE,
            offset=offset,
        )  # fmt: skip
    stack.callback(mapping.close)
    view = (ctypes.c_char * size).from_buffer(mapping)
    address = ctypes.addressof(view)
    del view  # a mapping cannot close while a view of it lives
    return _register(runtime, address, size, _HOST_REGISTER_MAPPED, stack)


def _copy(
    runtime: Any,  # noqa: ANN401
    array: NDArray[np.uint8],
    device_id: int,
    stack: ExitStack,
) -> int:
    del device_id
    address = int(runtime.hostAlloc(array.nbytes + SLACK_BYTES, _HOST_ALLOC_MAPPED))
    stack.callback(runtime.freeHost, address)
    room = (ctypes.c_uint8 * (array.nbytes + SLACK_BYTES)).from_address(address)
    pinned = np.ctypeslib.as_array(room)
    pinned[: array.nbytes] = array
    pinned[array.nbytes :] = 0
    return _device_address(runtime, address)


def _register(
    runtime: Any,  # noqa: ANN401
    address: int,
    size: int,
    flags: int,
    stack: ExitStack,
) -> int:
    whole_pages = -(-size // _PAGE) * _PAGE
    runtime.hostRegister(address, whole_pages, flags)
    stack.callback(runtime.hostUnregister, address)
    return _device_address(runtime, address)


def _device_address(runtime: Any, address: int) -> int:  # noqa: ANN401
    return int(runtime.pointerGetAttributes(address).devicePointer)


def _file_of(array: NDArray[np.uint8]) -> tuple[Path, int]:
    """Give the file and the offset in it that the array shows, by the system's list of mappings."""
    address = array.ctypes.data
    try:
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError as error:
        raise _NotApplicableError("the system does not list mappings") from error
    for line in lines:
        span, _, offset, _, inode, *name = line.split(maxsplit=5)
        begin, end = (int(part, 16) for part in span.split("-"))
        if begin <= address < end:
            path = Path(name[0]) if name and inode != "0" else None
            if path is None or not path.exists() or path.stat().st_ino != int(inode):
                break
            file_offset = int(offset, 16) + address - begin
            if file_offset % mmap.ALLOCATIONGRANULARITY:
                raise _NotApplicableError("the section is not page-aligned in the file")
            return path, file_offset
    raise _NotApplicableError("not a mapped file")
