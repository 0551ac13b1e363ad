"""Every input format, one line each; loads no parser until one is needed, so that --help is fast.

To add a format, write a module beside this one and add its line below. The module has a function
``read(source, declared, threads)`` that yields edges. If content or name can tell the format from
the others, it also has ``looks_like(sample)``; formats are asked in the order of the table. A
reader of tables also takes ``table``, what the user says about its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from oocbfs.formats.edges import Edges, NamedEdges
    from oocbfs.formats.readers.detect import Sample


@dataclass(frozen=True)
class Format:
    """A format: its name for ``--format``, what people call it, and where its reader is.

    ``options`` are those of the command line that its reader takes.
    """

    name: str
    title: str
    # That of its name by default.
    module: str = ""
    function: str = "read"
    is_text: bool = True
    looks: str = "looks_like"
    options: tuple[str, ...] = ()
    # The module and the function that read it where ids are names.
    names: tuple[str, str] | None = None

    def _module(self) -> Any:
        return import_module(f"oocbfs.formats.readers.{self.module or self.name}")

    def reader(self) -> Callable[..., Generator[Edges]]:
        """Return the function that reads it."""
        return cast("Callable[..., Generator[Edges]]", getattr(self._module(), self.function))

    def name_reader(self) -> Callable[..., Generator[NamedEdges]] | None:
        """Return the function that reads it where ids are names; None if they never are."""
        if self.names is None:
            return None
        module = import_module(f"oocbfs.formats.readers.{self.names[0]}")
        return cast("Callable[..., Generator[NamedEdges]]", getattr(module, self.names[1]))

    def looks_like(self, sample: Sample) -> bool:
        """Return whether an input is in this format, as far as that can be told."""
        looks_like = getattr(self._module(), self.looks, None)
        return looks_like is not None and bool(looks_like(sample))


_TABLE_OPTIONS = ("--columns", "--where")
_TEXT_OPTIONS = (*_TABLE_OPTIONS, "--delimiter", "--header", "--no-header")


def _of_arrow(name: str, title: str) -> Format:
    return Format(
        name,
        title,
        "arrow",
        f"read_{name}",
        is_text=False,
        looks=f"looks_like_{name}",
        options=_TABLE_OPTIONS,
        names=("arrow", f"read_{name}_names"),
    )


# The first line is what a text is if it looks like nothing else.
FORMATS: tuple[Format, ...] = (
    Format(
        "edges",
        "edge lists and CSV",
        "edge_list",
        options=_TEXT_OPTIONS,
        names=("named_lines", "read_names"),
    ),
    Format("mtx", "Matrix Market", "matrix_market"),
    Format("dimacs", "DIMACS"),
    Format("adjacency", "adjacency lists"),
    Format("metis", "METIS"),
    Format("ldbc", "LDBC Graphalytics"),
    Format("webgraph-text", "WebGraph ASCII graphs", "webgraph.text"),
    Format("webgraph", "WebGraph .graph", "webgraph.bv", is_text=False),
    Format("sg", "GAP .sg", "gap", is_text=False),
    Format("npy", "NumPy .npy", "numpy_arrays", "read_npy", is_text=False),
    Format("npz", "NumPy and SciPy .npz", "numpy_arrays", "read_npz", is_text=False),
    _of_arrow("parquet", "Parquet"),
    _of_arrow("arrow", "Feather and Arrow"),
    Format("u32", "raw pairs of 32 bits", "raw_pairs", "read_u32", is_text=False),
    Format("u64", "raw pairs of 64 bits", "raw_pairs", "read_u64", is_text=False),
)
NAMES = tuple(format.name for format in FORMATS)
# Nothing in them tells what they are, so that the user has to.
UNMARKED = ("u32", "u64")


def by_name(name: str) -> Format:
    """Return the line of a format."""
    return FORMATS[NAMES.index(name)]
