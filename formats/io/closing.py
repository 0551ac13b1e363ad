"""What is closed at the end of a ``with`` block."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from contextlib import suppress
from io import FileIO
from typing import BinaryIO, Self


def release(opened: int | FileIO | BinaryIO) -> None:
    """Close what was opened and whose bytes are known, or lost: an error says nothing about them.

    A file that was being written tries to write once more what it could not, and fails again.
    """
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
