"""Open any number of inputs, each in its own format, as one stream of edges."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from oocbfs.errors import InputError, OocbfsError
from oocbfs.formats.edges import Declared, Edges, NamedEdges
from oocbfs.formats.io.folders import Input, find_files
from oocbfs.formats.io.limits import InputLimits
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.archive import Archive
from oocbfs.formats.readers.expect import Expected, expect
from oocbfs.formats.readers.merge import Merged
from oocbfs.formats.readers.table import FORMATS, NAMES, by_name
from oocbfs.formats.tables.columns import TableOptions, TextIds

_COMPRESSED = r"(\.(gz|zst|zstd|xz|bz2))?$"
_NPY = ".npy"
_log = logging.getLogger(__name__)
_BY_PYARROW = ("parquet", "arrow")
_LOOKING_BYTES = 8 << 20
_ANY = TableOptions()
Batch = TypeVar("Batch", Edges, NamedEdges)


def load(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Load all parsers, so that a conversion knows what memory they take, and pyarrow if needed."""
    for format in FORMATS:
        format.reader()
    if any(_needs_pyarrow(os.fspath(path)) for path in paths):
        with suppress(ImportError):  # which the reader explains
            import pyarrow.parquet  # noqa: F401


def _needs_pyarrow(path: str) -> bool:
    with suppress(OocbfsError):  # which comes again when the input is opened
        source = Source(path, InputLimits(window_bytes=_LOOKING_BYTES)) if path != "-" else None
        return source is not None and source.regular and _detect(source) in _BY_PYARROW
    return False


def open_edges(
    inputs: Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    threads: int = 1,
    limits: InputLimits | None = None,
    table: TableOptions = _ANY,
) -> InputEdges:
    """Open inputs as one graph.

    Files are looked at right away, pipes when they are read.

    Parameters
    ----------
    inputs
        Paths, or "-" for the standard input. A folder stands for all files in it. The vertex file
        of an LDBC edge file is found by name.
    format
        One of ``table.NAMES``; by default every input is recognised by its content.
    threads
        How many threads parse text.
    limits
        How much memory reading may take.
    table
        Which columns hold the edges, for formats that have columns.
    """
    if format is not None and format not in NAMES:
        raise InputError(f"unknown format {format!r}: need one of {', '.join(NAMES)}")
    found = find_files(inputs)
    if not found:
        raise InputError("no input was named")
    if [one.path for one in found].count("-") > 1:
        raise InputError("the standard input can be read only once", path="-")
    limits = limits or InputLimits()
    entries = []
    for one, vertices in _pair(found, format):
        beside = None if vertices is None else Source(vertices, limits)
        entries.append(_Input(Source(one.path, limits), format, table, one.columns, beside))
    for entry in entries:
        if entry.source.regular:
            entry.look()
    return InputEdges(entries, max(1, threads))


@dataclass
class _Input:
    """One input and what is read from it: several pieces if it is an archive of edge lists."""

    source: Source
    format: str | None
    table: TableOptions
    constants: Mapping[str, str]
    vertices: Source | None = None
    pieces: list[tuple[Source, str]] = field(default_factory=list)
    archive: Archive | None = None

    def look(self) -> None:
        """Decide how the input is read; of a file nothing stays open."""
        if self.vertices is not None:
            self.pieces = [(self.source, "ldbc")]
        elif self.source.is_zip():
            self.source.make_regular()
            self.archive = Archive(self.source)
            try:
                self.pieces = self._look_into(self.archive)
            finally:
                self.archive.close()
        elif self.format == "npz":
            raise InputError("not a zip archive, as .npz is", path=self.source.name)
        else:
            self.pieces = [(self.source, self._format_of(self.source))]
        for source, format in self.pieces:
            self._check_options(source, format)

    def reader(self, source: Source, format: str) -> Callable[..., Generator[Edges]]:
        """Return the function that reads a piece, with all that it needs to know besides."""
        return partial(by_name(format).reader(), **self._known(format))

    def name_reader(self, source: Source, format: str) -> Callable[..., Generator[NamedEdges]]:
        """Return the function that reads a piece where ids are names."""
        read = by_name(format).name_reader()
        if read is None:
            raise InputError(
                f"is {by_name(format).title}, in which ids are no names: leave --ids names out, or "
                "give --format edges if it is an edge list",
                path=source.name,
            )
        return partial(read, **self._known(format))

    def _known(self, format: str) -> dict[str, Any]:
        known: dict[str, Any] = {}
        if self.vertices is not None:
            known["vertices"] = self.vertices
        if by_name(format).options:
            known["table"] = self.table
        if format in _BY_PYARROW:
            known["constants"] = self.constants
        return known

    def stored_bytes(self) -> int:
        """Return the size of all that was read for this input."""
        if self.source.size is None:
            return self.source.done
        return self.source.size + (self.vertices.size or 0 if self.vertices else 0)

    def close(self) -> None:
        """Close what reading has opened."""
        self.pieces = []
        if self.archive is not None:
            self.archive.close()
        self.source.close()

    def _format_of(self, source: Source) -> str:
        return self.format or _detect(source, table=bool(self.table.given()))

    def _check_options(self, source: Source, format: str) -> None:
        for option in self.table.given():
            if option not in by_name(format).options:
                raise InputError(
                    f"{option} is not for this format, {by_name(format).title}", path=source.name
                )

    def _look_into(self, archive: Archive) -> list[tuple[Source, str]]:
        files = archive.members()
        arrays = bool(files) and all(file.path.endswith(_NPY) for file in files)
        if self.format == "npz" or (arrays and self.format is None):
            return [(self.source, "npz")]
        if not files:
            raise InputError("an archive without files", path=self.source.name)
        pieces: list[tuple[Source, str]] = [(member, self._format_of(member)) for member in files]
        if len(pieces) > 1 and any(format != "edges" for _, format in pieces):
            raise InputError(
                "an archive of several files that are not all edge lists: unpack it and name one",
                path=self.source.name,
            )
        return pieces


