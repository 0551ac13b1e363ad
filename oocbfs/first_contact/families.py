"""Every kernel family on a device against the CPU: what is run, and what must come out.

A family runs each graph in each of its ways. Resident tails take turns with both, or, on a GPU, all
of them meet all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from oocbfs.cluster.devices import DevicesBfs
from oocbfs.devices.cuda_links import PeerLinks, cuda_links
from oocbfs.devices.cutting import cut_rows
from oocbfs.devices.links import EmulatorLinks, Links
from oocbfs.devices.load import place
from oocbfs.first_contact.comparing import (
    by_stored,
    compare_labels,
    compare_levels,
    compare_search,
    compare_stopped,
)
from oocbfs.first_contact.graphs import Case
from oocbfs.first_contact.target import Target
from oocbfs.formats.container.cut import Cut
from oocbfs.gpu.bfs import GpuBfs
from oocbfs.gpu.components import GpuComponents
from oocbfs.gpu.cuda_device import CudaDevice
from oocbfs.gpu.device import Device
from oocbfs.gpu.load import Budget, disks_of, load_graph
from oocbfs.gpu.many import GpuMany
from oocbfs.gpu.result import DeviceDirection
from oocbfs.kernels.cuda.source import (
    BFS_KERNELS,
    COMPONENTS_KERNELS,
    DEVICES_KERNELS,
    DISK_BLOCK_BYTES,
    MANY_KERNELS,
    MOST_MANY_LEVELS,
    KernelOptions,
)
from oocbfs.kernels.many.spread import spread_deep
from oocbfs.kernels.methods.axes import MethodOptions
from oocbfs.methods import AUTO, METHODS, parse_method
from oocbfs.methods.programs import make_program
from oocbfs.methods.search import MethodSearch
from oocbfs.plan.limits import StepLimits
from oocbfs.plan.shape import shape_of, sides_of
from oocbfs.settings import Settings

SHARES = ("0%", "50%", "100%")
# No frontier is small, so that graphs of any size meet the kernels of large levels; and all are.
_LARGE = StepLimits(small_vertices=0, heads_passes=0)
_SMALL = StepLimits(small_vertices=1 << 30, small_bytes=1 << 30)
_NO_ORDER = np.empty(0, np.uint32)
# Results come in several pieces from graphs of any size.
_RESULT_SLOT_BYTES = 256
# How many graphs each method meets in the emulator, one after the other.
_FEW_CASES = 4


class Check(NamedTuple):
    """Something to run; it raises what differs."""

    name: str
    run: Callable[[], None]


# What a family gives to run.
Family = Callable[[Target, Sequence[Case]], Iterator[Check]]


def _each(
    target: Target, cases: Sequence[Case], ways: Sequence[Any], shares: Sequence[str] = SHARES
) -> Iterator[tuple[Case, Any, str]]:
    """Yield each graph with each way, and all shares of resident tails or one in turn."""
    for (number, case), (turn, way) in product(enumerate(cases), enumerate(ways)):
        chosen = shares if target.is_gpu else (shares[(number + turn) % len(shares)],)
        for share in chosen:
            yield case, way, share


def _placed(case: Case, share: str, *, results: bool = False, whole: bool = True) -> Budget:
    """Place a graph with so much of its tails in device memory, the others in host memory.

    The order of its results goes there too, if there are any.
    """
    shape = shape_of(case.stored, whole=whole)
    return Budget(shape if results else shape.of_rows(), None, None, share, with_parents=True)


def one_source(target: Target, cases: Sequence[Case]) -> Iterator[Check]:
    """Search from one vertex in each direction, by large levels, by small ones, and as usual."""
    ways: list[tuple[StepLimits | None, str, DeviceDirection]]
    ways = [(_LARGE, "large", direction) for direction in DeviceDirection]
    ways += [(_SMALL, "small", DeviceDirection.TOP_DOWN)]
    ways += [(None, "usual", DeviceDirection.AUTO)]
    for case, (limits, size, direction), share in _each(target, cases, ways):

        def run(
            case: Case = case,
            limits: StepLimits | None = limits,
            direction: DeviceDirection = direction,
            share: str = share,
        ) -> None:
            device = target.device(KernelOptions(), BFS_KERNELS)
            # As usual, vertices behind the last one that has an edge take no part.
            whole = limits is not None or case.stored.order is None
            budget = _placed(case, share, results=True, whole=whole)
            options: dict[str, Any] = {"limits": limits, "result_slot_bytes": _RESULT_SLOT_BYTES}
            with load_graph(GpuBfs, device, case.stored, budget, whole=whole, **options) as search:
                in_order = search.results.in_order
                for source in case.sources:
                    done = search.run(np.array([source], np.uint32), direction)
                    compare_search(case, source, *by_stored(case, done, in_order))
                if limits is None:  # as usual, a search may also stop at a vertex
                    near = int(np.argmax(case.levels(source) == 1))
                    done = search.run(np.array([source], np.uint32), direction, target=near)
                    compare_stopped(case, source, *by_stored(case, done, in_order))

        yield Check(f"{case.name}, {direction.value}, {size} levels, {share} resident", run)


def many_sources(target: Target, cases: Sequence[Case]) -> Iterator[Check]:
    """Search from several vertices at once: top-down, bottom-up, and as each source chooses."""
    ways = [("top-down", 1e-9), ("bottom-up", 1e9), ("auto", 30.0)]
    shallow = [case for case in cases if case.levels(case.sources[-1]).max() < MOST_MANY_LEVELS]
    for case, (way, alpha), share in _each(target, shallow, ways):

        def run(case: Case = case, alpha: float = alpha, share: str = share) -> None:
            device = target.device(KernelOptions(with_parents=False), MANY_KERNELS)
            budget = _placed(case, share)
            # The same vertex twice is two sources.
            sources = [*case.sources, case.sources[0]]
            with load_graph(GpuMany, device, case.stored, budget, whole=True) as search:
                found = search.run(np.array(sources, np.uint32), alpha=alpha)
            assert found.planes is not None
            for number, source in enumerate(sources):
                levels = np.empty(case.stored.num_vertices, np.int32)
                spread_deep(levels, found.planes, _NO_ORDER, number)
                compare_levels(case, source, levels)

        yield Check(f"{case.name}, {way}, {share} resident", run)


def components(target: Target, cases: Sequence[Case]) -> Iterator[Check]:
    """Find connected components."""
    for case, share in product(cases, SHARES):

        def run(case: Case = case, share: str = share) -> None:
            device = target.device(KernelOptions(with_parents=False), COMPONENTS_KERNELS)
            budget = _placed(case, share)
            with load_graph(GpuComponents, device, case.stored, budget, whole=True) as search:
                compare_labels(case, search.run())

        yield Check(f"{case.name}, {share} resident", run)


def staged(target: Target, cases: Sequence[Case]) -> Iterator[Check]:
    """Search while all tails that are not resident come from disk, in many pieces."""
    ways = [direction for direction in DeviceDirection if direction is not DeviceDirection.SPLIT]
    with_tails = [case for case in cases if any(side.tails.size for side in sides_of(case.stored))]
    for case, direction, share in _each(target, with_tails, ways, SHARES[:2]):

        def run(
            case: Case = case, direction: DeviceDirection = direction, share: str = share
        ) -> None:
            device = target.device(KernelOptions(), BFS_KERNELS)
            decided = _placed(case, share).plan()
            pairs = zip(decided.device_ranges, decided.host_ranges, strict=True)
            on_device = tuple((begin, min(end, host[1])) for (begin, end), host in pairs)
            with GpuBfs(
                device,
                case.stored.rows,
                case.stored.in_rows,
                device_ranges=decided.device_ranges,
                host_ranges=on_device,
                disks=disks_of(case.stored),
                slot_bytes=DISK_BLOCK_BYTES,
            ) as search:
                source = case.sources[-1]
                done = search.run(np.array([source], np.uint32), direction)
            compare_search(case, source, done.levels, done.parents)

        yield Check(f"{case.name}, {direction.value}, {share} resident, the rest on disk", run)


def several_devices(target: Target, cases: Sequence[Case]) -> Iterator[Check]:
    """Search a graph cut for two devices; where there is one GPU, it is both."""
    ways = [direction for direction in DeviceDirection if direction is not DeviceDirection.SPLIT]
    for case, direction, share in _each(target, cases, ways):

        def run(
            case: Case = case, direction: DeviceDirection = direction, share: str = share
        ) -> None:
            source = case.sources[-1]
            with _on_devices(target, case, share) as search:
                done = search.run(np.array([source], np.uint32), direction)
            compare_search(case, source, done.levels, done.parents)

        yield Check(f"{case.name}, {direction.value}, {share} resident", run)


def _on_devices(target: Target, case: Case, share: str) -> DevicesBfs:
    options = KernelOptions(block_cyclic=True)
    numbers = _two_devices(target)
    cut = Cut(case.stored.num_vertices, len(numbers))
    settings = Settings(resident_tails=share)
    devices = [target.device(options, DEVICES_KERNELS, number) for number in numbers]
    with ExitStack() as stack:
        shards = []
        for shard, device in enumerate(devices):
            sides = [cut_rows(side, cut, shard) for side in sides_of(case.stored)]
            placed = place(device, sides, cut, shard, settings, options)
            shards.append(stack.enter_context(placed))
        links = _links(devices, numbers)
        stack.callback(links.close)
        return DevicesBfs(shards, links, stack.pop_all(), limits=_LARGE)


def _two_devices(target: Target) -> tuple[int, int]:
    if not target.is_gpu:
        return 0, 1
    device = target.device(KernelOptions(block_cyclic=True), DEVICES_KERNELS, 0)
    assert isinstance(device, CudaDevice)
    return (0, 1) if device.count > 1 else (0, 0)


def _links(devices: Sequence[Device], numbers: Sequence[int]) -> Links:
    gpus = [device for device in devices if isinstance(device, CudaDevice)]
    if not gpus:
        return EmulatorLinks(range(len(devices)))
    # NCCL knows no device twice.
    is_one = len(set(numbers)) == 1
    return PeerLinks(gpus, range(len(gpus))) if is_one else cuda_links(gpus, numbers)


def methods(target: Target, cases: Sequence[Case]) -> Iterator[Check]:
    """Search by each method of the papers, and with every value of every option once."""
    for number, text in enumerate(_methods(target.engine)):
        chosen: Sequence[Case] = cases
        if not target.is_gpu:
            chosen = [cases[(number + 3 * turn) % len(cases)] for turn in range(_FEW_CASES)]
        for case in chosen:

            def run(text: str = text, case: Case = case) -> None:
                choice = parse_method(text)
                program = make_program(choice, with_parents=True)
                options = MethodOptions(with_parents=program.with_parents)
                device = target.device(options, program.kernels)
                graph, source = case.stored, case.sources[-1]
                with MethodSearch(device, choice, program, graph.rows, graph.in_rows) as search:
                    done = search.run(np.array([source], np.uint32))
                compare_search(case, source, done.levels, done.parents)

            yield Check(f"{text}, {case.name}", run)


def _methods(engine: str) -> Iterator[str]:
    """Yield methods as users write them: plain, then one for each value of an option."""
    known = [method for method in METHODS.values() if engine in method.engines]
    known = [method for method in known if method.name != AUTO]
    yield from (method.name for method in known)
    seen = set()
    for method in known:
        for option in method.options:
            for value in option.values:
                if value != option.default and (option.name, value) not in seen:
                    seen.add((option.name, value))
                    yield f"{method.name}:{option.name}={value}"


def whole_calls(target: Target, cases: Sequence[Case]) -> Iterator[Check]:
    """Call everything as users do: planned, named, checked by the rules of Graph500."""
    for case in cases[-4:]:

        def batch(case: Case = case) -> None:
            ids = case.stored.ids_of(np.array(case.sources)).tolist()
            found = case.graph.bfs_many(ids, emit="levels", engine=target.engine)
            for source, result in zip(case.sources, found, strict=True):
                assert result.levels is not None
                compare_levels(case, source, result.levels[_positions(case)])

        yield Check(f"batch, {case.name}", batch)
    for case, share in product(cases[-4:], SHARES):
        options = Settings(resident_tails=share)
        settings: dict[str, Any] = {"engine": target.engine, "options": options}

        def search(case: Case = case, settings: dict[str, Any] = settings) -> None:
            source = int(case.stored.ids_of(np.array(case.sources[-1:]))[0])
            done = case.graph.bfs(source, parents=True, validate=True, **settings)
            case.graph.release_device()
            compare_levels(case, case.sources[-1], done.levels[_positions(case)])

        def connect(case: Case = case, settings: dict[str, Any] = settings) -> None:
            done = case.graph.components(**settings)
            expected = case.graph.components(engine="cpu")
            compare_labels(case, done.labels, expected.labels)

        yield Check(f"bfs, {case.name}, {share} resident", search)
        yield Check(f"components, {case.name}, {share} resident", connect)


def _positions(case: Case) -> NDArray[Any]:
    order = case.stored.order
    return np.arange(case.stored.num_vertices) if order is None else order


FAMILIES: dict[str, Family] = {
    "one source": one_source,
    "many sources": many_sources,
    "components": components,
    "from disk": staged,
    "two devices": several_devices,
    "methods": methods,
    "whole calls": whole_calls,
}
