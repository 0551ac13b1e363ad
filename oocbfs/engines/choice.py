"""Choose the engine of a search: the one asked for, or the best there is; say why no better."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple, TypeVar

from oocbfs.engines import engine_named
from oocbfs.engines.base import Engine
from oocbfs.gpu.nvidia import Driver, ask_driver
from oocbfs.settings import Settings

# What memory and devices decide between. Any other engine that is named answers alone.
CHOICES = "auto", "cpu", "disk", "cuda", "emulator"
Answer = TypeVar("Answer")
_log = logging.getLogger(__name__)


class Choice(NamedTuple):
    """An engine, why it is not the GPU, where one was expected, and why it is this one."""

    engine: str
    fallback: str | None = None
    reason: str | None = None


def choose_engine(engine: str, settings: Settings) -> Choice:
    """Take the engine asked for; for ``auto``, look for a GPU without importing CuPy."""
    unused = _unused_device(settings)
    if engine in ("cuda", "emulator"):
        return Choice(engine)
    if engine != "auto":
        return Choice(engine, unused)
    problem, has_cupy = _look_for_gpu(ask_driver, find_spec, _imported("cupy"))
    if not has_cupy:
        # Who installed CuPy, or asked for device memory, wants the GPU and is told why not.
        missing = problem or "CuPy is not installed: pip install 'oocbfs[gpu]'"
        return Choice("cpu", missing if unused is not None else None)
    return Choice("cuda") if problem is None else Choice("cpu", f"CuPy is installed, but {problem}")


@cache
def _look_for_gpu(
    ask: Callable[[], Driver], find: Callable[[str], object], has_cupy: bool | None
) -> tuple[str | None, bool]:
    """Return why there is no GPU, if there is none, and whether there is CuPy; look only once."""
    return ask().problem, find("cupy") is not None if has_cupy is None else has_cupy


def _imported(name: str) -> bool | None:
    """Return whether a module is imported, or cannot be; None if nobody tried."""
    return sys.modules[name] is not None if name in sys.modules else None


def run_on_best(
    engine: str,
    settings: Settings,
    answer: Callable[[Engine], Answer],
    why_disk: Callable[[], str | None] = lambda: None,
) -> tuple[Answer, Choice]:
    """Let an engine answer; ``auto`` is a GPU that can take the graph, else the CPU.

    Without a GPU or a budget, ``why_disk`` may say why reading from disk is faster.
    """
    choice = choose_engine(engine, settings)
    _log.debug("%s engine%s", choice.engine, f": {choice.fallback}" if choice.fallback else "")
    if choice.engine in ("cuda", "emulator"):
        from oocbfs.gpu.search import UNUSABLE

        try:
            return answer(engine_named(choice.engine)), choice
        except UNUSABLE as error:
            if settings.engine != "auto":
                raise
            choice = Choice("cpu", str(error))
    if engine == "auto" and (reason := why_disk()) is not None:
        choice = Choice("disk", choice.fallback, reason)
    return answer(engine_named(choice.engine)), choice


def _unused_device(settings: Settings) -> str | None:
    """Return why sizes of device memory do not matter; None if there are none."""
    if settings.vram is None and settings.resident_tails is None:
        return None
    why = "--memory" if settings.engine == "auto" else f"--engine {settings.engine}"
    return f"by {why}; --vram and --resident-tails are for GPUs"
