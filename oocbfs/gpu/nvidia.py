"""Ask NVIDIA's driver and the system about GPUs, through ctypes: costs nothing, needs no CuPy."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

LIBRARY = "libcuda.so.1"
_PCI_DEVICES = Path("/sys/bus/pci/devices")
_VENDOR = "0x10de"
# Classes of PCI devices: display and 3D controllers.
_DISPLAY_CLASSES = ("0x0300", "0x0302")
_CAPABILITY_MAJOR, _CAPABILITY_MINOR = 75, 76
_EXECUTION_TIMEOUT = 17
_READ_ONLY_REGISTER = 113
_MANAGEMENT_LIBRARY = "libnvidia-ml.so.1"
_WSL_DEVICE = Path("/dev/dxg")
# What CuPy compiles kernels with, and what it wants to have beside it.
NVRTC_WHEEL = "nvidia-cuda-nvrtc-cu12"
HEADERS_WHEEL = "nvidia-cuda-runtime-cu12"


class Link(NamedTuple):
    """A PCIe link as the system lists it: now (idle GPUs slow down) and at most."""

    speed: str
    width: str
    most_speed: str
    most_width: str

    def __str__(self) -> str:
        now = f"{self.speed} x{self.width}"
        most = f"{self.most_speed} x{self.most_width}"
        return now if now == most else f"{now} now, {most} at most"


@dataclass(frozen=True)
class Gpu:
    """One GPU that the driver knows, or a part of one.

    Where it has a watchdog, launches that take seconds are ended.
    """

    name: str
    vram_bytes: int
    capability: str
    pci: str
    link: Link | None
    has_watchdog: bool = False
    registers_read_only: bool = False

    @property
    def is_mig(self) -> bool:
        """Whether this is a part of a GPU that is divided (MIG)."""
        return "MIG" in self.name.split()


@dataclass(frozen=True)
class Driver:
    """What the driver says; a problem, in words, where it cannot be used."""

    version: str | None
    gpus: tuple[Gpu, ...]
    problem: str | None


def ask_driver(library: str = LIBRARY, devices: Path = _PCI_DEVICES) -> Driver:
    """Load the driver's library and list its GPUs."""
    try:
        cuda = ctypes.CDLL(library)
    except OSError:
        if unclaimed_gpus(devices):
            return Driver(None, (), "there is an NVIDIA GPU but no driver: install NVIDIA's driver")
        return Driver(None, (), "there is no NVIDIA driver: install it where there is a GPU")
    number = ctypes.c_int()
    version = None
    if cuda.cuDriverGetVersion(ctypes.byref(number)) == 0:
        version = f"CUDA {number.value // 1000}.{number.value % 1000 // 10}"
    try:
        _call(cuda, "cuInit", ctypes.c_uint(0))
        _call(cuda, "cuDeviceGetCount", ctypes.byref(number))
        gpus = tuple(_gpu(cuda, ordinal, devices) for ordinal in range(number.value))
    except _DriverError as error:
        return Driver(version, (), f"NVIDIA's driver refuses ({error}): reinstall it, or reboot")
    return Driver(version, gpus, None if gpus else "NVIDIA's driver finds no GPU")


def unclaimed_gpus(devices: Path = _PCI_DEVICES) -> list[str]:
    """List the addresses of NVIDIA's GPUs on the bus, whether there is a driver or not."""
    return sorted(
        device.name
        for device in (devices.iterdir() if devices.is_dir() else ())
        if _read(device / "vendor") == _VENDOR
        and _read(device / "class").startswith(_DISPLAY_CLASSES)
    )


def driver_release(library: str = _MANAGEMENT_LIBRARY) -> str | None:
    """Return the driver's own number, such as 570.86.10; None if it cannot be asked."""
    try:
        management = ctypes.CDLL(library)
    except OSError:
        return None
    text = ctypes.create_string_buffer(96)
    if management.nvmlInit_v2():
        return None
    failed = management.nvmlSystemGetDriverVersion(text, ctypes.c_uint(len(text)))
    management.nvmlShutdown()
    return None if failed else text.value.decode()


def is_wsl() -> bool:
    """Return whether this is Linux inside of Windows, whose driver pins little memory."""
    return _WSL_DEVICE.exists()


def find_headers() -> str | None:
    """Return the folder of CUDA's headers as CuPy looks for it, None if there is none."""
    try:
        from cuda.pathfinder import find_nvidia_header_directory
    except ImportError:
        return None
    found: str | None = find_nvidia_header_directory("cudart")
    return found


class _DriverError(Exception):
    """A call that the driver refused."""


def _call(cuda: ctypes.CDLL, function: str, *arguments: object) -> None:
    code = cuda[function](*arguments)
    if code:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(code, ctypes.byref(text))
        raise _DriverError((text.value or b"").decode() or f"{function}: error {code}")


def _gpu(cuda: ctypes.CDLL, ordinal: int, devices: Path) -> Gpu:
    device, size = ctypes.c_int(), ctypes.c_size_t()
    name, pci = ctypes.create_string_buffer(256), ctypes.create_string_buffer(32)
    _call(cuda, "cuDeviceGet", ctypes.byref(device), ctypes.c_int(ordinal))
    _call(cuda, "cuDeviceGetName", name, ctypes.c_int(256), device)
    _call(cuda, "cuDeviceTotalMem_v2", ctypes.byref(size), device)
    _call(cuda, "cuDeviceGetPCIBusId", pci, ctypes.c_int(32), device)
    address = pci.value.decode().lower()
    capability = [_attribute(cuda, one, device) for one in (_CAPABILITY_MAJOR, _CAPABILITY_MINOR)]
    return Gpu(
        name=name.value.decode(),
        vram_bytes=size.value,
        capability=".".join(map(str, capability)),
        pci=address,
        link=_link(devices / address),
        has_watchdog=bool(_attribute(cuda, _EXECUTION_TIMEOUT, device)),
        registers_read_only=bool(_attribute(cuda, _READ_ONLY_REGISTER, device)),
    )


def _attribute(cuda: ctypes.CDLL, attribute: int, device: ctypes.c_int) -> int:
    """Ask for a number; 0 if the driver is older than the question."""
    value = ctypes.c_int()
    failed = cuda.cuDeviceGetAttribute(ctypes.byref(value), ctypes.c_int(attribute), device)
    return 0 if failed else value.value


def _link(device: Path) -> Link | None:
    names = ("current_link_speed", "current_link_width", "max_link_speed", "max_link_width")
    values = [_read(device / name).removesuffix(" PCIe") for name in names]
    return Link(*values) if all(values) else None


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
