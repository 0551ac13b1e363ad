"""Files of pairs and their answers: read and written a batch at a time, and resumable.

The output appears when it is complete. Until then, answers are kept in a folder beside it, a part
for each batch, so that a run that was interrupted need not search them again.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from oocbfs.batch.records import MANIFEST, read_checked, write_checked
from oocbfs.errors import InputError, OutputError, QueryError
from oocbfs.formats.edges import Edges, NamedEdges
from oocbfs.formats.io.limits import InputLimits
from oocbfs.formats.names import quoted
from oocbfs.formats.output.atomic import atomic_output, explained
from oocbfs.formats.output.packing import STANDARD_OUTPUT, endings, opened, packed
from oocbfs.formats.output.parquet import import_arrow, parquet_rows
from oocbfs.formats.readers.open import InputEdges, open_edges
from oocbfs.formats.tables.columns import NAMES_HINT, TableOptions
from oocbfs.point.pairs import Answer, Answers, types_of
from oocbfs.results.tables import Columns, about

if TYPE_CHECKING:
    from oocbfs.graph.any_stored import AnyStored

_SEPARATORS = {"csv": ",", "tsv": "\t"}
FORMS = (*_SEPARATORS, "jsonl", "parquet")
_ADVICE = "remove the folder and start again"
# A billion pairs need no more memory than a thousand: what of an input may be held at a time.
_WINDOW_BYTES = 64 << 20


@dataclass(frozen=True)
class PairJob:
    """What is asked for: pairs from a file, to a file."""

    pairs: str
    output: str
    paths: bool = False
    keep_going: bool = False
    resume: bool = False
    force: bool = False
    format: str | None = None
    table: TableOptions = field(default_factory=TableOptions)
    max_depth: int | None = None
    threads: int = 1

    @property
    def parts(self) -> Path | None:
        """The folder of the parts; None where nothing can be resumed."""
        if STANDARD_OUTPUT in (self.output, self.pairs):
            return None
        return Path(f"{self.output}.parts")


def form_of(path: str) -> tuple[str, str | None]:
    """Return the form of an output by its name, and how it is compressed.

    Raises
    ------
    OutputError
        If there is no such form.
    """
    if path == STANDARD_OUTPUT:
        return "csv", None
    form, compression = endings(path)
    if form not in FORMS or (form == "parquet" and compression is not None):
        raise OutputError(
            f"{path}: name it .csv, .tsv or .jsonl, maybe with .gz or .zst, or .parquet"
        )
    if form == "parquet":
        import_arrow()
    return form, compression


def answer_file(
    graph: AnyStored, job: PairJob, answers: Answers, advance: Callable[[int], object]
) -> None:
    """Answer the pairs of a file, and write them to another; ``advance`` hears of input bytes.

    Raises
    ------
    InputError
        If the pairs cannot be read, or there are none.
    OutputError
        If the output cannot be written, or an earlier run left parts of another question.
    """
    form, compression = form_of(job.output)
    pairs = open_edges(
        [job.pairs],
        format=job.format,
        threads=job.threads,
        limits=InputLimits(window_bytes=_WINDOW_BYTES),
        table=job.table,
    )
    parts = None if job.parts is None else Parts(job.parts, _manifest(graph, job), job)
    try:
        with _writer(graph, job, form, compression) as write:
            for answer in answers.of(_batches(graph, pairs, advance), parts):
                write(answer)
            if answers.num_pairs == 0:
                raise InputError("holds no pairs", path=job.pairs)
    except BaseException as error:
        if parts is not None and not parts.remove_if_empty() and isinstance(error, QueryError):
            raise QueryError(f"{error}; --resume --keep-going goes on from there") from error
        raise
    if parts is not None:
        parts.remove()


def _batches(
    graph: AnyStored, pairs: InputEdges, advance: Callable[[int], object]
) -> Iterator[Edges | NamedEdges]:
    """Yield batches, of names where vertices have names."""
    batches: Iterable[Edges | NamedEdges] = (
        pairs.batches() if graph.names is None else pairs.named_batches()
    )
    before = 0
    try:
        for batch in batches:
            yield batch
            advance(pairs.done - before)
            before = pairs.done
    except InputError as error:
        if NAMES_HINT not in str(error):
            raise
        numbers = f", as all ids of {graph.path} are"
        raise InputError(str(error).replace(NAMES_HINT, numbers)) from error


def _manifest(graph: AnyStored, job: PairJob) -> dict[str, Any]:
    """Return what parts depend on."""
    status = os.stat(job.pairs)
    return {
        "format": "oocbfs pairs",
        "graph_checksum": graph.checksum,
        "pairs": os.path.abspath(job.pairs),
        "pairs_bytes": status.st_size,
        "pairs_modified": status.st_mtime_ns,
        "paths": job.paths,
        "max_depth": job.max_depth,
        "columns": list(job.table.columns or ()),
    }


class Parts:
    """Answers that were found before, each of a batch: kept until the output is complete."""

    def __init__(self, folder: Path, manifest: dict[str, Any], job: PairJob) -> None:
        self._folder, self._manifest = folder, manifest
        with explained(folder):
            if folder.exists() and job.force and not job.resume:
                shutil.rmtree(folder)
            if folder.exists():
                self._check(manifest, resume=job.resume)

    def _check(self, manifest: dict[str, Any], *, resume: bool) -> None:
        path = self._folder / MANIFEST
        if not path.exists():
            if any(self._folder.iterdir()):
                raise OutputError(f"{self._folder}: is not what an earlier run left: move it away")
            return
        if not resume:
            raise OutputError(
                f"{self._folder}: holds what an earlier run found: continue with --resume, or "
                "replace it with --force"
            )
        stored = read_checked(path, _ADVICE)
        for name, value in manifest.items():
            if stored.get(name) != value:
                raise OutputError(
                    f"{self._folder}: was begun with another {name.replace('_', ' ')}; {_ADVICE}"
                )

    def _path(self, first: int, count: int) -> Path:
        return self._folder / f"{first:015d}-{count}.npz"

    def find(self, first: int, count: int) -> dict[str, NDArray[Any]] | None:
        """Return what was found about so many pairs from this one on; None if nothing was."""
        try:
            with (
                self._path(first, count).open("rb") as file,
                np.load(file, allow_pickle=False) as stored,
            ):
                return dict(stored)
        except (OSError, ValueError, zipfile.BadZipFile):  # none, or none that is whole
            return None

    def keep(self, first: int, count: int, found: dict[str, NDArray[Any]]) -> None:
        """Keep what was found, on disk when this returns."""
        with explained(self._folder):
            self._folder.mkdir(exist_ok=True)
        if not (self._folder / MANIFEST).exists():
            write_checked(self._folder / MANIFEST, self._manifest)
        content = io.BytesIO()
        np.savez(content, **found)  # type: ignore[arg-type]
        with atomic_output(self._path(first, count), force=True) as file:
            file.write(content.getbuffer())

    def remove_if_empty(self) -> bool:
        """Remove the folder, if nothing in it could be continued; return whether there is none."""
        is_empty = not any(self._folder.glob("*.npz"))
        if is_empty and self._folder.exists():
            self.remove()
        return is_empty

    def remove(self) -> None:
        """Remove all parts: the output is complete."""
        shutil.rmtree(self._folder, ignore_errors=True)


@contextmanager
def _writer(
    graph: AnyStored, job: PairJob, form: str, compression: str | None
) -> Generator[Callable[[Answer], object]]:
    """Open the output; what this yields writes answers to it."""
    types = types_of(graph, paths=job.paths, statuses=job.keep_going)
    with opened(job.output, force=job.force, streams=True) as file:
        if form == "parquet":
            described = about(graph, pairs=job.pairs)
            with parquet_rows(file, types, described) as table:
                yield lambda answer: table.write([*answer.columns(types).values()])
            return
        # Written with the first answers: of pairs that are refused, nothing is.
        heading = [] if form == "jsonl" else [_SEPARATORS[form].join(types) + "\n"]
        with packed(file, compression, 1) as (pack, write):

            def add(answer: Answer) -> None:
                lines = "".join(heading) + _text(answer.columns(types), form)
                heading.clear()
                write(pack(lines.encode()))

            yield add


def _text(named: Columns, form: str) -> str:
    """Write answers as lines: ids of a path separated by spaces, names as JSON."""
    columns = [_plain(column) for column in named.values()]
    if form == "jsonl":
        rows = (dict(zip(named, row, strict=True)) for row in zip(*columns, strict=True))
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    separator = _SEPARATORS[form]
    fields = [_fields(column, separator) for column in columns]
    return "".join(separator.join(row) + "\n" for row in zip(*fields, strict=True))


def _plain(column: Any) -> list[Any]:
    return column if isinstance(column, list) else column.tolist()


def _fields(column: list[Any], separator: str) -> list[str]:
    """Write the values of a column."""
    if column and isinstance(column[0], str):
        return [quoted(value, separator) for value in column]
    if column and isinstance(column[0], list):
        return [_list_field(value, separator) for value in column]
    return list(map(str, column))


def _list_field(path: list[Any], separator: str) -> str:
    if path and isinstance(path[0], str):
        return quoted(json.dumps(path, ensure_ascii=False), separator)
    return " ".join(map(str, path))
