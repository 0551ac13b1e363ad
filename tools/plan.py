"""show what of a graph would be held in which memory, and predict what a traversal costs"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from oocbfs.memory import format_size
from oocbfs.tools.shared import announcements, plan_workers
from oocbfs.tools.shared import options as shared

if TYPE_CHECKING:
    from oocbfs.plan.device import DevicePlan
    from oocbfs.plan.prediction import KnownGpu, LevelSample
    from oocbfs.search.graph import Graph


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "graph", nargs="?")
    which = parser.add_mutually_exclusive_group()
    which.add_argument(
        "--vram",
        type=shared.size,
        metavar="SIZE",
        help="plan for so much device memory, as 6G (default: known GPUs)",
    )
    which.add_argument(
        "--gpu", metavar="NAME", help="plan for one known GPU, as 4090 (default: all)"
    )
    parser.add_argument(
        "--memory",
        type=shared.size,
        metavar="SIZE",
        help="host memory: for what a GPU pins, and for the CPU (default: what is free)",
    )
    parser.add_argument(
        "--resident-tails",
        type=shared.share,
        metavar="SIZE|PERCENT",
        help="tails to keep in device memory, as 512M or 25%% (default: what fits)",
    )
    parser.add_argument("--parents", action="store_true", help="plan for parents too")
    parser.add_argument(
        "--samples",
        type=shared.whole(0, 1 << 20),
        default=4,
        metavar="N",
        help="predict from so many random sources (default: 4; 0 predicts nothing)",
    )
    plan_workers.add_arguments(parser)
    shared.add(parser, "--json")
    parser.set_defaults(refuse=parser.error)


def run(options: argparse.Namespace) -> None:
    """Plan for each GPU, or for several machines, and print the decisions."""
    announcements.announce()
    if plan_workers.is_wanted(options):
        plan_workers.run(options)
        return
    from oocbfs.search import graph

    targets = _targets(options)
    with graph.open_file(options.graph) as opened, opened.reading():
        summary = summarise(opened, targets, options)
    if options.json:
        shared.print_json(summary)
    else:
        _print(summary)


def summarise(
    opened: Graph, targets: list[tuple[str, int, KnownGpu | None]], options: argparse.Namespace
) -> dict[str, Any]:
    """Plan for each GPU, and for the CPU."""
    from oocbfs.plan.prediction import MODEL, sample_levels
    from oocbfs.plan.shape import graph_bytes
    from oocbfs.progress import Phases

    samples = sample_levels(opened, options.samples, Phases())
    return {
        "graph": opened.path,
        "vertices": opened.num_vertices,
        "edges": opened.num_edges,
        "graph_bytes": graph_bytes(opened),
        "samples": len(samples),
        "model": MODEL,
        "plans": [_decide(opened, target, samples, options) for target in targets],
        "cpu": _plan_cpu(opened, samples, options),
    }


def plan_known(opened: Graph, samples: int) -> dict[str, Any]:
    """Plan for all known GPUs, as the verb does if it is given nothing but a graph."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = parser.parse_args([opened.path, "--samples", str(samples)])
    return summarise(opened, _targets(options), options)


def _targets(options: argparse.Namespace) -> list[tuple[str, int, KnownGpu | None]]:
    """List names, usable device memory and figures of the GPUs to plan for."""
    from oocbfs.errors import QueryError
    from oocbfs.gpu.nvidia import ask_driver
    from oocbfs.memory import parse_size
    from oocbfs.plan.prediction import KNOWN_GPUS, USABLE_SHARE

    if options.vram is not None:
        return [("--vram", parse_size(options.vram), None)]
    known = [(gpu.name, int(USABLE_SHARE * gpu.vram_bytes), gpu) for gpu in KNOWN_GPUS]
    if options.gpu is None:
        here = [
            (f"{gpu.name} (here)", int(USABLE_SHARE * gpu.vram_bytes), None)
            for gpu in ask_driver().gpus
        ]
        return [*here, *known]
    chosen = [target for target in known if options.gpu.lower() in target[0].lower()]
    if not chosen:
        names = ", ".join(gpu.name for gpu in KNOWN_GPUS)
        raise QueryError(f"no figures for {options.gpu!r}: there are {names}; or use --vram")
    return list(chosen)


def _decide(
    opened: Graph,
    target: tuple[str, int, KnownGpu | None],
    samples: list[LevelSample],
    options: argparse.Namespace,
) -> dict[str, Any]:
    from oocbfs.errors import BudgetError
    from oocbfs.memory import available_bytes, parse_size
    from oocbfs.plan.device import plan
    from oocbfs.plan.shape import shape_of

    name, vram_bytes, gpu = target
    head = {"gpu": name, "vram_bytes": vram_bytes, "link": gpu.link if gpu else None}
    try:
        decided = plan(
            shape_of(opened),
            vram_bytes=vram_bytes,
            host_bytes=available_bytes() if options.memory is None else parse_size(options.memory),
            resident_tails=options.resident_tails,
            with_parents=options.parents,
        )
    except BudgetError as error:
        if options.vram is not None:
            raise
        return {**head, "error": str(error)}
    return {
        **head,
        "device_bytes": decided.device,
        "resident_tail_bytes": decided.resident_bytes,
        "windows": decided.device_ranges,
        "pinned_bytes": decided.pinned_bytes,
        "disk_bytes": decided.disk_bytes,
        "why": decided.why,
        "predicted": _predict(opened, decided, gpu, samples, options),
    }


