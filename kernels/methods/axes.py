"""The axes of the methods' kernels, and what these share with Python: words, tallies, structs.

A source is compiled once for each choice of axes that a method needs, under a name of its own. Each
axis arrives as a definition, AXIS_GATHER for ``gather``; its values are the enumerators of the
headers in lower case.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import IntEnum

import numpy as np

from oocbfs.kernels.cuda.source import ROWS_STRUCT, KernelOptions, Variant

# Counts that one block scans at a time, and the vertices behind each count of a list.
SCAN_TILE = 256
SCAN_SEGMENT = 64


class Word(IntEnum):
    """Positions of the words by which kernels and the host's loop speak."""

    QUEUE_END = 0
    EDGE_END = 1
    CHANGED = 2
    # From which threads take work.
    CURSOR = 3
    # Edges of the vertices that were found, and whether some of the level after were found too.
    NEXT_EDGES = 4
    EARLY = 5
    DAMAGED = 6


class TallyWord(IntEnum):
    """Positions of the sums that are counted for people; no method looks at them."""

    EXAMINED = 0
    WON = 1
    LOST = 2
    QUEUED = 3
    EDGES_QUEUED = 4


METHOD_STATE_STRUCT = np.dtype(
    [
        (name, "<u8")
        for name in (
            "levels",
            "parents",
            "queue",
            "next_queue",
            "edges",
            "edge_parents",
            "next_edges",
            "next_edge_parents",
            "flags",
            "next_flags",
            "mask",
            "bits",
            "counts",
            "sums",
            "list",
            "block",
            "words",
            "tallies",
            "out_offsets",
            "queue_capacity",
            "edge_capacity",
        )
    ]
)
METHOD_ROWS_STRUCT = np.dtype([("packed", ROWS_STRUCT), ("offsets", "<u8"), ("columns", "<u8")])


@dataclass(frozen=True)
class MethodOptions(KernelOptions):
    """What all kernels of methods are compiled with, besides their axes."""

    def definitions(self) -> tuple[str, ...]:
        """Add the words, the tallies and the structs."""
        values = {
            **{f"word_{word.name}": int(word) for word in Word},
            **{f"tally_{word.name}": int(word) for word in TallyWord},
            "method_state_struct_bytes": METHOD_STATE_STRUCT.itemsize,
            "method_rows_struct_bytes": METHOD_ROWS_STRUCT.itemsize,
            "scan_tile": SCAN_TILE,
            "scan_segment": SCAN_SEGMENT,
        }
        own = tuple(f"-D{name.upper()}={value}u" for name, value in values.items())
        return super().definitions() + own


@dataclass(frozen=True)
class Axes:
    """One choice of every axis; a source looks at some of them."""

    rows: str = "csr"
    input: str = "queue"
    balance: str = "stride"
    gather: str = "serial"
    claim: str = "plain"
    mask: bool = False
    warp_cull: bool = False
    history: bool = False
    emit: str = "none"
    stop: str = "first"
    phase: str = ""
    bits: bool = False
    expand: bool = False
    parents: bool = True
    sum_edges: bool = False
    block: int = 256

    def variant(self, name: str, source: str) -> Variant:
        """Return a source with these axes, as a kernel of a name."""
        values = {
            "entry": name,
            "space": f"in_{name}",
            "donate": str(int(self.balance == "donate")),
        }
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, str):
                values[field.name] = str(int(value))
            elif value:
                space = source if field.name == "phase" else field.name
                values[field.name] = f"{space}_{value}".replace("+", "_").upper()
        definitions = tuple((f"AXIS_{name.upper()}", value) for name, value in values.items())
        return Variant(name, f"methods/{source}", definitions)
