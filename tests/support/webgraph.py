"""A plain encoder of WebGraph's BV format, in strings of bits; shares nothing with the reader."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from pathlib import Path

Lists = Sequence[Sequence[int]]


def unary(number: int) -> str:
    return "0" * number + "1"


def gamma(number: int) -> str:
    written = bin(number + 1)[2:]
    return "0" * (len(written) - 1) + written


def delta(number: int) -> str:
    written = bin(number + 1)[2:]
    return gamma(len(written) - 1) + written[1:]


def minimal_binary(number: int, bound: int) -> str:
    """Write one of ``bound`` numbers; those for which it suffices with a bit less than others."""
    length = bound.bit_length() - 1
    short = 2 ** (length + 1) - bound
    if number < short:
        return f"{number:0{length}b}" if length else ""
    return f"{number + short:0{length + 1}b}"


def zeta(number: int, shrink: int) -> str:
    step = ((number + 1).bit_length() - 1) // shrink
    first, following = 2 ** (step * shrink), 2 ** ((step + 1) * shrink)
    return unary(step) + minimal_binary(number + 1 - first, following - first)


def golomb(number: int, modulus: int) -> str:
    return unary(number // modulus) + minimal_binary(number % modulus, modulus)


def nibble(number: int) -> str:
    digits = f"{number:o}"
    bits = [f"{int(digit):03b}" for digit in digits]
    return "".join("0" + three for three in bits[:-1]) + "1" + bits[-1]


def natural(number: int) -> int:
    return 2 * number if number >= 0 else -2 * number - 1


DEFAULTS = {
    "OUTDEGREES": "GAMMA",
    "REFERENCES": "UNARY",
    "BLOCK_COUNT": "GAMMA",
    "BLOCKS": "GAMMA",
    "INTERVALS": "GAMMA",
    "RESIDUALS": "ZETA",
}


class Encoder:
    """Encodes lists of successors; which earlier list one copies from is drawn at random."""

    def __init__(
        self,
        lists: Lists,
        *,
        window: int = 7,
        min_interval: int = 4,
        shrink: int = 3,
        codes: Mapping[str, str] | None = None,
        seed: int = 1,
    ) -> None:
        self.lists, self.window, self.min_interval = lists, window, min_interval
        self.shrink = shrink
        self.codes = codes or {}
        self._random = random.Random(seed)
        self.bits = "".join(self._node(node) for node in range(len(lists)))

    def _code(self, field: str) -> Callable[[int], str]:
        name = self.codes.get(field, DEFAULTS[field])
        shrink = self.shrink
        if name[-1].isdigit():
            name, shrink = name[:-1], int(name[-1])
        plain = {"UNARY": unary, "GAMMA": gamma, "DELTA": delta, "NIBBLE": nibble}
        if name in plain:
            return plain[name]
        return lambda number: {"ZETA": zeta, "GOLOMB": golomb}[name](number, shrink)

    def _node(self, node: int) -> str:
        successors = sorted(self.lists[node])
        bits = self._code("OUTDEGREES")(len(successors))
        if not successors:
            return bits
        rest = set(successors)
        if self.window:
            reference = self._random.randint(0, min(self.window, node))
            bits += self._code("REFERENCES")(reference)
            if reference:
                referred = sorted(self.lists[node - reference])
                bits += self._blocks([id_ in rest for id_ in referred])
                rest -= set(referred)
        intervals, residuals = self._divide(sorted(rest))
        write = self._code("INTERVALS")
        if rest and self.min_interval:
            bits += write(len(intervals))
            following = None
            for left, length in intervals:
                bits += write(natural(left - node) if following is None else left - following - 1)
                bits += write(length - self.min_interval)
                following = left + length
        previous = None
        written = []
        for id_ in residuals:
            number = natural(id_ - node) if previous is None else id_ - previous - 1
            written.append(self._code("RESIDUALS")(number))
            previous = id_
        return bits + "".join(written)

    def _blocks(self, copied: list[bool]) -> str:
        """Write lengths of runs that are copied and left out, in turn; the last one is implied."""
        runs, now = [0], True
        for is_copied in copied:
            if is_copied != now:
                runs.append(0)
                now = is_copied
            runs[-1] += 1
        runs.pop()
        bits = self._code("BLOCK_COUNT")(len(runs))
        for index, run in enumerate(runs):
            bits += self._code("BLOCKS")(run - (index > 0))
        return bits

    def _divide(self, ids: list[int]) -> tuple[list[tuple[int, int]], list[int]]:
        """Take runs of consecutive ids that are long enough out of the others."""
        intervals: list[tuple[int, int]] = []
        residuals: list[int] = []
        for _, run in groupby(enumerate(ids), lambda pair: pair[1] - pair[0]):
            consecutive = [id_ for _, id_ in run]
            if self.min_interval and len(consecutive) >= self.min_interval:
                intervals.append((consecutive[0], len(consecutive)))
            else:
                residuals += consecutive
        return intervals, residuals

    def data(self) -> bytes:
        """Return the bytes of the ``.graph``."""
        size = -(-len(self.bits) // 8)
        return int(self.bits.ljust(8 * size, "0") or "0", 2).to_bytes(size, "big")

    def properties(self) -> str:
        """Return the text of the ``.properties``."""
        flags = " | ".join(f"{field}_{code}" for field, code in self.codes.items())
        return (
            "#BVGraph properties\n"
            f"nodes={len(self.lists)}\narcs={sum(map(len, self.lists))}\n"
            f"windowsize={self.window}\nmaxrefcount=3\nminintervallength={self.min_interval}\n"
            f"zetak={self.shrink}\ncompressionflags={flags}\nversion=0\n"
            "graphclass=it.unimi.dsi.webgraph.BVGraph\n"
        )

    def write(self, folder: Path, stem: str = "x") -> Path:
        """Write both files and give the path of the ``.graph``."""
        (folder / f"{stem}.properties").write_text(self.properties())
        path = folder / f"{stem}.graph"
        path.write_bytes(self.data())
        return path
