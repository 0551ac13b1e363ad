"""Files with a number for each vertex, in one file or a folder of them: declared and written."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oocbfs.errors import QueryError
from oocbfs.tools.shared import options as shared

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from oocbfs.results.bfs import BfsResult
    from oocbfs.results.components import ComponentsResult


def add_vector(parser: argparse.ArgumentParser, name: str, what: str) -> None:
    """Add a file with a number for each vertex, or standard output."""
    forms = (
        ".npy, .csv, .tsv (also .csv.gz, .csv.zst …) or .parquet; a folder of them with a file "
        "for each shard of the graph, such as out.parquet/; - prints .csv"
    )
    text = f"write {what} as {forms} (default: nothing)"
    parser.add_argument(name, type=shared.path, metavar="FILE", help=text)


def check_files(options: argparse.Namespace, *vectors: str) -> None:
    """Refuse vectors and a plot that cannot be written, before any work is done."""
    files = shared.chosen(options, *vectors, "plot")
    known_only = bool(getattr(options, "reached_only", False))
    if known_only and not any(files[name] for name in vectors):
        raise QueryError(f"--reached-only is about the rows of --{' and --'.join(vectors)}")
    if all(path is None for path in files.values()):
        return
    from oocbfs.formats.output.atomic import check_outputs
    from oocbfs.formats.output.part_files import check_parts, is_folder
    from oocbfs.formats.output.vectors import check_name

    folders: list[str] = []
    for name in vectors:
        if files[name] is None:
            continue
        if not is_folder(files[name]):
            check_name(files[name], known_only=known_only)
            continue
        folders.append(os.path.realpath(files[name]))
        if folders.count(folders[-1]) > 1:
            raise QueryError(f"{files[name]}: is named twice; name another folder for --{name}")
        check_parts(files.pop(name), known_only=known_only, force=options.force)
    if options.plot is not None:
        from oocbfs.plot import check_plot

        check_plot(options.plot)
    outputs = {f"--{name}": path for name, path in files.items()}
    printed = [name for name, path in outputs.items() if path == "-"]
    if printed and (options.json or len(printed) > 1):
        other = "--json" if options.json else f"{printed[1]} -"
        raise QueryError(f"{printed[0]} - and {other} both print: name a file, or leave one out")
    outputs = {name: path for name, path in outputs.items() if path != "-"}
    check_outputs(outputs, inputs=[options.graph], force=options.force)


def write_column(
    options: argparse.Namespace,
    path: str,
    name: str,
    values: Callable[[int, int], NDArray[Any]],
    result: BfsResult | ComponentsResult,
) -> None:
    """Write a number for each vertex, or what it stands for if it is an id, in one file or several.

    ``values(first, stop)`` gives those of the positions first … stop-1.
    """
    from oocbfs.formats.output.part_files import is_folder, write_parts
    from oocbfs.formats.output.vectors import write_vector

    graph = result._stored
    are_ids = name in ("parent", "component")
    manner: dict[str, Any] = {
        "as_column": graph.as_column if are_ids else lambda values: values,
        "about": result.about(),
        "known_only": bool(getattr(options, "reached_only", False)),
        "threads": result.stats.threads,
        "force": options.force,
    }
    if not is_folder(path):
        write_vector(path, name, graph.id_column, values(0, graph.num_vertices), **manner)
        return
    size = graph.num_vertices
    write_parts(path, graph.num_shards, name, size, graph.id_column, values, **manner)
