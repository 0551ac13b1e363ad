"""What is predicted from levels alone: what a plain count gives, and near what kernels move."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.generate import generators
from oocbfs.graph.rows import span
from oocbfs.kernels.rows import Rows
from oocbfs.plan.costs import costs_of
from oocbfs.plan.cuts import Cuts
from oocbfs.plan.device import DevicePlan, plan
from oocbfs.plan.prediction import (
    LevelSample,
    predict,
    predict_blocks,
    predict_disk_bytes,
    predict_seconds,
    sample_levels,
)
from oocbfs.plan.rates import KNOWN_GPUS
from oocbfs.plan.search_arrays import RESULT_SLOTS, result_slot_bytes
from oocbfs.plan.shape import shape_of
from oocbfs.plan.to_ids import ToIdsForecast
from oocbfs.progress import Phases
from oocbfs.search.graph import Graph, open_file
from oocbfs.settings import Settings
from tests.support.command_line import call, run

RATES = KNOWN_GPUS[0].rates


def sectors(begin: int, end: int, device_range: tuple[int, int]) -> tuple[set[int], set[int]]:
    """Return the slow and the fast sectors of some bytes."""
    touched = set(range(begin // 32, -(-end // 32))) if begin < end else set()
    fast = {sector for sector in touched if device_range[0] <= 32 * sector < device_range[1]}
    return touched - fast, fast


def plain_count(graph: Graph, decided: DevicePlan, sample: LevelSample) -> int:
    """Count level by level, as the module says, with sets and lists."""
    total = 0
    alone = True
    rows, in_rows = graph._stored.non_isolated_rows
    levels = sample.levels[: rows.heads.size]
    cuts, costs = Cuts(rows, in_rows), costs_of(RATES, rows)
    for level in range(1, sample.num_levels + 1):
        expanded = np.zeros(4, np.int64)
        tail_bytes = 0
        for begin, end in (span(rows, int(u)) for u in np.flatnonzero(levels == level - 1)):
            last = begin + 1024 * ((end - begin - 1) // 1024)
            tail_bytes += end - begin
            for first, stop in ((0, end), (2, last)):
                touched = sectors(begin, stop, decided.device_ranges[0])
                expanded[first : first + 2] += [len(memory) for memory in touched]
        size = int((levels == level - 1).sum())
        expand_cost = costs.expand(expanded)
        unvisited = int(((levels < 0) | (levels >= level)).sum())
        large = expand_cost[0] >= costs.heads(unvisited)
        fits = size <= 8192 and tail_bytes <= 8 * size + (8 << 10)
        alone = fits and (alone or not large)
        if large and not alone:
            slow, fast = 32 * searched(in_rows, levels, level, decided.device_ranges[-1], cuts)
            ranges = cuts.choose(costs.search(slow, fast), expand_cost)
            total += int(cuts.costs(slow, 32 * expanded[::2])[ranges])
        else:
            total += 32 * int(expanded[0])
    return total


def searched(rows: Rows, levels: Any, level: int, device_range: tuple[int, int], cuts: Cuts) -> Any:
    """Count the slow and the fast sectors of the vertices that wait in a level, by part.

    Neighbouring vertices of one level share a sector.
    """
    count = np.zeros((2, cuts.vertices.size + 1), np.int64)
    last: dict[int, int] = {}
    for u in np.flatnonzero((levels < 0) | (levels >= level)).tolist():
        begin, end = span(rows, u)
        here = int(levels[u])
        head = int(rows.heads[u])
        if begin == end or (here == level and levels[head] == level - 1):
            continue
        if here == level:
            end = hit_end(rows, levels, begin, end, level - 1)
        touched = sectors(begin, end, device_range)
        number = int((cuts.vertices <= u).sum())
        shared = {begin // 32} if last.get(here) == begin // 32 else set()
        count[:, number] += [len(memory - shared) for memory in touched]
        last[here] = (end - 1) // 32
    return count


def hit_end(rows: Rows, levels: Any, begin: int, end: int, wanted: int) -> int:
    for segment in range(begin, end, 1024):
        vertex, value, shift = -1, 0, 0
        for offset in range(segment, min(segment + 1024, end)):
            byte = int(rows.tails[offset])
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                vertex += value + 1
                if levels[vertex] == wanted:
                    return offset + 1
                value = shift = 0
    return end


@pytest.fixture(scope="module", params=[False, True])
def graph(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    path = tmp_path_factory.mktemp("prediction") / "g.ocg"
    oocbfs.convert(generators.rmat(14, seed=3), path, directed=request.param, order="degree")
    with open_file(path) as opened:
        yield opened


@pytest.mark.parametrize("share", ["0%", "10%", "60%"])
def test_predicted_bytes_equal_a_plain_count(graph: Graph, share: str) -> None:
    decided = plan(shape_of(graph._stored), vram_bytes=None, resident_tails=share)
    samples = sample_levels(graph._stored, 3, Phases(show=False))
    assert len(samples) == 3
    for sample in samples:
        assert predict(graph._stored, decided, sample, RATES).slow_bytes == plain_count(
            graph, decided, sample
        )


@pytest.mark.skipif(shutil.which("g++") is None, reason="the emulator needs a C++ compiler")
def test_predicted_bytes_are_near_what_kernels_move(graph: Graph) -> None:
    for share in ("0%", "10%"):
        decided = plan(shape_of(graph._stored), vram_bytes=None, resident_tails=share)
        for sample in sample_levels(graph._stored, 3, Phases(show=False)):
            source = int(graph._stored.ids_of(np.flatnonzero(sample.levels == 0))[0])
            moved = graph.bfs(
                source, engine="emulator", options=Settings(resident_tails=share)
            ).stats.slow_bytes
            predicted = predict(graph._stored, decided, sample, RATES).slow_bytes
            assert moved is not None
            assert moved / 2 <= predicted <= moved * 2


def disk_blocks(graph: Graph, host_ranges: Any, levels: Any, level: int) -> tuple[int, int]:
    """Count the blocks that expanding and searching read to find a level, with sets."""
    both = []
    heads = graph._stored.in_rows.heads
    found = [u for u in np.flatnonzero(levels == level) if levels[heads[u]] != level - 1]
    waiting = [*found, *np.flatnonzero((levels < 0) | (levels > level))]
    for rows, host_range, vertices in (
        (graph._stored.rows, host_ranges[0], np.flatnonzero(levels == level - 1)),
        (graph._stored.in_rows, host_ranges[-1], waiting),
    ):
        needed = set()
        for begin, end in (span(rows, int(u)) for u in vertices):
            for first, last in ((begin, min(end, host_range[0])), (max(begin, host_range[1]), end)):
                needed |= set(range(first >> 14, ((last - 1) >> 14) + 1)) if first < last else set()
        both.append(len(needed))
    return both[0], both[1]


@pytest.mark.parametrize("host_range", [(0, 0), (20_000, 50_000), (60_000, 1 << 40)])
def test_predicted_disk_bytes_equal_a_plain_count(
    graph: Graph, host_range: tuple[int, int]
) -> None:
    for sample in sample_levels(graph._stored, 2, Phases(show=False)):
        found = np.stack(predict_blocks(graph._stored, (host_range,), sample), axis=1)
        plain = [
            disk_blocks(graph, (host_range,), sample.levels, level)
            for level in range(1, sample.num_levels + 1)
        ]
        np.testing.assert_array_equal(found, np.array(plain) * (16 << 10))


def test_predicted_disk_bytes_are_near_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(generators.rmat(16, seed=3), path, order="degree")
    with open_file(path) as opened:
        for sample in sample_levels(opened._stored, 3, Phases(show=False)):
            source = int(opened._stored.ids_of(np.flatnonzero(sample.levels == 0))[0])
            read = opened.bfs(source, engine="disk").stats.slow_bytes
            assert read is not None
            assert read / 2 <= predict_disk_bytes(opened._stored, sample) <= read * 2.5


def test_everything_resident_moves_nothing(graph: Graph) -> None:
    decided = plan(shape_of(graph._stored), vram_bytes=1 << 30)
    (sample,) = sample_levels(graph._stored, 1, Phases(show=False))
    forecasts = [predict(graph._stored, decided, sample, gpu.rates) for gpu in KNOWN_GPUS]
    forecast = forecasts[0]
    assert forecast.slow_bytes == 0
    assert forecast.large_levels + forecast.small_levels == sample.num_levels
    seconds = [
        predict_seconds(gpu.rates, forecast, 1 << 20)
        for gpu, forecast in zip(KNOWN_GPUS, forecasts, strict=True)
    ]
    assert seconds == sorted(seconds, reverse=True)


def test_plan_verb(tmp_path: Path) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(generators.rmat(12, seed=3), path, order="degree")
    plain = call("plan", path)
    assert plain.stdout.splitlines()[0].endswith("; engine cpu"), plain
    assert "RTX" not in plain.stdout
    done = call("plan", path, "--gpu", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [entry["gpu"] for entry in found["plans"]][-5:] == [gpu.name for gpu in KNOWN_GPUS]
    assert "not modelled" in found["model"]
    for entry in found["plans"][-5:]:
        assert entry["predicted"]["slow_bytes"] == 0
        assert entry["predicted"]["seconds"] > 0
        assert entry["pinned_bytes"] == RESULT_SLOTS * result_slot_bytes(found["vertices"])
        assert entry["order_bytes"] == 4 * found["vertices"]
        by_step = entry["predicted"]["results_by_part"]
        results = ToIdsForecast(**by_step).seconds
        searched = entry["predicted"]["search_seconds"]
        assert entry["predicted"]["seconds"] == pytest.approx(searched + results)
    shown = call("plan", path, "--vram", "280K").stdout
    assert "Predictions, not measurements" in shown
    assert "where rows are shortest" in shown
    assert "predicted PCIe bytes" in shown
    only = json.loads(call("plan", path, "--gpu", "4090", "--samples", 0, "--json").stdout)
    assert [entry["gpu"] for entry in only["plans"]] == ["RTX 4090"]
    assert only["plans"][0]["predicted"] is None


def test_plan_verb_where_memory_is_short(tmp_path: Path) -> None:
    path = tmp_path / "g.ocg"
    # Tails of 50 MB, more than a ring takes.
    oocbfs.convert(generators.uniform(18, 40), path, order="natural")
    found = json.loads(run("plan", path, "--vram", "8M", "--memory", "36M", "--json").stdout)
    (decided,) = found["plans"]
    assert decided["disk_bytes"] > 0
    assert decided["pinned_bytes"] <= 36 << 20
    assert decided["predicted"]["disk_bytes"] > 0
    assert found["cpu"]["error"]
    shown = run("plan", path, "--vram", "8M", "--memory", "36M").stdout
    assert shown.splitlines()[0] == f"cannot: {found['cpu']['error']}"
    assert "left on disk" in shown
    assert "predicted disk bytes" in shown
    shown = run("plan", path, "--engine", "disk", "--memory", "300M").stdout
    assert re.match(r"needs 18\d\.\d MB; engine disk; reads about \d+\.\d MB, ", shown), shown


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--vram", "10K"], "too little for this graph"),
        (["--vram", "280K", "--memory", "1K"], "pinned in host memory"),
        (["--vram", "280K", "--resident-tails", "100%"], "--resident-tails"),
        (["--gpu", "Voodoo"], "RTX 4090"),
    ],
)
def test_refusals_are_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert(generators.rmat(12, seed=3), path)
    done = call("plan", path, "--samples", 0, *arguments)
    assert done.returncode == 1
    lines = [line for line in done.stderr.splitlines() if "compiling" not in line]
    assert len(lines) == 1, done.stderr
    assert words in lines[0]
