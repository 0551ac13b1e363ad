"""tell what memory a search needs and on which engine it runs, and predict what it reads"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from oocbfs.memory import format_size
from oocbfs.tools.shared import announcements, plan_described, plan_workers
from oocbfs.tools.shared import options as shared
from oocbfs.tools.shared.vertices import LARGEST

# The engines that run without a GPU.
_ENGINES = ("auto", "cpu", "disk")

if TYPE_CHECKING:
    from oocbfs.graph.stored import StoredGraph
    from oocbfs.plan.device import DevicePlan
    from oocbfs.plan.prediction import LevelSample
    from oocbfs.plan.rates import KnownGpu


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the verb's arguments."""
    shared.add(parser, "graph", nargs="?")
    which = parser.add_mutually_exclusive_group()
    vram = "plan for so much device memory, as 6G (default: GPUs of this machine)"
    shared.add(which, "--vram", help=vram)
    which.add_argument(
        "--gpu",
        nargs="?",
        const="",
        metavar="NAME",
        help="plan for a known GPU, as 4090, or without a name for all (default: those here)",
    )
    shared.add(parser, "--engine", choices=_ENGINES, help="as for bfs on the CPU (default: auto)")
    shared.add(
        parser,
        "--memory",
        help="limit for the process, as for bfs, and for what a GPU pins (default: none)",
    )
    parser.add_argument(
        "--source",
        choices=(LARGEST,),
        help="plan for finding the largest component first, too (default: for any id)",
    )
    shared.add(parser, "--threads")
    shared.add(parser, "--resident-tails")
    shared.add_flag(parser, "--parents", "plan for parents too")
    samples = "predict from so many random sources (default: 4; 0 predicts nothing)"
    shared.add_value(parser, "--samples", shared.whole(0, 1 << 20), "N", samples, default=4)
    plan_workers.add_arguments(parser)
    plan_described.add_arguments(parser)
    shared.add(parser, "--json")
    parser.set_defaults(refuse=parser.error)


def run(options: argparse.Namespace) -> None:
    """Plan for the CPU and for each GPU, or for several machines, and print the decisions."""
    announcements.announce()
    if plan_described.is_wanted(options):
        plan_described.run(options)
        return
    if plan_workers.is_wanted(options):
        plan_workers.run(options)
        return
    from oocbfs.graph.stored import open_stored

    targets = _targets(options)
    with open_stored(options.graph, memory=options.memory) as opened, opened.reading():
        summary = summarise(opened, targets, options)
    shared.print_report(options, summary, (), above=_shown(summary))


def summarise(
    opened: StoredGraph,
    targets: list[tuple[str, int, KnownGpu | None]],
    options: argparse.Namespace,
) -> dict[str, Any]:
    """Plan for the CPU, and for each GPU."""
    from oocbfs.plan.prediction import MODEL, sample_levels
    from oocbfs.plan.shape import graph_bytes
    from oocbfs.progress import Phases

    # First, as a search does: what samples take is no part of it.
    on_cpu = _decide_cpu(opened, options)
    samples = sample_levels(opened, options.samples, Phases())
    return {
        "graph": opened.path,
        "vertices": opened.num_vertices,
        "edges": opened.num_edges,
        "arcs": opened.num_arcs,
        "graph_bytes": graph_bytes(opened),
        "reordered": opened.is_reordered,
        "samples": len(samples),
        "model": MODEL,
        "plans": [_decide(opened, target, samples, options) for target in targets],
        "cpu": on_cpu | _predict_cpu(opened, on_cpu, samples),
    }


def plan_known(opened: StoredGraph, samples: int) -> dict[str, Any]:
    """Plan for all known GPUs, and for those of this machine."""
    parser = argparse.ArgumentParser()
    add_arguments(parser)
    options = parser.parse_args([opened.path, "--gpu", "--samples", str(samples)])
    return summarise(opened, _targets(options), options)


