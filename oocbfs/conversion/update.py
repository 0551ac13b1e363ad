"""Replace a graph file by the same graph with some edges more and others less."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from oocbfs.conversion.converter import convert
from oocbfs.conversion.inputs import sort_out
from oocbfs.errors import OutputError, QueryError
from oocbfs.formats.container.layout import Encoding, Kind
from oocbfs.formats.output.atomic import explained
from oocbfs.graph.stored import open_stored
from oocbfs.settings import CodecName

if TYPE_CHECKING:
    from oocbfs.conversion.converter import Report


def update(
    graph: str | os.PathLike[str],
    add: Any = None,
    *,
    remove: Any = None,
    remove_vertices: Any = None,
    codec: CodecName | None = None,
    **settings: Any,
) -> Report:
    """Add edges to a graph file and take others out.

    The new file replaces the old one when it is whole. Who has opened the old one keeps it, and if
    this fails or is killed, it stays as it was. ``remove`` wins over ``add``.

    Parameters
    ----------
    graph
        A graph file.
    add, remove, remove_vertices
        As the inputs, ``remove`` and ``remove_vertices`` of `convert`.
    codec
        As for `convert`; a graph whose tails are compressed stays so, others are looked at.
    settings
        ``order``, ``memory``, ``threads``, ``tmp``, and how tables are read, as for `convert`.

    Raises
    ------
    OutputError
        If another process or thread updates the same file.
    """
    if add is None and remove is None and remove_vertices is None:
        raise QueryError("nothing to update: say what to add or to remove")
    open_stored(graph).close()  # what is no graph is refused in the words of all verbs
    with _locked(graph), open_stored(graph) as stored:
        if codec is None:
            tails = stored._container.sections[Kind.TAILS]
            codec = "auto" if int(tails["encoding"]) == Encoding.RAW else "zstd"
        more = [] if add is None else sort_out(add).all
        return convert(
            [graph, *more],
            graph,
            remove=remove,
            remove_vertices=remove_vertices,
            codec=codec,
            force=True,
            in_place=True,
            **settings,
        )


@contextmanager
def _locked(path: str | os.PathLike[str]) -> Generator[None]:
    """Lock a file, so that nobody else replaces it; refuse if somebody is about to."""
    shown = os.fspath(path)
    with explained(path):
        while True:
            # Not to be written: a lock needs no more, and some may read a file they can replace.
            with open(path, "rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError as error:
                    raise OutputError(
                        f"{shown}: is being updated already: try again when that is done"
                    ) from error
                except OSError:  # this folder has no locks
                    pass
                if os.path.samestat(os.fstat(file.fileno()), os.stat(path)):
                    yield
                    return
            # It was replaced meanwhile: the lock was on what nobody will find.