def _plan_cpu(
    opened: Graph, samples: list[LevelSample], options: argparse.Namespace
) -> dict[str, Any]:
    """Tell whether a traversal on the CPU would read tails from disk, and how much."""
    from statistics import median

    from oocbfs.errors import BudgetError
    from oocbfs.formats.io.ordered import available_threads
    from oocbfs.memory import available_bytes, parse_size
    from oocbfs.plan.host import divide, traversal_needs
    from oocbfs.plan.prediction import predict_disk_bytes
    from oocbfs.search.bfs import load_disk
    from oocbfs.settings import Settings

    memory = available_bytes() if options.memory is None else parse_size(options.memory)
    found: dict[str, Any] = {"memory_bytes": memory}
    try:
        needs = traversal_needs(
            opened,
            with_parents=options.parents,
            validate=False,
            threads=available_threads(None),
        )
        division = divide(opened, needs, Settings(memory=memory), load_disk)
    except BudgetError as error:
        return {**found, "error": str(error)}
    found["engine"] = division.engine if division.engine == "disk" else "cpu"
    if samples and division.engine == "disk":
        read = [predict_disk_bytes(opened, sample) for sample in samples]
        found["predicted"] = {"disk_bytes": int(median(read)), "disk_bytes_worst": max(read)}
    return found


def _predict(
    opened: Graph,
    decided: DevicePlan,
    gpu: KnownGpu | None,
    samples: list[LevelSample],
    options: argparse.Namespace,
) -> dict[str, Any] | None:
    """Give the median and the worst of the sampled sources."""
    from statistics import median

    from oocbfs.plan.prediction import predict_bytes, predict_seconds

    if not samples:
        return None
    forecasts = [predict_bytes(opened, decided, sample) for sample in samples]
    moved = [forecast.slow_bytes for forecast in forecasts]
    read = [forecast.disk_bytes for forecast in forecasts]
    found: dict[str, Any] = {
        "slow_bytes": int(median(moved)),
        "slow_bytes_worst": max(moved),
        "disk_bytes": int(median(read)),
        "disk_bytes_worst": max(read),
    }
    if gpu is not None:
        seconds = [
            predict_seconds(gpu, forecast, opened.num_vertices, with_parents=options.parents)
            for forecast in forecasts
        ]
        found.update(seconds=median(seconds), seconds_worst=max(seconds))
    return found


def _print(summary: dict[str, Any]) -> None:
    size = format_size(summary["graph_bytes"])
    shape = f"{summary['vertices']:,} vertices, {summary['edges']:,} edges, {size}"
    print(f"{summary['graph']}: {shape} of heads and tails")
    for decision in summary["plans"]:
        print(f"\n{decision['gpu']}, {format_size(decision['vram_bytes'])} usable")
        shared.print_table([(f"  {name}", text) for name, text in _lines(decision, summary)])
    print(f"\nCPU, {format_size(summary['cpu']['memory_bytes'])} of memory")
    shared.print_table([(f"  {name}", text) for name, text in _cpu_lines(summary)])
    if summary["samples"]:
        print(
            f"\nPredictions, not measurements, from {summary['samples']} sources. "
            f"{summary['model']}"
        )


def _lines(decision: dict[str, Any], summary: dict[str, Any]) -> list[tuple[str, str]]:
    if "error" in decision:
        return [("cannot", decision["error"])]
    always = {name: size for name, size in decision["device_bytes"].items() if size}
    parts = ", ".join(f"{name} {format_size(size)}" for name, size in always.items())
    lines = [
        ("always resident", f"{format_size(sum(always.values()))}: {parts}"),
        ("resident tails", f"{format_size(decision['resident_tail_bytes'])} ({decision['why']})"),
        ("pinned in host memory", format_size(decision["pinned_bytes"])),
    ]
    if decision["disk_bytes"]:
        lines.append(("left on disk", format_size(decision["disk_bytes"])))
    predicted = decision["predicted"]
    if predicted:
        lines.append(("predicted PCIe bytes", _amount(predicted, "slow_bytes", summary)))
        if decision["disk_bytes"]:
            lines.append(("predicted disk bytes", _amount(predicted, "disk_bytes", summary)))
        if "seconds" in predicted:
            seconds = f"{predicted['seconds']:.6f} over {decision['link']}"
            lines.append(
                ("predicted seconds", f"{seconds} (worst {predicted['seconds_worst']:.6f})")
            )
    return lines


def _cpu_lines(summary: dict[str, Any]) -> list[tuple[str, str]]:
    found = summary["cpu"]
    if "error" in found:
        return [("cannot", found["error"])]
    where = {"cpu": "in the mapped file", "disk": "on disk, heads and starts in memory"}
    lines = [("tails", where[found["engine"]])]
    if "predicted" in found:
        amount = _amount(found["predicted"], "disk_bytes", summary)
        lines.append(("predicted disk bytes", amount))
    return lines


def _amount(predicted: dict[str, Any], name: str, summary: dict[str, Any]) -> str:
    """Write a median, its share of the graph, and the worst."""
    share = predicted[name] / max(1, summary["graph_bytes"])
    worst = format_size(predicted[f"{name}_worst"])
    return f"{format_size(predicted[name])}, {share:.2%} of the graph (worst {worst})"
