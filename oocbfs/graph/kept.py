"""A graph on a device, kept there between two searches."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeVar

from oocbfs.kernels.threads import renewed_after_fork

Search = TypeVar("Search")


class KeptSearch:
    """A graph on a device, kept for the next search that wants it there in the same way."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._search: Any = None
        self._key: tuple[Any, ...] = ()
        # One search at a time: they share queues and bitmaps.
        self._lock = renewed_after_fork(threading.Lock())
        # Also without close: nothing may stay pinned once the mapping is gone.
        weakref.finalize(self, self._open.close)

    @contextmanager
    def use(
        self, key: tuple[Any, ...], load: Callable[[], AbstractContextManager[Search]]
    ) -> Iterator[Search]:
        """Yield what was kept under this key, or what ``load`` makes; keep none that failed."""
        with self._lock:
            try:
                if self._search is None or self._key != key:
                    self._drop()
                    self._search, self._key = self._open.enter_context(load()), key
                yield self._search
            except BaseException:
                self._drop()
                raise

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """Release device memory and pinned memory, and let no search take them meanwhile."""
        with self._lock:
            self._drop()
            yield

    def close(self) -> None:
        """Release device memory and pinned memory."""
        with self.emptied():
            pass

    def _drop(self) -> None:
        self._search = None
        self._open.close()
