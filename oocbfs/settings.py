"""What can be asked for: the choices that verbs share, and the one place that refuses all others.

Who has no settings, such as a conversion, refuses a number of threads where it is used, by
``formats.io.ordered.available_threads``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, lru_cache
from typing import Any, Literal, get_args

from oocbfs.errors import QueryError, shown
from oocbfs.formats.io.ordered import MAX_THREADS
from oocbfs.memory import read_size
from oocbfs.options import is_whole, option, options_of, read_folder, read_whole

Engine = Literal["auto", "cpu", "disk", "cuda", "emulator", "point"]
# Where many sources are searched at a time; whether from disk is decided by the memory they may
# take.
ManyEngine = Literal["auto", "cpu", "cuda", "emulator"]
Direction = Literal["auto", "top-down", "bottom-up"]
Emit = Literal["summary", "levels", "pairs"]
Strategy = Literal["auto", "together", "one-per-core"]
From = Literal["all", "largest"]
Table = Literal[
    "csv", "tsv", "jsonl", "parquet",
    "csv.gz", "tsv.gz", "jsonl.gz", "csv.zst", "tsv.zst", "jsonl.zst",
]  # fmt: skip
LevelFiles = Literal["npy", "zarr"]
Shell = Literal["bash", "zsh", "fish"]
OrderName = Literal["auto", "natural", "degree", "dbg", "local", "communities"]
# Where a graph is among the inputs, also the order that it has.
KeptOrderName = Literal["auto", "natural", "degree", "dbg", "local", "communities", "keep"]
IdNames = Literal["auto", "dense", "compact", "names"]

CodecName = Literal["auto", "raw", "zstd"]
# Numbers that GPUs of one host may have, which are all that can share a graph.
DEVICES = range(16)
# Levels are 32 bits wide.
DEPTHS = range(1 << 31)


def check_choice(name: str, value: object, choices: Any) -> None:
    """Refuse what is not one of some strings, or of those of a Literal."""
    allowed = get_args(choices) or choices
    if not isinstance(value, str) or value not in allowed:
        raise QueryError(f"{name} cannot be {shown(value)}: it is one of {', '.join(allowed)}")


def check_whole(name: str, value: object, allowed: range) -> None:
    """Refuse what is not a whole number of a range; None stands for the default."""
    if value is not None and (not is_whole(value) or value not in allowed):
        raise QueryError(
            f"{name} cannot be {shown(value)}: "
            f"it is a whole number from {allowed[0]} to {allowed[-1]}"
        )


def as_text(text: str) -> str:
    """Write text so that UTF-8 can hold it: names of files may have bytes that are none."""
    return text.encode("utf-8", "backslashreplace").decode()


def file_name(path: str) -> str:
    """Return the last component of a path, as text to be shown."""
    return as_text(os.path.basename(path))


def plural(what: str) -> str:
    """Return the word for several of something."""
    return {"search": "searches", "vertex": "vertices"}.get(what, f"{what}s")


def several(number: int, what: str) -> str:
    """Write how many there are of something."""
    return f"{number:,} {what if number == 1 else plural(what)}"


def is_verifying() -> bool:
    """Return whether OOCBFS_VERIFY asks to check whatever is found."""
    return os.environ.get("OOCBFS_VERIFY", "0") not in ("", "0")


@dataclass(frozen=True)
class Schedule:
    """In which order the emulator runs lanes, warps and blocks, and how many blocks at a time.

    Where threads race, what a method counts depends on it; what it finds never does.
    """

    seed: int = 1
    blocks: int = 3
    resident_blocks: int = 2

    def check(self) -> None:
        """Refuse what is no order."""
        check_whole("seed", self.seed, range(1 << 63))
        check_whole("blocks", self.blocks, range(1, 1025))
        # Every thread has a stack of its own.
        check_whole("resident_blocks", self.resident_blocks, range(1, 17))


DEFAULT_SCHEDULE = Schedule()


class Largest(Enum):
    """The type of ``LARGEST_COMPONENT``, which has one value."""

    COMPONENT = "the smallest id of the largest component"

    def __repr__(self) -> str:
        return "oocbfs.LARGEST_COMPONENT"


# A source that no vertex can be mistaken for, whatever vertices are called.
LARGEST_COMPONENT = Largest.COMPONENT


def _read_devices(text: str) -> list[int]:
    """Read the numbers of GPUs."""
    return [read_whole(piece, DEVICES) for piece in text.split(",")]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to search, whatever is searched for: all that ``AnyGraph.bfs`` can be told, and more.

    What users decide are keywords of these; the rest is for experts and comes as ``options``.
    """

    threads: int | None = field(
        default=None,
        metadata=option("how many to use", otherwise="all cores", values=range(1, MAX_THREADS + 1)),
    )
    engine: Engine = field(
        default="auto",
        metadata=option(
            "cpu: all cores, on the mapped file; disk: read tails as needed; cuda: a GPU; "
            "emulator: its kernels on the CPU, counting bytes; point: only what is touched, for "
            "few levels; auto: a GPU if one is usable, else the CPU, or the disk while a large "
            "file is not in memory yet; with --memory cpu or disk",
            values=get_args(Engine),
        ),
    )
    vram: str | int | None = field(
        default=None,
        metadata=option(
            "device memory to use, such as 5G",
            otherwise="what is free",
            unit="SIZE",
            read=read_size,
        ),
    )
    resident_tails: str | int | None = field(
        default=None,
        metadata=option(
            "tails to keep in device memory, such as 512M or 25%",
            otherwise="what fits",
            unit="SIZE|PERCENT",
        ),
    )
    progress: bool = False
    memory: int | None = field(
        default=None,
        metadata=option(
            "limit for the process, such as 4G; a larger graph is read from disk",
            otherwise="none",
            unit="SIZE",
            read=read_size,
        ),
    )
    tmp: str | os.PathLike[str] | None = field(
        default=None,
        metadata=option(
            "folder for results that do not fit in memory",
            otherwise="the graph's",
            unit="FOLDER",
            read=read_folder,
        ),
    )
    # Only searches from one source, or from the nearest of several, look at what follows.
    direction: Direction = field(
        default="auto",
        metadata=option(
            "use only one",
            otherwise="auto, each level takes the cheaper",
            values=get_args(Direction),
        ),
    )
    max_depth: int | None = field(
        default=None,
        metadata=option("stop after N levels", otherwise="at the last one", values=DEPTHS),
    )
    target: int | str | None = field(
        default=None,
        metadata=option("stop at this vertex, print the path", otherwise="none", unit="ID"),
    )
    validate: bool = field(default=False, metadata=option("check the result as Graph500 does"))
    # One of oocbfs.methods, with its options.
    method: str = field(
        default="auto",
        metadata=option(
            "search as a paper does, such as v3.3; 'bfs --method list' lists them",
            otherwise="auto, our own",
            unit="NAME[:OPTIONS]",
        ),
    )
    # In which order the emulator runs threads.
    schedule: Schedule = DEFAULT_SCHEDULE
    # Numbers of GPUs, each of which gets a shard of the graph; of the emulator, as many devices.
    devices: Sequence[int] | None = field(
        default=None,
        metadata=option(
            "cut the graph for several GPUs of this host, such as 0,1; --vram and "
            "--resident-tails are then of each",
            otherwise="one GPU",
            unit="N,N",
            read=_read_devices,
        ),
    )
    # Of sharded graphs: search those, too, that are so deep that messages would take longer than
    # the search; and bring all levels into the order of the ids at once, or shard by shard.
    force: bool = field(
        default=False,
        metadata=option("search a sharded graph on a cluster, too, that has many levels"),
    )
    gather: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.devices, Iterable):
            object.__setattr__(self, "devices", tuple(self.devices))

    @property
    def checks(self) -> bool:
        """Whether results are checked before they are handed out."""
        return self.validate or is_verifying()

    def check(self) -> None:
        """Refuse what no engine knows."""
        self._checked  # noqa: B018 - once is enough

    @cached_property
    def _checked(self) -> None:
        for one in options_of(Settings).values():
            values, value = one.metadata["option"].values, getattr(self, one.name)
            if isinstance(values, range):
                check_whole(one.name, value, values)
            elif values is not None:
                check_choice(one.name, value, values)
        self.schedule.check()
        if self.devices is not None:
            self._check_devices(self.devices)

    def _check_devices(self, devices: Sequence[int]) -> None:
        """Refuse devices that are none, and what does not run on several."""
        for number in devices:
            if not is_whole(number) or number not in DEVICES:
                raise QueryError(f"a device cannot be {shown(number)}: they are numbered from 0 on")
        if not devices or len(set(devices)) < len(devices):
            raise QueryError(f"devices cannot be {shown(list(devices))}: name each one once")
        if self.engine not in ("auto", "cuda", "emulator"):
            raise QueryError(
                f"--devices are GPUs, and --engine {self.engine} is none: leave it out"
            )

    def for_largest(self) -> Settings:
        """Return how the largest component is found: where from matters little to it."""
        return Settings(memory=self.memory, threads=self.threads, tmp=self.tmp)

    def for_pairs(self) -> Settings:
        """Return how single rows are read: where is decided by the memory."""
        return Settings(memory=self.memory, threads=self.threads, tmp=self.tmp)

    @property
    def on_device(self) -> bool:
        """Whether a device was asked for."""
        return self.engine in ("cuda", "emulator")

    @property
    def on_host(self) -> bool:
        """Whether host memory alone decides on the engine: ``auto`` with a budget uses no GPU."""
        return not self.on_device and (self.engine != "auto" or self.memory is not None)


def settings_of(options: Settings | None, **values: Any) -> Settings:
    """Put settings together; of two values of one, that of ``options`` is for who gave no other.

    Those that were put together of the same values before are given again.
    """
    if options is not None:
        if not isinstance(options, Settings):
            raise QueryError(f"options are an oocbfs.Settings, not {shown(options)}")
        default = Settings()
        given = {name: value for name, value in values.items() if value != getattr(default, name)}
        return replace(options, **given)
    try:
        return _known_settings(**values)
    except TypeError:  # something that has no hash; it will be refused where it is used
        return Settings(**values)


# Ones and truths are equal, but not both allowed.
_known_settings = lru_cache(maxsize=64, typed=True)(Settings)
