"""The manifest of a sharded graph: which files belong together, and what drives a search."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from oocbfs.errors import FormatError
from oocbfs.formats.container.cut import Cut, ShardHeader
from oocbfs.formats.container.reader import Container, bits_per_arc
from oocbfs.formats.io.limits import MAX_SHARDS

MANIFEST = "manifest.json"
VERTICES = "vertices.ocg"
FORMAT = "oocbfs shards"
VERSION = 2
_AGAIN = "cut the graph again with 'oocbfs shard'"


@dataclass(frozen=True)
class File:
    """A file of the folder: its name, size, and the checksum of its header, which covers it all."""

    name: str
    bytes: int
    checksum: int
    # Arcs of its rows; those of the whole graph where it has none.
    arcs: int


@dataclass(frozen=True)
class Manifest:
    """What ``manifest.json`` says; ``folder`` is where it was found."""

    folder: Path
    num_vertices: int
    num_arcs: int
    directed: bool
    connected: int
    useful: int
    graph_checksum: int
    vertices: File
    shards: tuple[File, ...]

    @property
    def cut(self) -> Cut:
        """How vertices are divided between the shards."""
        return Cut(self.num_vertices, len(self.shards))

    @property
    def num_edges(self) -> int:
        """Edges of the graph, an undirected one counted once."""
        return self.num_arcs if self.directed else self.num_arcs // 2

    @property
    def bits_per_arc(self) -> float:
        """Bits of all files for each arc, both sides of a directed graph counted."""
        return bits_per_arc(self.file_bytes, self.num_arcs, directed=self.directed)

    @property
    def file_bytes(self) -> int:
        """Bytes of all files but the manifest itself."""
        return sum(file.bytes for file in (self.vertices, *self.shards))

    @classmethod
    def read(cls, folder: str | os.PathLike[str]) -> Self:
        """Read the manifest of a folder.

        Raises
        ------
        FormatError
            If there is none, or it is not one of ours.
        """
        path = Path(folder) / MANIFEST
        try:
            content = json.loads(path.read_bytes())
        except FileNotFoundError:
            missing = f"{folder}: is a folder without a {MANIFEST}: not a graph"
            raise FormatError.like(FileNotFoundError, missing) from None
        except OSError as error:
            raise FormatError.like(error, f"{path}: cannot be read: {error.strerror}") from error
        except ValueError:
            raise FormatError(f"{path}: is damaged (no JSON): {_AGAIN}") from None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise FormatError(f"{path}: is not the manifest of a sharded graph")
        if content.get("version") != VERSION:
            raise FormatError(
                f"{path}: is version {content.get('version')}, this oocbfs reads version {VERSION}:"
                f" {_AGAIN}"
            )
        try:
            return cls._of(Path(folder), content)
        except (KeyError, TypeError, ValueError):
            raise FormatError(f"{path}: is damaged: {_AGAIN}") from None

    @classmethod
    def _of(cls, folder: Path, content: dict[str, Any]) -> Self:
        """Check types and ranges; raises whatever comes."""
        numbers = {
            name: _whole(content[name])
            for name in ("num_vertices", "num_arcs", "connected", "useful", "graph_checksum")
        }
        shards = tuple(_file(entry) for entry in content["parts"])
        if not 1 <= len(shards) <= MAX_SHARDS or numbers["connected"] > numbers["num_vertices"]:
            raise ValueError
        vertices = _file(content["vertices"])
        directed = content["directed"]
        if not isinstance(directed, bool) or numbers["useful"] > numbers["connected"]:
            raise ValueError
        return cls(folder=folder, directed=directed, vertices=vertices, shards=shards, **numbers)

    def text(self) -> str:
        """Write it as JSON."""
        content = {"format": FORMAT, "version": VERSION, **asdict(self)}
        del content["folder"]
        content["parts"] = content.pop("shards")  # as the format has it
        return json.dumps(content, indent=1) + "\n"

    def path_of(self, shard: int | None) -> Path:
        """Where the file of a shard is; None is that of the vertices."""
        file = self.vertices if shard is None else self.shards[shard]
        return self.folder / file.name

    def open(self, shard: int | None) -> Container:
        """Open the file of a shard, or that of the vertices, and see that it is the one named here.

        Raises
        ------
        FormatError
            If it is missing, damaged, or belongs elsewhere.
        """
        path = self.path_of(shard)
        number = len(self.shards) if shard is None else shard
        if not path.exists():
            missing = f"{path}: is missing: copy it again, or {_AGAIN}"
            raise FormatError.like(FileNotFoundError, missing)
        container = Container(path)
        expected = ShardHeader(self.cut, number, self.num_arcs, self.graph_checksum)
        problem = None
        if container.shard is None or container.shard.graph_checksum != self.graph_checksum:
            problem = "belongs to another graph than the manifest"
        elif container.shard != expected or container.directed != self.directed:
            problem = f"is not shard {number} of {len(self.shards)}"
        elif (
            int(container.header["checksum"])
            != (self.shards[shard] if shard is not None else self.vertices).checksum
        ):
            problem = "is not the file that the manifest names"
        if problem is not None:
            container.close()
            raise FormatError(f"{path}: {problem}: copy it again, or {_AGAIN}")
        return container


def is_sharded(path: str | os.PathLike[str]) -> bool:
    """Return whether this is a folder, so that only a sharded graph can be meant."""
    return os.path.isdir(path)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise ValueError
    return value


def _file(entry: dict[str, Any]) -> File:
    name = entry["name"]
    if not isinstance(name, str) or Path(name).name != name:
        raise ValueError
    numbers = {key: _whole(entry[key]) for key in ("bytes", "checksum", "arcs")}
    return File(name=name, **numbers)
