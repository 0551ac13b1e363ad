"""A container whose edges are turned around: in-rows are its rows, and rows its in-rows."""

from __future__ import annotations

from oocbfs.formats.container.layout import ROW_KINDS, TRANSPOSED, Kind
from oocbfs.formats.container.reader import Container


class TransposedContainer(Container):
    """A directed graph with the sections of its two directions exchanged."""

    def _read_sections(self) -> None:
        super()._read_sections()
        if self.directed:
            self.sections = {_other_side(kind): record for kind, record in self.sections.items()}


def _other_side(kind: Kind) -> Kind:
    """Return the same section of the other direction; what has no direction stays as it is."""
    if kind in ROW_KINDS:
        return Kind(kind + TRANSPOSED)
    return Kind(kind - TRANSPOSED) if kind - TRANSPOSED in ROW_KINDS else kind