def _targets(options: argparse.Namespace) -> list[tuple[str, int, KnownGpu | None]]:
    """List names, usable device memory and figures of the GPUs to plan for."""
    from oocbfs.errors import QueryError
    from oocbfs.gpu.nvidia import ask_driver
    from oocbfs.memory import parse_size
    from oocbfs.plan.prediction import USABLE_SHARE
    from oocbfs.plan.rates import KNOWN_GPUS

    if options.vram is not None:
        return [("--vram", parse_size(options.vram), None)]
    here: list[tuple[str, int, KnownGpu | None]] = []
    if not options.gpu:
        here += [
            (f"{gpu.name} (here)", int(USABLE_SHARE * gpu.vram_bytes), None)
            for gpu in ask_driver().gpus
        ]
    if options.gpu is None:
        return here
    known = [(gpu.name, int(USABLE_SHARE * gpu.vram_bytes), gpu) for gpu in KNOWN_GPUS]
    chosen = [target for target in known if options.gpu.lower() in target[0].lower()]
    if not chosen:
        names = ", ".join(gpu.name for gpu in KNOWN_GPUS)
        raise QueryError(f"no figures for {options.gpu!r}: there are {names}; or use --vram")
    return [*here, *chosen]


def _decide(
    opened: StoredGraph,
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
        "order_bytes": decided.order_bytes,
        "resident_tail_bytes": decided.resident_bytes,
        "windows": decided.device_ranges,
        "pinned_bytes": decided.pinned_bytes,
        "disk_bytes": decided.disk_bytes,
        "why": decided.why,
        "predicted": _predict(opened, decided, gpu, samples, options),
    }


def _decide_cpu(opened: StoredGraph, options: argparse.Namespace) -> dict[str, Any]:
    """Decide as a search would without a GPU: the engine and what it needs, or why not."""
    from oocbfs.errors import BudgetError
    from oocbfs.memory import available_bytes, parse_size
    from oocbfs.plan.host import why_disk
    from oocbfs.search.decision import decide
    from oocbfs.settings import Settings

    memory = None if options.memory is None else parse_size(options.memory)
    found: dict[str, Any] = {"memory_bytes": available_bytes() if memory is None else memory}
    engine = options.engine
    try:
        opened.expect_unpacking()
        if memory is None and engine == "auto":
            engine = "cpu" if why_disk(opened) is None else "disk"
        settings = Settings(engine=engine, memory=memory, threads=options.threads)
        plans = decide(
            opened,
            from_largest=options.source == LARGEST,
            parents=options.parents,
            settings=settings,
        )
    except BudgetError as error:
        return {**found, "error": str(error), "needed_bytes": error.needed_bytes}
    needed = max(plan.needed_bytes for plan in plans)
    return {**found, "engine": plans[-1].engine, "needed_bytes": needed}


def _predict_cpu(
    opened: StoredGraph, decided: dict[str, Any], samples: list[LevelSample]
) -> dict[str, Any]:
    """Predict how much a search would read, if its tails are on disk."""
    from statistics import median

    from oocbfs.plan.prediction import predict_disk_bytes

    if not samples or decided.get("engine") != "disk":
        return {}
    read = [predict_disk_bytes(opened, sample) for sample in samples]
    return {"predicted": {"disk_bytes": int(median(read)), "disk_bytes_worst": max(read)}}


