"""What can be asked for: the choices that verbs share, and the one place that refuses all others.

The number of threads is refused where it is used, by ``formats.io.ordered.available_threads``.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, lru_cache
from operator import index
from typing import Any, Literal, get_args

from oocbfs.errors import QueryError

Engine = Literal["auto", "cpu", "disk", "cuda", "emulator"]
# Where many sources are traversed at a time; whether from disk is decided by the memory they may
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
OrderName = Literal["auto", "natural", "degree", "dbg", "local"]
IdNames = Literal["auto", "dense", "compact", "names"]

ZSTD_LEVELS = range(1, 23)
# Numbers that GPUs of one host may have, which are all that can share a graph.
DEVICES = range(16)
# Kernels count levels in words of 64 bits.
DEPTHS = range(1 << 63)


def check_choice(name: str, value: object, choices: Any) -> None:  # noqa: ANN401
    """Refuse what is not one of the strings of a Literal."""
    allowed = get_args(choices)
    if not isinstance(value, str) or value not in allowed:
        raise QueryError(f"{name} cannot be {shown(value)}: it is one of {', '.join(allowed)}")


def check_whole(name: str, value: object, allowed: range) -> None:
    """Refuse what is not a whole number of a range; None stands for the default."""
    if value is not None and (not is_whole(value) or value not in allowed):
        raise QueryError(
            f"{name} cannot be {shown(value)}: "
            f"it is a whole number from {allowed[0]} to {allowed[-1]}"
        )


def is_whole(value: object) -> bool:
    """Tell whether something is a whole number of Python's or NumPy's, and no truth value."""
    if isinstance(value, bool):
        return False
    try:
        index(value)  # type: ignore[arg-type]
    except TypeError:
        return False
    return True


def as_text(text: str) -> str:
    """Write text so that UTF-8 can hold it: names of files may have bytes that are none."""
    return text.encode("utf-8", "backslashreplace").decode()


def file_name(path: str) -> str:
    """Give the last part of a path, as text to be shown."""
    return as_text(os.path.basename(path))


def is_verifying() -> bool:
    """Tell whether OOCBFS_VERIFY asks to check whatever is found."""
    return os.environ.get("OOCBFS_VERIFY", "0") not in ("", "0")


def shown(value: object) -> str:
    """Write something wrong in one short line."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}…"


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


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How to search, whatever is searched for: all that ``AnyGraph.bfs`` can be told, and more.

    What users decide are keywords of these; the rest is for experts and comes as ``options``.
    """

    threads: int | None = None
    engine: Engine = "auto"
    vram: str | int | None = None
    resident_tails: str | int | None = None
    progress: bool = False
    memory: int | None = None
    tmp: str | os.PathLike[str] | None = None
    # Only traversals from one source, or from the nearest of several, look at what follows.
    direction: Direction = "auto"
    max_depth: int | None = None
    target: int | str | None = None
    validate: bool = False
    # One of oocbfs.methods, with its options.
    method: str = "auto"
    schedule: Schedule = DEFAULT_SCHEDULE
    # Numbers of GPUs, each of which gets a part of the graph.
    devices: Sequence[int] | None = None
    # Of graphs in parts: search those, too, that are so deep that messages would take longer than
    # the search; and bring all levels into the order of the ids at once, or part by part.
    force: bool = False
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
        check_choice("engine", self.engine, Engine)
        check_choice("direction", self.direction, Direction)
        check_whole("max_depth", self.max_depth, DEPTHS)
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
        if self.method != "auto":
            raise QueryError(f"method {self.method} runs on one GPU: leave out --devices")
        if self.engine not in ("auto", "cuda", "emulator"):
            raise QueryError(
                f"--devices are GPUs, and --engine {self.engine} is none: leave it out"
            )

    def for_largest(self) -> Settings:
        """Say how the largest component is found: where from matters little to it."""
        return Settings(memory=self.memory, threads=self.threads, tmp=self.tmp)

    @property
    def on_device(self) -> bool:
        """Whether a device was asked for."""
        return self.engine in ("cuda", "emulator")

    @property
    def on_host(self) -> bool:
        """Whether host memory alone decides on the engine: ``auto`` with a budget uses no GPU."""
        return not self.on_device and (self.engine != "auto" or self.memory is not None)


def settings_of(options: Settings | None, **values: Any) -> Settings:  # noqa: ANN401
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
