"""The ranks of an MPI job: rank 0 is the program, all others do what it tells all of them to.

What rank 0 tells is a function of oocbfs, which then runs on every rank, and may use collectives.
An error on any rank is gathered with the results: no rank leaves a function alone.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import signal
import sys
import termios
import time
from array import array
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING, Any

from oocbfs.errors import ClusterError, OocbfsError
from oocbfs.formats.io.machine import usable_cores

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

# Functions that run on all ranks are called with the communicator, what all were told, and what
# only rank 0 has: None on all others.
OnAll = Callable[[Any, Any, Any], Any]
# How long ranks that have nothing to do sleep before they look again.
_NAP_SECONDS = 0.001
# How long a rank that ends waits for its last line to be read.
_READ_SECONDS = 1.0


def import_mpi() -> Any:
    """Import and start MPI, or say how to get it."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise ClusterError("MPI needs mpi4py: pip install 'oocbfs[mpi]'") from error
    except RuntimeError as error:  # mpi4py is there, and no MPI library is
        raise ClusterError(
            f"there is no MPI library: {str(error).splitlines()[0]}; install MPICH or Open MPI, "
            "or pip install mpich"
        ) from error
    return MPI


@cache
def serve_unless_first() -> bool:
    """On all ranks but 0, do what rank 0 tells until it ends; returns whether this was one."""
    comm: Comm | None = None
    try:
        with _signals_later():
            comm = import_mpi().COMM_WORLD
            if comm.Get_rank() == 0:
                atexit.register(_leave, comm)
        if comm.Get_rank() == 0:
            return False
        while (told := _hear(comm)) is not None:
            function, shared = told
            function(comm, shared, None)
    except BaseException as error:
        if comm is None or comm.Get_rank() == 0:
            raise
        _abort(comm, error)
    return True


@contextmanager
def _signals_later() -> Generator[None]:
    """Let signals wait: one that meets the start of MPI would leave it half started."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _hear(comm: Comm) -> Any:
    """Wait for what rank 0 tells all; asleep, so that signals are heard at once."""
    arrived = comm.Ibarrier()
    while not arrived.Test():
        time.sleep(_NAP_SECONDS)
    return comm.bcast(None)


def _tell(comm: Comm, told: tuple[OnAll, Any] | None) -> None:
    """Send all ranks what to do, as soon as they listen; None sends them home."""
    comm.Ibarrier().Wait()
    comm.bcast(told)


# While ranks do something together: why rank 0 has left it, if it has.
_left: list[BaseException] = []


def _leave(comm: Comm) -> None:
    """Send the other ranks home, however rank 0 ends; if they cannot hear it, end all of them."""
    try:
        if not _left:
            _tell(comm, None)
    except BaseException as error:  # noqa: BLE001 - a signal
        _left.append(error)
    if _left:
        _abort(comm, _left[0])


def _abort(comm: Comm, error: BaseException) -> None:
    """End all ranks; says why in one line, where nothing else has."""
    with _signals_later():
        rank, code, reason = comm.Get_rank(), 1, f"{type(error).__name__}: {error}"
        if isinstance(error, KeyboardInterrupt):
            code, reason = 130, "interrupted"
        elif isinstance(error, SystemExit):
            code, reason = error.code if isinstance(error.code, int) else 1, "ended by SIGTERM"
        if rank or isinstance(error, SystemExit):
            sys.stderr.write(f"oocbfs: rank {rank}: {reason}\n")
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        _wait_until_read(2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # for MPI's own line, which says less
        comm.Abort(code)


def _wait_until_read(descriptor: int) -> None:
    """Wait until a pipe is empty, but not for long: MPI ends its reader, who loses the rest."""
    unread, end = array("i", [1]), time.monotonic() + _READ_SECONDS
    with suppress(OSError):  # no pipe
        while unread[0] and time.monotonic() < end:
            fcntl.ioctl(descriptor, termios.FIONREAD, unread)
            time.sleep(_NAP_SECONDS)


def first_rank() -> Any:
    """Return the communicator on rank 0; all other ranks serve it here, and end."""
    if serve_unless_first():
        sys.exit(0)
    return import_mpi().COMM_WORLD


class _CommonError(Exception):
    """What rank 0 raises is known to all ranks, so that none is left behind."""

    def __init__(self, error: OocbfsError) -> None:
        self.error = error


def on_all(function: OnAll, shared: Any, rooted: Any = None) -> Any:
    """Run a function on all ranks; returns what it gives on rank 0.

    Raises
    ------
    ClusterError
        If an earlier one was interrupted: other ranks still wait there, until this one ends.
    """
    comm = first_rank()
    if _left:
        raise ClusterError("the MPI job was interrupted in the middle of a search; start it again")
    with together():
        _tell(comm, (function, shared))
        return function(comm, shared, rooted)


@contextmanager
def together() -> Generator[None]:
    """Mark what all ranks do together: if rank 0 alone leaves it, its end is the end of all."""
    _left.append(KeyboardInterrupt())  # until it is over
    try:
        yield
    except _CommonError as known:
        _left.clear()
        raise known.error from known.error.__cause__
    except BaseException as error:
        _left[0] = error
        raise
    _left.clear()


def attempt(work: Callable[[], Any]) -> tuple[Any, Exception | None]:
    """Do something on this rank; an error is given, because others wait for an answer."""
    try:
        return work(), None
    except OocbfsError as error:
        return None, error
    except Exception as error:  # noqa: BLE001
        return None, ClusterError(f"{type(error).__name__}: {error}")


def gather(comm: Comm, attempted: tuple[list[Any] | None, Exception | None]) -> list[Any]:
    """Bring what all ranks have to rank 0, in one list, or raise the first error there."""
    found: list[Any] = []
    for rank, (mine, error) in enumerate(comm.gather(attempted) or ()):
        try:
            raise_error(rank, error)
        except OocbfsError as raised:
            raise _CommonError(raised) from raised
        found += mine or []
    return found


def raise_error(rank: int, error: Exception | None) -> None:
    """Raise what a rank could not do, if there is such; names the rank where it matters."""
    if isinstance(error, ClusterError):
        raise ClusterError(f"rank {rank}: {error}") from error
    if error is not None:
        raise error


def cores_of_rank(comm: Comm) -> int:
    """Count the cores of this rank, which shares its machine with others there."""
    neighbours = comm.Split_type(import_mpi().COMM_TYPE_SHARED)
    cores = max(1, usable_cores() // neighbours.Get_size())
    neighbours.Free()
    return cores
