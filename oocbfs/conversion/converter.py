"""Convert an edge list, arrays or a sparse matrix into one compressed file."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from oocbfs import memory as memory_
from oocbfs.conversion.ids import IdRange
from oocbfs.conversion.pipeline import Conversion
from oocbfs.conversion.plan import ConvertPlan, give_back, make_plan
from oocbfs.conversion.resources import Resources
from oocbfs.conversion.spill import explained_writes, unnamed_file
from oocbfs.errors import QueryError
from oocbfs.formats.container.reader import Container
from oocbfs.formats.container.writer import ContainerWriter, compress_container
from oocbfs.formats.edges import EdgeStream
from oocbfs.formats.io.ordered import available_threads
from oocbfs.formats.output.atomic import atomic_output, check_outputs
from oocbfs.formats.readers.memory_edges import MemoryEdges
from oocbfs.progress import Phases
from oocbfs.settings import ZSTD_LEVELS, IdNames, OrderName, check_choice, check_whole

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Report:
    """What a conversion did."""

    output: str
    vertices: int
    edges: int
    directed: bool
    vertices_in_input: int
    edges_read: int
    duplicates: int
    loops: int
    order: str
    order_why: str
    ids: str
    first_id: int
    max_degree: int
    bits_per_edge: float
    file_bytes: int
    spilled_bytes: int
    peak_bytes: int
    threads: int
    seconds: float
    seconds_by_phase: dict[str, float]

    def as_dict(self) -> dict[str, Any]:
        """Give all fields, for JSON."""
        return asdict(self)


def convert(
    inputs: Any,  # noqa: ANN401
    output: str | os.PathLike[str],
    *,
    directed: bool | None = None,
    order: OrderName = "auto",
    ids: IdNames = "auto",
    memory: str | int | None = None,
    threads: int | None = None,
    format: str | None = None,
    zstd: int | None = None,
    tmp: str | os.PathLike[str] | None = None,
    force: bool = False,
    progress: bool = False,
) -> Report:
    """Write a graph as one compressed ``.ocg`` file, in bounded memory.

    Parameters
    ----------
    inputs
        A path or several, ``"-"`` for standard input, a pair of integer arrays, an (m, 2) array, a
        SciPy sparse matrix, or any `EdgeStream`.
    output
        The file to write; it appears when it is whole.
    directed
        Keep directions and store the transpose, or make every edge go both ways. None takes what
        the input says, or undirected if it does not say.
    order
        How vertices are stored; ``"auto"`` chooses from the data.
    ids
        ``"dense"`` makes every id from 0 to the largest a vertex, ``"compact"`` those that occur;
        ``"auto"`` is dense where the largest is below 4 × the number that occur.
    memory
        Bound for the whole process, such as ``"4G"``; None is half of what is available.
    zstd
        Compression level for an archive; None keeps the sections as they map into memory.
    tmp
        Folder for temporary data; None is the output's.
    """
    start = time.perf_counter()
    check_choice("order", order, OrderName)
    check_choice("ids", ids, IdNames)
    check_whole("zstd", zstd, ZSTD_LEVELS)
    threads = available_threads(threads)
    budget_bytes = memory_.available_bytes() // 2 if memory is None else memory_.parse_size(memory)
    target = Path(output)
    folder = Path(os.path.realpath(target)).parent if tmp is None else Path(tmp)
    names = _names(inputs)
    files = [name for name in names if os.fspath(name) != "-"]
    check_outputs({"the graph": output}, inputs=files, force=force)
    if names:
        from oocbfs.formats.readers import open as readers

        readers.load()
    plan = make_plan(budget_bytes, threads)
    threads = plan.threads
    _log.debug("%s of memory, %d threads", memory_.format_size(budget_bytes), threads)
    stream = _stream(inputs, format, plan, folder)
    with ExitStack() as stack:
        final = stack.enter_context(atomic_output(target, force=force))
        phases = Phases(show=progress)
        phases.seconds["load"] = time.perf_counter() - start
        conversion = stack.enter_context(Conversion(Resources(folder, plan, phases)))
        conversion.read(stream)
        named = conversion.name_vertices(stream.declared, ids)
        if directed is None:
            directed = bool(stream.declared.directed)
        conversion.sort(directed=directed)
        choice = conversion.choose_order(order)
        _log.debug("order %s: %s", choice.order.name.lower(), choice.why)
        raw = final if zstd is None else stack.enter_context(unnamed_file(folder))
        with nullcontext() if zstd is None else explained_writes(folder):
            container = ContainerWriter(raw)
            fields = conversion.write(container)
            file_bytes = container.finish(**fields)
        give_back()
        with Container(target, raw.fileno()) as written:
            bits_per_edge = written.bits_per_edge
            if zstd is not None:
                with phases("compress", file_bytes, "B") as bar:
                    file_bytes = compress_container(final, written, zstd, threads, bar.update)
    counts = conversion.counts
    seconds = time.perf_counter() - start
    # Most of it brings the file to disk.
    phases.seconds["finish"] = seconds - sum(phases.seconds.values())
    return Report(
        output=str(target),
        vertices=fields["num_vertices"],
        edges=fields["num_edges"],
        directed=directed,
        vertices_in_input=counts.vertices_seen,
        edges_read=counts.edges_read,
        duplicates=counts.duplicates,
        loops=counts.loops,
        order=choice.order.name.lower(),
        order_why=choice.why,
        ids="consecutive" if isinstance(named, IdRange) else "listed",
        first_id=named.first_id,
        max_degree=fields["max_degree"],
        bits_per_edge=bits_per_edge,
        file_bytes=file_bytes,
        spilled_bytes=counts.spilled_bytes,
        peak_bytes=memory_.peak_bytes(),
        threads=threads,
        seconds=seconds,
        seconds_by_phase=phases.seconds,
    )


def _stream(
    inputs: Any,  # noqa: ANN401
    format: str | None,
    plan: ConvertPlan,
    folder: Path,
) -> EdgeStream:
    """Make an edge stream of the inputs."""
    if hasattr(inputs, "batches"):
        return inputs  # type: ignore[no-any-return]
    if names := _names(inputs):
        from oocbfs.formats.readers.open import open_edges

        limits = plan.limits(os.fspath(folder))
        return open_edges(names, format=format, threads=plan.threads, limits=limits)
    if isinstance(inputs, Sequence) and not inputs:
        raise QueryError("nothing to convert: name at least one input")
    return MemoryEdges(inputs)


def _names(inputs: Any) -> Sequence[str | os.PathLike[str]]:  # noqa: ANN401
    """Give the inputs if they are names of files; none if they are edges themselves."""
    if isinstance(inputs, (str, os.PathLike)):
        return [inputs]
    named = isinstance(inputs, Sequence) and all(isinstance(x, (str, os.PathLike)) for x in inputs)
    return inputs if named else []