class InputEdges:
    """The edges of all inputs, one input after the other."""

    unit = "B"

    def __init__(self, entries: list[_Input], threads: int) -> None:
        names = [entry.source.name for entry in entries]
        self.name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        self.declared = Declared()
        self.done = 0
        sizes = [
            source.size for entry in entries for source in (entry.source, entry.vertices) if source
        ]
        self.total = None if None in sizes else sum(size or 0 for size in sizes)
        self._entries = entries
        self._threads = threads

    def expect(self) -> Expected | None:
        """Look at a few places of all inputs; None if one tells nothing before it is read."""
        total = Expected(0, 1)
        for entry in self._entries:
            if not entry.pieces or entry.archive is not None or entry.vertices is not None:
                return None
            for source, format in entry.pieces:
                found = expect(source, format)
                if found is None:
                    return None
                total += found
        return total

    def batches(self) -> Generator[Edges]:
        """Yield the edges in input order."""
        return self._read(_Input.reader)

    def named_batches(self) -> Generator[NamedEdges]:
        """Yield the edges in input order, if their ids are names."""
        return self._read(_Input.name_reader)

    def _read(
        self, reader: Callable[[_Input, Source, str], Callable[..., Generator[Batch]]]
    ) -> Generator[Batch]:
        pieces = sum(max(1, len(entry.pieces)) for entry in self._entries)
        merged = Merged(self.declared) if pieces > 1 else None
        before = 0
        for entry in self._entries:
            entry.source.done = 0
            try:
                if not entry.pieces:
                    entry.look()
                if len(entry.pieces) > 1 and merged is None:
                    merged = Merged(self.declared)
                for source, format in entry.pieces:
                    declared = self.declared if merged is None else merged.begin(source.name)
                    _log.debug("reading %s as %s", source.name, by_name(format).title)
                    read = reader(entry, source, format)
                    with closing(read(source, declared, self._threads)) as stream:
                        for edges in stream:
                            self.done = before + entry.source.done
                            if merged is not None and isinstance(edges, Edges):
                                merged.see(edges)
                            yield edges
                before += entry.stored_bytes()
                self.done = before
            except TextIds as error:
                if self.done:  # others had numbers
                    raise InputError(str(error)) from error
                raise
            finally:
                entry.close()
        if merged is not None:
            merged.finish()


def _detect(source: Source, *, table: bool = False) -> str:
    # Loads the parsers, which listing the formats does not need.
    from oocbfs.formats.readers.detect import detect

    return detect(source, table=table)


def _pair(found: list[Input], format: str | None) -> list[tuple[Input, str | None]]:
    """Pair LDBC vertex files with their edge files; all other inputs stay alone."""
    if format not in (None, "ldbc"):
        return [(one, None) for one in found]
    paths = [one.path for one in found]
    given = {_stem(path, "v"): path for path in paths if _stem(path, "v")}
    edges = {_stem(path, "e") for path in paths} - {None}
    pairs: list[tuple[Input, str | None]] = []
    for one in found:
        path = one.path
        stem = _stem(path, "e")
        if stem is not None:
            vertices = given.get(stem) or _beside(stem + ".v")
            if vertices is None and format == "ldbc":
                raise InputError("no vertex file (.v) was given or is beside it", path=path)
            pairs.append((one, vertices))
        elif (stem := _stem(path, "v")) is None:
            if format == "ldbc":
                raise InputError("need files X.e and X.v for this format", path=path)
            pairs.append((one, None))
        elif stem not in edges:
            edge_file = _beside(stem + ".e")
            if edge_file is None and format == "ldbc":
                raise InputError("no edge file (.e) is beside it", path=path)
            pairs.append((one, None) if edge_file is None else (Input(edge_file), path))
    return pairs


def _stem(path: str, suffix: str) -> str | None:
    match = re.fullmatch(rf"(.*)\.{suffix}{_COMPRESSED}", path, re.DOTALL)
    return match and match[1]


def _beside(path: str) -> str | None:
    found = (path + suffix for suffix in ("", ".gz", ".zst", ".xz", ".bz2"))
    return next((name for name in found if os.path.isfile(name)), None)
