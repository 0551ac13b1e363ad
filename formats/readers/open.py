"""Open any number of inputs, each in its own format, as one stream of edges."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared, Edges
from oocbfs.formats.io.limits import InputLimits
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.archive import Archive
from oocbfs.formats.readers.merge import Merged
from oocbfs.formats.readers.table import FORMATS, NAMES, by_name

_COMPRESSED = r"(\.(gz|zst|zstd|xz|bz2))?$"
_NPY = ".npy"
_log = logging.getLogger(__name__)


def load() -> None:
    """Load all parsers, so that a conversion knows what memory they take."""
    for format in FORMATS:
        format.reader()


def open_edges(
    inputs: Sequence[str | os.PathLike[str]],
    *,
    format: str | None = None,
    threads: int = 1,
    limits: InputLimits | None = None,
) -> InputEdges:
    """Open inputs as one graph.

    Files are looked at right away, pipes when they are read.

    Parameters
    ----------
    inputs
        Paths, or "-" for the standard input. The vertex file of an LDBC edge file is found by name.
    format
        One of ``table.NAMES``; by default every input is recognised by its content.
    threads
        How many threads parse text.
    limits
        How much memory reading may take.
    """
    if format is not None and format not in NAMES:
        raise InputError(f"unknown format {format!r}: need one of {', '.join(NAMES)}")
    paths = [os.fspath(path) for path in inputs]
    if not paths:
        raise InputError("no input was named")
    if paths.count("-") > 1:
        raise InputError("the standard input can be read only once", path="-")
    limits = limits or InputLimits()
    parts = []
    for path, vertices in _pair(paths, format):
        beside = None if vertices is None else Source(vertices, limits)
        parts.append(_Part(Source(path, limits), format, beside))
    for part in parts:
        if part.source.regular:
            part.look()
    return InputEdges(parts, max(1, threads))


@dataclass
class _Part:
    """One input and what is read from it: several pieces if it is an archive of edge lists."""

    source: Source
    format: str | None
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
            self.pieces = [(self.source, self.format or _detect(self.source))]

    def stored_bytes(self) -> int:
        """Give the size of all that was read for this input."""
        if self.source.size is None:
            return self.source.done
        return self.source.size + (self.vertices.size or 0 if self.vertices else 0)

    def close(self) -> None:
        """Close what reading has opened."""
        self.pieces = []
        if self.archive is not None:
            self.archive.close()
        self.source.close()

    def _look_into(self, archive: Archive) -> list[tuple[Source, str]]:
        files = archive.members()
        arrays = bool(files) and all(file.path.endswith(_NPY) for file in files)
        if self.format == "npz" or (arrays and self.format is None):
            return [(self.source, "npz")]
        if not files:
            raise InputError("an archive without files", path=self.source.name)
        pieces: list[tuple[Source, str]] = [
            (member, self.format or _detect(member)) for member in files
        ]
        if len(pieces) > 1 and any(format != "edges" for _, format in pieces):
            raise InputError(
                "an archive of several files that are not all edge lists: unpack it and name one",
                path=self.source.name,
            )
        return pieces


class InputEdges:
    """The edges of all inputs, one input after the other."""

    unit = "B"

    def __init__(self, parts: list[_Part], threads: int) -> None:
        names = [part.source.name for part in parts]
        self.name = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        self.declared = Declared()
        self.done = 0
        sizes = [source.size for part in parts for source in (part.source, part.vertices) if source]
        self.total = None if None in sizes else sum(size or 0 for size in sizes)
        self._parts = parts
        self._threads = threads

    def batches(self) -> Generator[Edges]:
        """Yield the edges in input order."""
        pieces = sum(max(1, len(part.pieces)) for part in self._parts)
        merged = Merged(self.declared) if pieces > 1 else None
        before = 0
        for part in self._parts:
            part.source.done = 0
            try:
                if not part.pieces:
                    part.look()
                if len(part.pieces) > 1 and merged is None:
                    merged = Merged(self.declared)
                for source, format in part.pieces:
                    declared = self.declared if merged is None else merged.begin(source.name)
                    _log.debug("reading %s as %s", source.name, by_name(format).title)
                    read = by_name(format).reader()
                    if part.vertices is not None:
                        read = partial(read, vertices=part.vertices)
                    with closing(read(source, declared, self._threads)) as stream:
                        for edges in stream:
                            self.done = before + part.source.done
                            if merged is not None:
                                merged.see(edges)
                            yield edges
                before += part.stored_bytes()
                self.done = before
            finally:
                part.close()
        if merged is not None:
            merged.finish()


def _detect(source: Source) -> str:
    # Loads the parsers, which listing the formats does not need.
    from oocbfs.formats.readers.detect import detect

    return detect(source)


def _pair(paths: list[str], format: str | None) -> list[tuple[str, str | None]]:
    """Pair LDBC vertex files with their edge files; all other inputs stay alone."""
    if format not in (None, "ldbc"):
        return [(path, None) for path in paths]
    given = {_stem(path, "v"): path for path in paths if _stem(path, "v")}
    edges = {_stem(path, "e") for path in paths} - {None}
    pairs: list[tuple[str, str | None]] = []
    for path in paths:
        stem = _stem(path, "e")
        if stem is not None:
            vertices = given.get(stem) or _beside(stem + ".v")
            if vertices is None and format == "ldbc":
                raise InputError("no vertex file (.v) was given or is beside it", path=path)
            pairs.append((path, vertices))
        elif (stem := _stem(path, "v")) is None:
            if format == "ldbc":
                raise InputError("need files X.e and X.v for this format", path=path)
            pairs.append((path, None))
        elif stem not in edges:
            edge_file = _beside(stem + ".e")
            if edge_file is None and format == "ldbc":
                raise InputError("no edge file (.e) is beside it", path=path)
            pairs.append((path, None) if edge_file is None else (edge_file, path))
    return pairs


def _stem(path: str, suffix: str) -> str | None:
    match = re.fullmatch(rf"(.*)\.{suffix}{_COMPRESSED}", path, re.DOTALL)
    return match and match[1]


def _beside(path: str) -> str | None:
    found = (path + suffix for suffix in ("", ".gz", ".zst", ".xz", ".bz2"))
    return next((name for name in found if os.path.isfile(name)), None)
