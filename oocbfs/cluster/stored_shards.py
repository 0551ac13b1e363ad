"""A sharded graph that is open, and the way to those who search its shards."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from oocbfs.cluster.budget import ON_DEVICES
from oocbfs.cluster.connect import connect
from oocbfs.cluster.folder import ShardFolder
from oocbfs.cluster.shard import ShardRef
from oocbfs.errors import QueryError
from oocbfs.formats.io.ordered import available_threads
from oocbfs.settings import Settings
from oocbfs.version import __version__

if TYPE_CHECKING:
    from oocbfs.cluster.exchange import Exchange

# Where shards are searched in any process: in the mapped file, with tails on disk, or on a device.
_ENGINES = ("auto", "cpu", "disk", *ON_DEVICES)


class StoredShards(ShardFolder):
    """The storage of a sharded graph; ``cluster`` says where these are searched."""

    is_sharded = True

    def __init__(
        self,
        folder: str | os.PathLike[str],
        memory: str | int | None = None,
        cluster: str | None = None,
    ) -> None:
        super().__init__(folder, memory)
        self.cluster = cluster
        self._exchange: tuple[tuple[Any, ...], Exchange] | None = None

    def refusal(self, settings: Settings) -> str | None:
        """Return what was asked for that sharded graphs do not have."""
        default = Settings()
        for name in ("engine", "vram", "resident_tails", "method"):
            if name == "engine" and settings.engine in _ENGINES:
                continue
            if name in ("vram", "resident_tails") and (settings.on_device or settings.devices):
                continue
            if getattr(settings, name) != getattr(default, name):
                option = name.replace("_", "-")
                return f"{self.path}: a sharded graph knows no --{option}: leave it out"
        return None

    def check_settings(self, settings: Settings) -> None:
        """Refuse what sharded graphs do not have."""
        if (reason := self.refusal(settings)) is not None:
            raise QueryError(reason)

    def refs(self, settings: Settings) -> list[ShardRef]:
        """Return where each shard is, and how to open it."""
        return [
            ShardRef(
                path=os.path.abspath(self.manifest.path_of(number)),
                number=number,
                num_shards=len(self.manifest.shards),
                num_vertices=self.num_vertices,
                checksum=file.checksum,
                version=__version__,
                engine=settings.engine,
                threads=available_threads(settings.threads),
                memory=settings.memory,
                vram=settings.vram,
                resident_tails=settings.resident_tails,
            )
            for number, file in enumerate(self.manifest.shards)
        ]

    def exchange(self, settings: Settings) -> Exchange:
        """Reach the shards, by an exchange that is kept for the next search of the same kind."""
        device = (settings.vram, settings.resident_tails)
        key = (settings.engine, settings.threads, settings.memory, *device)
        if self._exchange is None or self._exchange[0] != key:
            self.release_device()
            for number in range(self.shape.cut.num_shards):
                self.shard(number)  # all of them are there, and are what the manifest says
            self._exchange = key, connect(self.cluster, self.refs(settings), self.stored_degrees)
        return self._exchange[1]

    def release_device(self) -> None:
        """Let go of the shards, wherever they are, and of what devices hold of them."""
        super().release_device()
        if self._exchange is not None:
            self._exchange[1].close()
            self._exchange = None

    def close(self) -> None:
        """Let go of the shards and of the files."""
        self.release_device()
        super().close()
