"""The ``.properties`` beside a ``.graph``: sizes, and the code of each kind of number."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from oocbfs.errors import InputError
from oocbfs.formats.io.streams import explained
from oocbfs.kernels.convert import webgraph as kernels

_LIMIT_BYTES = 1 << 20
# Big graphs are stored in the same way.
_CLASSES = ("it.unimi.dsi.webgraph.BVGraph", "it.unimi.dsi.big.webgraph.BVGraph")
_LARGEST_WINDOW = 1 << 16
_CODES = {
    "UNARY": kernels.UNARY,
    "GAMMA": kernels.GAMMA,
    "DELTA": kernels.DELTA,
    "ZETA": kernels.ZETA,
    "GOLOMB": kernels.GOLOMB,
    "NIBBLE": kernels.NIBBLE,
}
_FIELDS = {
    "OUTDEGREES": (kernels.OUTDEGREES, "GAMMA"),
    "REFERENCES": (kernels.REFERENCES, "UNARY"),
    "BLOCK_COUNT": (kernels.BLOCK_COUNTS, "GAMMA"),
    "BLOCKS": (kernels.BLOCKS, "GAMMA"),
    "INTERVALS": (kernels.INTERVALS, "GAMMA"),
    "RESIDUALS": (kernels.RESIDUALS, "ZETA"),
}
_FLAG = re.compile(r"(OUTDEGREES|REFERENCES|BLOCK_COUNT|BLOCKS|INTERVALS|RESIDUALS|OFFSETS)_(\w+)")
_CODE = re.compile(r"([A-Z]+)([1-7]?)")


@dataclass(frozen=True)
class Properties:
    """How a graph is stored; ``settings`` are those of the kernel."""

    num_nodes: int
    num_arcs: int
    settings: NDArray[np.int64]


def path_beside(path: str) -> str | None:
    """Return the path of the properties of a ``.graph``, compressed or not, if it is named so."""
    match = re.fullmatch(r"(.*)\.graph(\.(gz|zst|zstd|xz|bz2))?", path, re.DOTALL)
    return match and f"{match[1]}.properties"


def describes_webgraph(path: str) -> bool:
    """Return whether a file is there and names a class of WebGraph's."""
    if not os.path.isfile(path):
        return False
    return ".webgraph." in _read(path).get("graphclass", "")


def read_properties(path: str) -> Properties:
    """Read how a graph is stored; refuses what this reader does not know."""
    values = _read(path)
    graph_class = values.get("graphclass", "").removeprefix("class ")
    if graph_class not in _CLASSES:
        raise InputError(
            f"graphclass is {graph_class or 'missing'}, not {_CLASSES[0]}: store the graph as "
            "BVGraph before",
            path=path,
        )
    if values.get("endianness", "big") != "big":
        raise InputError("bits are stored little-endian: store them big-endian before", path=path)
    num_nodes = _number(path, values, "nodes", 0, 2**62)
    settings = np.zeros(kernels.NUM_SETTINGS, np.int64)
    settings[kernels.NUM_NODES] = num_nodes
    settings[kernels.WINDOW] = _number(path, values, "windowsize", 0, _LARGEST_WINDOW)
    least = _number(path, values, "minintervallength", 0, 2**31)
    settings[kernels.MIN_INTERVAL] = least
    shrink = _number(path, {"zetak": "3", **values}, "zetak", 1, 30)
    for field, code in _codes(path, values).items():
        name, parameter = _CODE.fullmatch(code).groups()  # type: ignore[union-attr]
        settings[field : field + 2] = _CODES[name], int(parameter or shrink)
    return Properties(num_nodes, _number(path, values, "arcs", 0, 2**62), settings)


def _codes(path: str, values: dict[str, str]) -> dict[int, str]:
    """Return the name of each field's code."""
    chosen: dict[str, str] = {}
    for flag in filter(None, re.split(r"[|\s]+", values.get("compressionflags", ""))):
        match = _FLAG.fullmatch(flag)
        code = match and _CODE.fullmatch(match[2])
        if match is None or code is None or code[1] not in _CODES:
            raise InputError(f"unknown compression flag {flag!r}", path=path)
        chosen[match[1]] = match[2]
    if "endianness" in values and "BLOCKS" in chosen:
        # Written by WebGraph in Rust, in which this flag is that of the counts as well.
        chosen.setdefault("BLOCK_COUNT", chosen["BLOCKS"])
    return {field: chosen.get(name, default) for name, (field, default) in _FIELDS.items()}


def _number(path: str, values: dict[str, str], name: str, least: int, most: int) -> int:
    text = values.get(name, "")
    if not re.fullmatch(r"\d{1,19}", text) or not least <= int(text) <= most:
        found = f"is {text[:40]!r}" if text else "is missing"
        raise InputError(f"{name} {found}: need a number from {least} to {most}", path=path)
    return int(text)


def _read(path: str) -> dict[str, str]:
    with explained(path), open(path, encoding="latin-1") as file:
        text = file.read(_LIMIT_BYTES)
    lines = (line.strip() for line in text.splitlines())
    pairs = (re.split(r"\s*[=:]\s*", line, maxsplit=1) for line in lines if line[:1] not in "#!")
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}
