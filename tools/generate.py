"""make a synthetic graph: kron, rmat, uniform, grid2d, grid3d or powerlaw

The output is an edge list (.txt .el .tsv .csv, each also with .gz .zst .xz .bz2 after it; .u32
.u64 .npy) or, with a name that ends in .ocg, the converted graph. The same seed makes the same
graph.
"""

from __future__ import annotations

import argparse

from oocbfs.tools import convert
from oocbfs.tools.shared import announcements
from oocbfs.tools.shared import options as shared

# What generators count with; a graph file holds fewer vertices.
_MAX = 1 << 62
_COUNT = shared.whole(1, _MAX)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    models = parser.add_subparsers(title="models", metavar="MODEL", required=True, dest="model")
    for name, summary in (
        ("kron", "Graph500 Kronecker graph, labels shuffled"),
        ("rmat", "recursive matrix with given quadrant probabilities"),
        ("uniform", "edges between vertices drawn uniformly"),
        ("grid2d", "lattice with 4 neighbours"),
        ("grid3d", "lattice with 6 neighbours"),
        ("powerlaw", "random graph with a given mean and maximum degree"),
    ):
        model = models.add_parser(name, help=summary, description=summary)
        _ARGUMENTS[name](model)
        shared.add(model, "--seed", "--output")
        shared.add_work_options(model)


def _add_scale(parser: argparse.ArgumentParser) -> None:
    shared.add(parser, "--scale", "--edge-factor")


def _add_rmat(parser: argparse.ArgumentParser) -> None:
    _add_scale(parser)
    for name, where, default in (
        ("a", "upper left", 0.57),
        ("b", "upper right", 0.19),
        ("c", "lower left", 0.19),
    ):
        text = f"probability of the {where} quadrant (default: {default})"
        shared.add_value(parser, f"--{name}", float, "P", text, default)
    shared.add_flag(parser, "--shuffle", "shuffle the labels")


def _add_uniform(parser: argparse.ArgumentParser) -> None:
    size = parser.add_mutually_exclusive_group(required=True)
    shared.add(size, "--scale", required=False)
    shared.add_value(size, "--vertices", _COUNT, "N", "how many vertices")
    edges = "how many edges (default: by --edge-factor)"
    shared.add_value(parser, "--edges", shared.whole(0, _MAX), "N", edges)
    shared.add(parser, "--edge-factor")


def _add_grid2d(parser: argparse.ArgumentParser) -> None:
    for name in ("rows", "columns"):
        text = f"how many {name} of vertices"
        parser.add_argument(f"--{name}", type=_COUNT, required=True, metavar="N", help=text)
    shared.add_flag(parser, "--wrap", "join opposite sides")


def _add_grid3d(parser: argparse.ArgumentParser) -> None:
    for side in ("x", "y", "z"):
        text = f"how many vertices in the direction of {side}"
        parser.add_argument(f"--{side}", type=_COUNT, required=True, metavar="N", help=text)
    shared.add_flag(parser, "--wrap", "join opposite sides")


def _add_powerlaw(parser: argparse.ArgumentParser) -> None:
    for name, kind, text in (
        ("--vertices", _COUNT, "how many vertices"),
        ("--mean-degree", shared.number, "neighbours of a vertex on average"),
        ("--max-degree", _COUNT, "neighbours of the most connected vertex"),
    ):
        parser.add_argument(name, type=kind, required=True, metavar="N", help=text)
    least = "neighbours of a vertex at least; the larger, the steeper the law (default: 1)"
    shared.add_value(parser, "--min-degree", _COUNT, "N", least, default=1)


_ARGUMENTS = {
    "kron": _add_scale,
    "rmat": _add_rmat,
    "uniform": _add_uniform,
    "grid2d": _add_grid2d,
    "grid3d": _add_grid3d,
    "powerlaw": _add_powerlaw,
}
_PARAMETERS = {
    "kron": ("scale", "edge_factor", "seed"),
    "rmat": ("scale", "edge_factor", "a", "b", "c", "shuffle", "seed"),
    "uniform": ("scale", "edge_factor", "vertices", "edges", "seed"),
    "grid2d": ("rows", "columns", "wrap"),
    "grid3d": ("x", "y", "z", "wrap"),
    "powerlaw": ("vertices", "mean_degree", "max_degree", "min_degree", "seed"),
}


def run(options: argparse.Namespace) -> None:
    """Generate into an edge list or straight into a graph."""
    shared.refuse_json_among_edges(options)
    announcements.announce_compilation()
    from oocbfs.formats.output.atomic import check_space
    from oocbfs.generate import generators, powerlaw
    from oocbfs.memory import parse_size
    from oocbfs.progress import Phases

    if options.model == "powerlaw" and options.memory is not None:
        budget_bytes = parse_size(options.memory)
        powerlaw.check_memory(options.max_degree, options.min_degree, budget_bytes)
    parameters = shared.chosen(options, *_PARAMETERS[options.model])
    stream = getattr(generators, options.model)(**parameters, threads=options.threads)
    if options.output.endswith(".ocg"):
        # A byte an edge, and more while it is sorted.
        check_space(options.output, stream.total)
        convert.convert(stream, options)
        return
    with Phases()("generate", stream.total, "edge") as bar:
        settings = shared.chosen(options, "threads", "force")
        num_edges = generators.write_stream(stream, options.output, progress=bar.update, **settings)
    shared.print_count(options, num_edges, f" of {stream.name}")
