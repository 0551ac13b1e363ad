"""What is closed at the end of a ``with`` block."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from io import FileIO
from typing import Self


def release(opened: int | FileIO) -> None:
    """Close what was opened and whose bytes are known: an error then says nothing about them."""
    with suppress(OSError):
        if isinstance(opened, int):
            os.close(opened)
        else:
            opened.close()


class Closing(ABC):
    """Base of a context manager that has a method ``close`` and gives itself."""

    @abstractmethod
    def close(self) -> None:
        """Release what this holds; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