def _predict(
    opened: StoredGraph,
    decided: DevicePlan,
    gpu: KnownGpu | None,
    samples: list[LevelSample],
    options: argparse.Namespace,
) -> dict[str, Any] | None:
    """Return the median and the worst of the sampled sources."""
    from statistics import median

    from oocbfs.formats.io.ordered import available_threads
    from oocbfs.plan.prediction import predict, predict_seconds
    from oocbfs.plan.rates import KNOWN_GPUS
    from oocbfs.plan.to_ids import predict_to_ids

    if not samples:
        return None
    rates = (gpu or KNOWN_GPUS[0]).rates
    forecasts = [predict(opened, decided, sample, rates) for sample in samples]
    moved = [forecast.slow_bytes for forecast in forecasts]
    read = [forecast.disk_bytes for forecast in forecasts]
    found: dict[str, Any] = {
        "slow_bytes": int(median(moved)),
        "slow_bytes_worst": max(moved),
        "disk_bytes": int(median(read)),
        "disk_bytes_worst": max(read),
    }
    if gpu is not None:
        searches = [predict_seconds(rates, forecast, opened.num_vertices) for forecast in forecasts]
        to_ids = predict_to_ids(
            rates,
            opened.num_vertices,
            on_device=decided.order_bytes > 0 or not opened.is_reordered,
            with_parents=options.parents,
            threads=available_threads(options.threads),
        )
        found.update(
            seconds=median(searches) + to_ids.seconds,
            seconds_worst=max(searches) + to_ids.seconds,
            search_seconds=median(searches),
            results_seconds=to_ids.seconds,
            results_by_part=to_ids._asdict(),
        )
    return found


def _shown(summary: dict[str, Any]) -> Iterator[str]:
    """Write the decisions for people."""
    yield _answer(summary)
    size = format_size(summary["graph_bytes"])
    shape = f"{summary['vertices']:,} vertices, {summary['edges']:,} edges, {size}"
    yield f"{summary['graph']}: {shape} of heads and tails"
    for decision in summary["plans"]:
        yield f"\n{decision['gpu']}, {format_size(decision['vram_bytes'])} usable"
        lines = _lines(decision, summary)
        yield from shared.in_columns((f"  {name}", text) for name, text in lines)
    if summary["samples"] and summary["plans"]:
        yield (
            f"\nPredictions, not measurements, from {summary['samples']} sources. "
            f"{summary['model']}"
        )


def _answer(summary: dict[str, Any]) -> str:
    """Return one line on what a search on the CPU does."""
    found = summary["cpu"]
    if "error" in found:
        return f"cannot: {found['error']}"
    parts = [f"needs {format_size(found['needed_bytes'])}", f"engine {found['engine']}"]
    if found["needed_bytes"] > found["memory_bytes"]:
        parts[0] += f", and {format_size(found['memory_bytes'])} are free"
    if "predicted" in found:
        parts.append(f"reads about {_amount(found['predicted'], 'disk_bytes', summary)}")
    return "; ".join(parts)


def _lines(decision: dict[str, Any], summary: dict[str, Any]) -> list[tuple[str, str]]:
    from oocbfs.plan.to_ids import ToIdsForecast

    if "error" in decision:
        return [("cannot", decision["error"])]
    always = {name: size for name, size in decision["device_bytes"].items() if size}
    parts = ", ".join(f"{name} {format_size(size)}" for name, size in always.items())
    lines = [
        ("always resident", f"{format_size(sum(always.values()))}: {parts}"),
        ("order of the vertices", _order(decision, summary)),
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
            shown = f"{1e3 * predicted['seconds']:.3f} over {decision['link']}"
            worst = f"(worst {1e3 * predicted['seconds_worst']:.3f})"
            lines.append(("predicted milliseconds", f"{shown} {worst}"))
            parts = predicted["results_by_part"]
            searched = f"search {1000 * predicted['search_seconds']:.3f} ms"
            lines.append(("by part", f"{searched}; results {ToIdsForecast(**parts)}"))
    return lines


def _order(decision: dict[str, Any], summary: dict[str, Any]) -> str:
    """Return who brings results into the order of ids."""
    if not summary["reordered"]:
        return "that of ids"
    if not decision["order_bytes"]:
        return "has no room: the host brings results into that of ids"
    return f"{format_size(decision['order_bytes'])}: the device brings results into that of ids"


def _amount(predicted: dict[str, Any], name: str, summary: dict[str, Any]) -> str:
    """Write a median, its share of the graph, and the worst."""
    share = predicted[name] / max(1, summary["graph_bytes"])
    worst = format_size(predicted[f"{name}_worst"])
    return f"{format_size(predicted[name])}, {share:.2%} of the graph (worst {worst})"
