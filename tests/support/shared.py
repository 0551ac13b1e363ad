"""Graphs and other things that all workers of a run share: the first that needs one makes it."""

from __future__ import annotations

import fcntl
import os
import pickle
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import oocbfs
from oocbfs.conversion.converter import Report


class SharedGraphs:
    """A folder of graphs that tests read and never change; while one is made, others wait."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def make(self, name: str, edges: Callable[[], Any], **options: Any) -> Path:
        """Return the graph of these edges; the name must tell it from all other graphs."""
        path = self.folder / f"{name}.ocg"
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                report = oocbfs.convert(edges(), path, **options)
                path.with_suffix(".report").write_bytes(pickle.dumps(report))
        return path

    def linked(
        self, folder: Path, graphs: Mapping[str, tuple[Callable[[], Any], dict[str, Any]]]
    ) -> dict[str, Path]:
        """Return links in a folder of a worker's own, in which no run may leave anything."""
        links = {name: folder / f"{name}.ocg" for name in graphs}
        for name, (make, options) in graphs.items():
            os.link(self.make(name, make, **options), links[name])
        return links

    def once(self, name: str, make: Callable[[Path], Any]) -> Any:
        """Return what is made once in a run, with a folder of its own; the name tells it apart."""
        path = self.folder / f"{name}.pickle"
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                folder = self.folder / name
                folder.mkdir(exist_ok=True)
                path.write_bytes(pickle.dumps(make(folder)))
        return pickle.loads(path.read_bytes())

    def convert(self, path: Path, **options: Any) -> Path:
        """Return the graph of a file, converted with these options."""
        words = [path.name, *(f"{name}={value}" for name, value in sorted(options.items()))]
        return self.make(",".join(words), lambda: path, **options)

    def report(self, graph: Path) -> Report:
        """Return what the conversion said that made this graph."""
        report: Report = pickle.loads(graph.with_suffix(".report").read_bytes())
        return report
