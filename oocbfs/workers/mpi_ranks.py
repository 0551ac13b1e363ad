"""The ranks of an MPI job: rank 0 is the program, all others do what it tells all of them to.

What rank 0 tells is a function of oocbfs, which then runs on every rank, and may use collectives.
An error on any rank is gathered with the results: no rank leaves a function alone.
"""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from oocbfs.errors import ClusterError, OocbfsError
from oocbfs.formats.io.machine import usable_cores

if TYPE_CHECKING:
    from mpi4py.MPI import Comm

# Functions that run on all ranks are called with the communicator, what all were told, and what
# only rank 0 has: None on all others.
OnAll = Callable[[Any, Any, Any], Any]


def import_mpi() -> Any:  # noqa: ANN401
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
    """On all ranks but 0, do what rank 0 tells until it ends; tells whether this was one."""
    comm = import_mpi().COMM_WORLD
    if comm.Get_rank() == 0:
        atexit.register(comm.bcast, None)  # however it ends, the others go home
        return False
    while (told := comm.bcast(None)) is not None:
        function, shared = told
        function(comm, shared, None)
    return True


def first_rank() -> Any:  # noqa: ANN401
    """Give the communicator to rank 0; all other ranks serve it here, and end."""
    if serve_unless_first():
        sys.exit(0)
    return import_mpi().COMM_WORLD


def on_all(function: OnAll, shared: Any, rooted: Any = None) -> Any:  # noqa: ANN401
    """Run a function on all ranks; gives what it gives on rank 0."""
    comm = first_rank()
    comm.bcast((function, shared))
    return function(comm, shared, rooted)


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
        raise_error(rank, error)
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
