"""What things take on a GPU: the rates that turn bytes, launches and read-backs into seconds.

The engine prices the steps of a level by them, and ``oocbfs plan`` predicts with them. Until
``oocbfs doctor --gpu`` has measured a device, they are derived from published figures, which is
said wherever a prediction is shown. Nothing in this module is a measurement of ours.
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from oocbfs.kernels.cache_folder import cache_folder

# What one read moves, over the bus or in device memory, however little of it is wanted.
SECTOR_BYTES = 32
# A read of 32 bytes brings some 20 bytes of headers with it, as one of 256 does (PCI Express
# throughput as explained in Intel's "Throughput for Reads": a completion has 20 bytes around its
# data).
_SECTOR_SHARE = (32 / (32 + 20)) / (256 / (256 + 20))
# Memory chips give 64 bytes at a time, of which a random sector needs half. Assumed.
_RANDOM_SHARE = 0.5


@dataclass(frozen=True)
class Rates:
    """Bytes, sectors of 32 bytes, and calls, in seconds."""

    device_bandwidth: float  # bytes a second that kernels stream from device memory
    device_sectors: float  # sectors a second that they read from it at random
    copy_bandwidth: float  # bytes a second between pinned host memory and the device
    bus_sectors: float  # sectors a second that kernels read at random over PCIe
    disk_bandwidth: float = 2e9  # of an NVMe disk with many reads in flight
    launch_seconds: float = 4e-6
    read_back_seconds: float = 12e-6
    # One dependent access to device memory: what a lane waits for before it can go on.
    latency_seconds: float = 0.6e-6


def published(device_bandwidth: float, copy_bandwidth: float) -> Rates:
    """Return rates that follow from a device's two published bandwidths."""
    return Rates(
        device_bandwidth=device_bandwidth,
        device_sectors=device_bandwidth * _RANDOM_SHARE / SECTOR_BYTES,
        copy_bandwidth=copy_bandwidth,
        bus_sectors=copy_bandwidth * _SECTOR_SHARE / SECTOR_BYTES,
    )


@dataclass(frozen=True)
class KnownGpu:
    """Figures of a GPU: memory, its PCIe link and the rates that follow from what is published."""

    name: str
    vram_bytes: int
    link: str
    rates: Rates


# Memory bandwidth: bus width times data rate (RTX 3060 Laptop 192 bit × 14 Gbit/s, RTX 4070 192 ×
# 21, RTX 4090 384 × 21), or as published (A100 80GB; H100 PCIe product brief PB-11133-001). Copies
# from pinned memory: 24.8 GB/s over PCIe 4.0 x16, by nvbandwidth on an A100
# (forums.developer.nvidia.com/t/352186); 55.6 GB/s over PCIe 5.0 x16, in NVIDIA's article on
# nvbandwidth (developer.nvidia.com/blog, ?p=115566). Half of the former is assumed for the 8 lanes
# that most laptops give the GPU, all of it for every 4.0 x16 link.
KNOWN_GPUS = (
    KnownGpu("RTX 3060 Laptop", 6 << 30, "PCIe 4.0 x8", published(336e9, 12.4e9)),
    KnownGpu("RTX 4070", 12 << 30, "PCIe 4.0 x16", published(504e9, 24.8e9)),
    KnownGpu("RTX 4090", 24 << 30, "PCIe 4.0 x16", published(1008e9, 24.8e9)),
    KnownGpu("A100 80GB", 80 << 30, "PCIe 4.0 x16", published(1935e9, 24.8e9)),
    KnownGpu("H100 PCIe", 80 << 30, "PCIe 5.0 x16", published(2000e9, 55.6e9)),
)

# By compute capability: those of the smaller boards, over PCIe 3.0 x16 (7.5), 4.0 x16 or 5.0 x16.
_BY_CAPABILITY = {
    (7, 5): published(320e9, 12.4e9),
    (8, 0): published(1555e9, 24.8e9),
    (8, 6): published(336e9, 12.4e9),
    (8, 9): published(504e9, 24.8e9),
    (9, 0): published(2000e9, 55.6e9),
    (12, 0): published(672e9, 55.6e9),
}


def default_rates(capability: tuple[int, int]) -> Rates:
    """Return rates for a device that was never measured: of the nearest architecture before it."""
    older = [known for known in _BY_CAPABILITY if known <= capability]
    return _BY_CAPABILITY[max(older, default=min(_BY_CAPABILITY))]


def kept_rates(device: str) -> Rates | None:
    """Return what was measured on a device, by its unique name; None if nothing valid is kept."""
    try:
        kept = json.loads(_file(device).read_text())
        rates = Rates(**{field.name: float(kept[field.name]) for field in fields(Rates)})
    except (OSError, ValueError, KeyError, TypeError):
        return None
    valid = all(math.isfinite(value) and value > 0 for value in asdict(rates).values())
    return rates if valid else None


def keep_rates(device: str, rates: Rates) -> Path:
    """Store what was measured on a device; return the file."""
    file = _file(device)
    with tempfile.NamedTemporaryFile("w", dir=file.parent, delete=False) as written:
        json.dump(asdict(rates), written, indent=1)
    os.replace(written.name, file)
    return file


def _file(device: str) -> Path:
    name = "".join(letter if letter.isalnum() else "-" for letter in device)
    return cache_folder("rates") / f"{name}.json"
