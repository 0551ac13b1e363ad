"""Links between GPUs: NCCL where CuPy finds it, else copies. Nothing here has run on hardware."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from oocbfs.devices.links import CopiedLinks, Links, piece
from oocbfs.gpu.cuda_device import CudaDevice
from oocbfs.gpu.device import Memory


def find_nccl() -> Any:
    """Return CuPy's NCCL, None where its library is not installed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CuPy warns of a library that may well be missing
        try:
            nccl = import_module("cupy.cuda.nccl")
        except ImportError:
            return None
    return nccl if nccl.available else None


def cuda_links(devices: Sequence[CudaDevice], names: Sequence[int]) -> Links:
    """Connect GPUs in the best way there is."""
    nccl = find_nccl() if len(devices) > 1 else None
    return PeerLinks(devices, names) if nccl is None else NcclLinks(devices, names, nccl)


class PeerLinks(CopiedLinks):
    """Copies by the driver: over NVLink or PCIe where it can, else through the host."""

    def __init__(self, devices: Sequence[CudaDevice], names: Sequence[int]) -> None:
        super().__init__(names)
        self._devices = devices

    def copy(self, sender: int, receiver: int, source: Memory, target: Memory) -> None:
        """Copy in the stream of the sender, after all work of both, and before what comes later."""
        num_bytes = source.size * source.dtype.itemsize
        giver, taker = self._devices[sender], self._devices[receiver]
        giver.follow(taker)
        with giver.current("copying to another GPU failed"):
            giver.cupy.cuda.runtime.memcpyPeerAsync(
                target.address,
                taker.device_id,
                source.address,
                giver.device_id,
                num_bytes,
                giver.stream,
            )
        taker.follow(giver)


class NcclLinks(Links):
    """Collectives of NCCL, all of them in one process; they wait in the streams of the devices."""

    def __init__(self, devices: Sequence[CudaDevice], names: Sequence[int], nccl: Any) -> None:
        super().__init__(names)
        self._devices, self._nccl = devices, nccl
        with devices[0].current("NCCL cannot connect the GPUs"):
            ids = [device.device_id for device in devices]
            self._communicators = nccl.NcclCommunicator.initAll(ids)

    def gather(self, words: Sequence[Memory], received: Sequence[Memory]) -> None:
        """Call ncclAllGather on every device."""
        with self._together() as streams:
            for i, communicator in enumerate(self._communicators):
                with self._devices[i].current("NCCL failed"):
                    communicator.allGather(
                        words[i].address,
                        received[i].address,
                        words[i].size,
                        self._nccl.NCCL_UINT64,
                        streams[i],
                    )
        self._count_all(8 * words[0].size)

    def all_to_all(self, sent: Sequence[Memory], received: Sequence[Memory]) -> None:
        """Send and receive in one group: NCCL knows no exchange of pieces, and no OR."""
        count = len(self._communicators)
        with self._together() as streams:
            for i, communicator in enumerate(self._communicators):
                with self._devices[i].current("NCCL failed"):
                    for j in range(count):
                        if i == j:
                            continue
                        out, back = piece(sent[i], j, count), piece(received[i], j, count)
                        kind = self._nccl.NCCL_UINT64
                        communicator.send(out.address, out.size, kind, j, streams[i])
                        communicator.recv(back.address, back.size, kind, j, streams[i])
        self._count_all(8 * sent[0].size // count)

    def close(self) -> None:
        """Let NCCL go."""
        for communicator in self._communicators:
            communicator.destroy()

    @contextmanager
    def _together(self) -> Iterator[list[int]]:
        """Start calls on all devices as one, or the first of them would wait for the others."""
        streams = [device.stream for device in self._devices]
        self._nccl.groupStart()
        yield streams
        with self._devices[0].current("NCCL failed"):
            self._nccl.groupEnd()

    def _count_all(self, num_bytes: int) -> None:
        for i in range(len(self._devices)):
            for j in range(len(self._devices)):
                if i != j:
                    self._count(i, j, num_bytes)
