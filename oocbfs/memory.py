"""How much memory there is, how much is used, and how sizes are written."""

from __future__ import annotations

import ctypes
import os
import re
import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from oocbfs.errors import BudgetError, shown
from oocbfs.formats.io import machine
from oocbfs.options import is_whole

# The interpreter, what searches import, and all their code. Counted even where it is not there yet,
# so that a budget is enough or not whatever a process loads first, and however often it is asked.
_PROGRAM_BYTES = 152 << 20
# Python objects, allocator waste, and the pieces in which results are counted and written.
_MARGIN_BYTES = 16 << 20
# Addresses that the program takes beside its data: libraries, code and its compiler, and stacks, of
# which those that read from disk are always as many.
_ADDRESSES_BYTES = 704 << 20
_STACK_BYTES = 8 << 20
_M_ARENA_MAX = -8  # of glibc's malloc.h
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


# Told which file is about to be unpacked, and how much memory that takes.
on_unpacking: Callable[[str, int], object] = lambda path, num_bytes: None


def parse_size(text: str | int) -> int:
    """Read a size such as ``512M`` or ``1.5G`` (powers of 1024) in bytes."""
    if is_whole(text):
        return int(text)
    pattern = r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*"
    match = re.fullmatch(pattern, text, re.IGNORECASE) if isinstance(text, str) else None
    if match is None:
        raise BudgetError(f"cannot read {shown(text)} as a size: write it as 512M or 4G")
    size = float(match[1]) * _UNITS[match[2].upper()]
    if size >= 2**63:
        raise BudgetError(f"{shown(text)} is more than any machine has: write it as 512M or 4G")
    return int(size)


def read_size(text: str) -> str:
    """Check that a size can be read, before it is needed."""
    parse_size(text)
    return text


def format_size(num_bytes: float) -> str:
    """Write a size for people, such as ``1.5 GB`` (powers of 1024)."""
    for unit in ("bytes", "KB", "MB", "GB"):
        if num_bytes < 1024 or unit == "GB":
            break
        num_bytes /= 1024
    return f"{num_bytes:,.0f} {unit}" if unit == "bytes" else f"{num_bytes:,.1f} {unit}"


def available_bytes() -> int:
    """Memory that this process can still take: the machine's, or less in a limited container."""
    limits = [machine.free_bytes()]
    for limit, usage in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        (
            "/sys/fs/cgroup/memory/memory.limit_in_bytes",
            "/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ):
        try:
            limits.append(int(Path(limit).read_text()) - int(Path(usage).read_text()))
        except (OSError, ValueError):  # not in such a group, or unlimited ("max")
            continue
    addresses_bytes = _limit(resource.RLIMIT_AS)
    if addresses_bytes is not None:
        limits.append(addresses_bytes - _ADDRESSES_BYTES + _PROGRAM_BYTES)
    return max(0, min(limits))


def resident_bytes() -> int:
    """Memory that this process occupies now."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return peak_bytes()


def locked_limit() -> int | None:
    """Return how much memory this process may lock; None is no limit."""
    return _limit(resource.RLIMIT_MEMLOCK)


def _limit(kind: int) -> int | None:
    limit = resource.getrlimit(kind)[0]
    return None if limit == resource.RLIM_INFINITY else limit


def expect_addresses(data_bytes: int = 0) -> None:
    """Refuse to begin where a limit of addresses (``ulimit -v``) leaves too few for these data.

    Libraries that get none when they need them abort the process, or a thread never begins.

    Raises
    ------
    BudgetError
        If there are too few; says how many are needed.
    """
    limit_bytes = _limit(resource.RLIMIT_AS)
    if limit_bytes is None:
        return
    _save_addresses()
    threads_bytes = _STACK_BYTES * machine.usable_cores()
    needed_bytes = _ADDRESSES_BYTES + threads_bytes + data_bytes
    if needed_bytes > limit_bytes:
        raise BudgetError(
            f"the limit of addresses (ulimit -v) is {format_size(limit_bytes)}, and "
            f"{format_size(needed_bytes)} are needed: allow more, or set none and use --memory",
            needed_bytes,
        )


@cache
def _save_addresses() -> None:
    """Let threads share one arena, where each takes 64 MB of addresses otherwise, and BLAS none."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def anonymous_bytes() -> int:
    """Memory that this process occupies now and that the kernel cannot take back."""
    try:
        _, resident, shared = Path("/proc/self/statm").read_text().split()[:3]
    except OSError:
        return peak_bytes()
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


@cache
def program_bytes() -> int:
    """Memory that the program itself occupies beside its data, as it was at the first call."""
    return max(0, resident_bytes() - anonymous_bytes())


def peak_bytes() -> int:
    """Return the most memory this process has occupied so far."""
    # What the system counts as used by it includes what started it, before it became a program.
    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def read_bytes() -> int:
    """Bytes that this process caused to be read from disks; 0 where nobody counts them."""
    try:
        lines = Path("/proc/self/io").read_text().splitlines()
    except OSError:
        return 0
    return next(int(line.split()[1]) for line in lines if line.startswith("read_bytes"))


def give_back() -> None:
    """Release to the system what freed arrays left behind: glibc keeps up to 64 MB of it."""
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)


def used_bytes(counted_bytes: int = 0) -> int:
    """Return what the process occupies and will load, but for what is counted by its own name.

    This includes what escapes all counting.
    """
    give_back()
    occupied_bytes = program_bytes() + anonymous_bytes() - counted_bytes
    return max(_PROGRAM_BYTES, occupied_bytes) + _MARGIN_BYTES


def allow_unpacking(
    path: str | os.PathLike[str], unpacked_bytes: int, budget_bytes: int | None = None
) -> None:
    """Refuse to unpack a compressed graph that would not fit, before it takes the memory.

    Raises
    ------
    BudgetError
        If it is more than the budget leaves, or than the machine has.
    """
    free_bytes = available_bytes()
    if budget_bytes is not None:
        free_bytes = min(free_bytes, max(0, budget_bytes - used_bytes()))
    if unpacked_bytes > free_bytes:
        raise BudgetError(
            f"{path}: takes {format_size(unpacked_bytes)} of memory unpacked, and "
            f"{format_size(free_bytes)} may be taken: allow more, or convert it with --codec raw"
        )
    on_unpacking(os.fspath(path), unpacked_bytes)
