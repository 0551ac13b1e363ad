"""Edge lists whose ids are names: a line per edge, two columns of which are names."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from oocbfs.formats.edges import Declared, NamedEdges
from oocbfs.formats.io.streams import Source
from oocbfs.formats.readers.chosen_lines import read_chosen
from oocbfs.formats.readers.chunks import Lines, open_lines, parsed_chunks
from oocbfs.formats.readers.edge_list import COMMENTS
from oocbfs.formats.tables.columns import TableOptions
from oocbfs.formats.tables.delimited import BLANK, Layout, lay_out
from oocbfs.kernels.names import parse as kernels

_ANY = TableOptions()


def read_names(
    source: Source, declared: Declared, threads: int, *, table: TableOptions = _ANY
) -> Generator[NamedEdges]:
    """Read an edge list whose ids are names."""
    with open_lines(source) as lines:
        line = lines.read_comments(declared, *COMMENTS)
        if line is None:
            return
        second = lines.second()
        layout = lay_out(line, lines.comment, table, source.name, named=True, second=second)
        declared.columns = layout.pair.note
        if layout.has_header:
            lines.drop()
        if table.where is not None:
            yield from read_chosen(lines, layout, line, table, threads, named=True)
        else:
            yield from _parse(lines, layout, threads)


def _parse(lines: Lines, layout: Layout, threads: int) -> Iterator[NamedEdges]:
    """Parse all that is left of the lines."""
    first, second = layout.pair.source, layout.pair.target
    delimiter = np.uint8(kernels.BLANKS if layout.delimiter == BLANK else ord(layout.delimiter))
    # Where the first column is no name, a line of data may look like a comment.
    comments = 0 in (first, second)

    def work(chunk: NDArray[np.uint8]) -> tuple[int, NDArray[np.int64], NamedEdges]:
        starts = np.empty(chunk.size // 2 + 2, np.uint32)
        lengths = np.empty(starts.size, np.uint16)
        result = np.zeros(kernels.RESULT_SIZE, np.int64)
        code = kernels.parse_names(
            starts, lengths, result, chunk, delimiter, first, second, comments
        )
        count = 2 * int(result[kernels.COUNT])
        return int(code), result, NamedEdges(chunk, starts[:count].copy(), lengths[:count].copy())

    with closing(parsed_chunks(lines, work, threads)) as parsed:
        for code, result, edges in parsed:
            if code != kernels.DONE:
                lines.number += int(result[kernels.LINES])
                where = int(result[kernels.WHERE])
                line = edges.text[where:].tobytes().split(b"\n", 1)[0].rstrip(b"\r")
                raise lines.error(kernels.PROBLEMS[code], line)
            yield edges
            lines.number += int(result[kernels.LINES])
    lines.finish()
