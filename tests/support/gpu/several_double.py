"""A double of several CUDA devices and of NCCL: every device has its own memory and its own queue.

A device reads and writes no memory of another: a launch that was given such an address fails. What
devices do runs as late as it may, each queue by itself. Only NCCL and copies between devices
make one queue wait for another, as in CUDA.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from tests.support.gpu.cuda_double import CUDARuntimeError, Runtime

NCCL_UINT64 = 5


class NcclError(RuntimeError):
    """What CuPy raises for NCCL."""


class Devices:
    """The runtime of several devices: calls are about the current one."""

    def __init__(self, runtimes: list[Runtime]) -> None:
        self.runtimes, self.current = runtimes, 0
        self.copies: list[tuple[int, int, int]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.runtimes[self.current], name)

    @property
    def here(self) -> Runtime:
        """The runtime of the current device."""
        return self.runtimes[self.current]

    def getDeviceCount(self) -> int:  # noqa: N802
        return len(self.runtimes)

    def check_launch(self, arguments: tuple[Any, ...]) -> None:
        """Refuse memory of another device."""
        for argument in arguments:
            for name in argument.dtype.names or ():
                number = int(argument[name])
                for other, runtime in enumerate(self.runtimes):
                    if other != self.current and runtime.holds(number):
                        raise CUDARuntimeError(
                            f"cudaErrorIllegalAddress: {name} is memory of device {other}", 700
                        )

    def memcpyPeerAsync(  # noqa: N802
        self,
        target: int,
        target_device: int,
        source: int,
        source_device: int,
        size: int,
        stream: int,
    ) -> None:
        """Copy in a stream of the current device, and wait for no other."""
        assert stream in self.here.streams
        devices = self.runtimes[target_device], self.runtimes[source_device]
        for device, address in zip(devices, (target, source), strict=True):
            if not (device.holds(address) and device.holds(address + size - 1)):
                raise CUDARuntimeError("cudaErrorInvalidValue: memory of another device", 1)

        def copy() -> None:
            ctypes.memmove(target, source, size)

        self.here.queue(copy)
        self.copies.append((source_device, target_device, size))

    def end_process(self) -> None:
        """Let go of what is still pinned."""
        for runtime in self.runtimes:
            runtime.end_process()


class _Meeting:
    """A group of calls that all devices came to: the first to run it waits for the others."""

    def __init__(self, devices: list[Runtime], work: Callable[[], None]) -> None:
        self._devices, self._work, self._done = devices, work, False
        self._numbers = [device.queue(self.run) for device in devices]

    def run(self) -> None:
        """Run the others up to here, then do the work once."""
        if self._done:
            return
        self._done = True
        for device, number in zip(self._devices, self._numbers, strict=True):
            if not device.is_done(number - 1):
                device.run_queue(number - 1)
        self._work()


class Nccl:
    """The module ``cupy.cuda.nccl``, of communicators that one process made by initAll."""

    NCCL_UINT64 = NCCL_UINT64
    available = True

    def __init__(self, devices: Devices) -> None:
        self._devices = devices
        self.alive = 0
        self.calls: list[str] = []
        self._group: list[tuple[str, int, tuple[int, ...]]] | None = None
        self.NcclCommunicator = SimpleNamespace(initAll=self._init_all)

    def _init_all(self, ids: list[int]) -> list[_Communicator]:
        if len(set(ids)) < len(ids) or max(ids) >= len(self._devices.runtimes):
            raise NcclError("NCCL_ERROR_INVALID_ARGUMENT: invalid argument")
        self._members = [self._devices.runtimes[number] for number in ids]
        self.alive += len(ids)
        return [_Communicator(self, rank, number) for rank, number in enumerate(ids)]

    def is_stream(self, device: int, stream: int) -> bool:
        """Return whether a device has a stream."""
        return stream in self._devices.runtimes[device].streams

    def groupStart(self) -> None:  # noqa: N802
        assert self._group is None
        self._group = []

    def groupEnd(self) -> None:  # noqa: N802
        calls, self._group = self._group or [], None
        _Meeting(self._members, lambda: self._carry(calls))

    def note(self, name: str, rank: int, device: int, *arguments: int) -> None:
        """Take a call for a group; one by itself would wait for the others for ever."""
        if self._group is None:
            raise NcclError(f"{name} outside of a group hangs")
        assert self._devices.current == device, "another device is current"
        self.calls.append(name)
        self._group.append((name, rank, arguments))

    def _carry(self, calls: list[tuple[str, int, tuple[int, ...]]]) -> None:
        size = len(self._members)
        gathers = {rank: arguments for name, rank, arguments in calls if name == "allGather"}
        if gathers:
            assert len(gathers) == size, "a device does not come to the collective"
            assert len({arguments[2:] for arguments in gathers.values()}) == 1
        for rank, (source, _, count, _) in gathers.items():
            for _, target, _, _ in gathers.values():
                ctypes.memmove(target + 8 * count * rank, source, 8 * count)
        sends = [(rank, arguments) for name, rank, arguments in calls if name == "send"]
        recvs = [(rank, arguments) for name, rank, arguments in calls if name == "recv"]
        for sender, (source, count, _, peer) in sends:
            match = next(
                one for one in recvs if one[0] == peer and one[1][3] == sender
            )  # StopIteration: a send that nobody receives hangs
            recvs.remove(match)
            assert match[1][1] == count
            ctypes.memmove(match[1][0], source, 8 * count)
        assert not recvs, "somebody waits for what nobody sends"


class _Communicator:
    """A device's end of NCCL."""

    def __init__(self, nccl: Nccl, rank: int, device: int) -> None:
        self._nccl, self._rank, self._device = nccl, rank, device

    def _note(self, name: str, kind: int, stream: int, *arguments: int) -> None:
        assert kind == NCCL_UINT64
        assert self._nccl.is_stream(self._device, stream), "a stream of another device"
        self._nccl.note(name, self._rank, self._device, *arguments)

    def allGather(  # noqa: N802
        self, source: int, target: int, count: int, kind: int, stream: int
    ) -> None:
        self._note("allGather", kind, stream, source, target, count, kind)

    def send(self, source: int, count: int, kind: int, peer: int, stream: int) -> None:
        self._note("send", kind, stream, source, count, kind, peer)

    def recv(self, target: int, count: int, kind: int, peer: int, stream: int) -> None:
        self._note("recv", kind, stream, target, count, kind, peer)

    def destroy(self) -> None:
        self._nccl.alive -= 1
