"""How devices give each other words of bitmaps, and how many bytes each link carries.

A message is a list of pieces of one size, a piece for each device. ``gather`` gives every device
the words of all. ``all_to_all`` gives every device the piece that each of the others has for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from oocbfs.gpu.device import Memory


def link_name(sender: int, receiver: int) -> str:
    """Call a link by its two devices."""
    return f"{sender}>{receiver}"


class Links(ABC):
    """Links between all pairs of devices; counts the bytes of each, whatever wires they take."""

    def __init__(self, names: Sequence[int]) -> None:
        self.names = tuple(names)
        self._moved = np.zeros((len(names), len(names)), np.int64)

    @abstractmethod
    def gather(self, words: Sequence[Memory], received: Sequence[Memory]) -> None:
        """Copy the words of each device to its piece of what every device received."""

    @abstractmethod
    def all_to_all(self, sent: Sequence[Memory], received: Sequence[Memory]) -> None:
        """Copy piece j of what device i sent to piece i of what device j received, if i is not j.

        What a device has for itself it puts there itself.
        """

    def close(self) -> None:  # noqa: B027
        """Release what holds the links together."""

    def take_bytes(self) -> dict[str, int]:
        """Return what each link carried since the last call."""
        taken = {
            link_name(self.names[i], self.names[j]): int(self._moved[i, j])
            for i in range(len(self.names))
            for j in range(len(self.names))
            if i != j
        }
        self._moved[:] = 0
        return taken

    def _count(self, sender: int, receiver: int, num_bytes: int) -> None:
        self._moved[sender, receiver] += num_bytes


class CopiedLinks(Links):
    """Links over which every piece is copied by itself."""

    def gather(self, words: Sequence[Memory], received: Sequence[Memory]) -> None:
        """Copy the words of each device to all."""
        for i, own in enumerate(words):
            for j, target in enumerate(received):
                self._carry(i, j, own, piece(target, i, len(words)))

    def all_to_all(self, sent: Sequence[Memory], received: Sequence[Memory]) -> None:
        """Copy what each has for each other."""
        count = len(sent)
        for i, pieces in enumerate(sent):
            for j, target in enumerate(received):
                if i != j:
                    self._carry(i, j, piece(pieces, j, count), piece(target, i, count))

    def _carry(self, sender: int, receiver: int, source: Memory, target: Memory) -> None:
        self.copy(sender, receiver, source, target)
        if sender != receiver:
            self._count(sender, receiver, source.size * source.dtype.itemsize)

    @abstractmethod
    def copy(self, sender: int, receiver: int, source: Memory, target: Memory) -> None:
        """Copy memory from a device to another or to itself, after all that was launched there."""


class EmulatorLinks(CopiedLinks):
    """Links between devices of the emulator, which all live in the memory of the process."""

    def copy(self, sender: int, receiver: int, source: Memory, target: Memory) -> None:
        """Copy at once: kernels have finished when their launch returns."""
        target.owner[: source.size] = source.owner[: source.size]


def piece(memory: Memory, number: int, count: int) -> Memory:
    """Return one of some equal pieces."""
    size = memory.size // count
    return memory.slice(number * size, (number + 1) * size)
