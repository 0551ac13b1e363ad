"""Look at a GPU, or at the emulator, from facts to a verdict."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from oocbfs.doctor import Finding
from oocbfs.errors import OocbfsError
from oocbfs.first_contact.checks import Outcome, run_checks
from oocbfs.first_contact.facts import (
    KernelFact,
    driver_of,
    gpu_facts,
    kernel_facts,
    machine_facts,
)
from oocbfs.first_contact.forecasts import Forecasted, compare_forecasts
from oocbfs.first_contact.graphs import LARGE, SMALL, Case, open_cases
from oocbfs.first_contact.pinning import Pinning, look_at_pinning
from oocbfs.first_contact.rates import Figure, measure, rates_of
from oocbfs.first_contact.target import Target
from oocbfs.gpu.cuda_device import CudaDevice, DeviceError
from oocbfs.kernels.cuda.source import MEASURE_KERNELS, KernelOptions
from oocbfs.plan.rates import Rates, keep_rates
from oocbfs.progress import Phases

Made = TypeVar("Made")


@dataclass
class Contact:
    """What was found. ``problems`` are what went wrong outside of the checks."""

    engine: str
    facts: list[Finding] = field(default_factory=list)
    kernels: list[KernelFact] = field(default_factory=list)
    outcomes: list[Outcome] = field(default_factory=list)
    pinning: Pinning | None = None
    figures: dict[str, Figure] = field(default_factory=dict)
    rates: Rates | None = None
    forecasts: list[Forecasted] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether nothing differed and nothing failed."""
        return not self.problems and all(outcome.passed for outcome in self.outcomes)


def make_contact(target: Target, phases: Phases) -> Contact:
    """Look at everything there is to look at; rates of a GPU are kept for plans and searches.

    Raises
    ------
    DeviceError
        If there is no GPU that can be used; says what is missing.
    """
    contact = Contact(target.engine)
    try:
        with tempfile.TemporaryDirectory(prefix="oocbfs-") as folder:
            _look(target, Path(folder), phases, contact)
    finally:
        target.close()
    return contact


def _look(target: Target, folder: Path, phases: Phases, contact: Contact) -> None:
    device = _first_device(target)
    contact.facts += machine_facts()
    driver = driver_of(target)
    if driver is not None and isinstance(device, CudaDevice):
        contact.facts += gpu_facts(device, driver)
    contact.kernels += _tried(contact, "kernels", lambda: kernel_facts(target, phases)) or []
    with open_cases(folder, LARGE if target.is_gpu else SMALL, phases) as cases:
        contact.outcomes += run_checks(target, cases, phases)
        if any(outcome.gpu_failed for outcome in contact.outcomes):
            return  # it gives no figures, either
        if device is not None:
            _measure_pinning(device, cases, phases, contact)
    pinnable = None if contact.pinning is None else contact.pinning.largest_bytes
    contact.figures |= _tried(contact, "rates", lambda: measure(target, phases, pinnable)) or {}
    if device is not None and contact.figures:
        contact.rates = rates_of(contact.figures)
        keep_rates(device.unique_name, contact.rates)
    contact.forecasts += (
        _tried(
            contact,
            "prediction",
            lambda: list(compare_forecasts(target, folder, contact.rates, phases)),
        )
        or []
    )


def _first_device(target: Target) -> CudaDevice | None:
    """Return the GPU, None for the emulator; one line says what to do where there is none."""
    if not target.is_gpu:
        return None
    try:
        device = target.device(KernelOptions(), MEASURE_KERNELS)
    except DeviceError as error:
        raise DeviceError(
            f"{error}; '--engine emulator' runs the same checks here, on the CPU"
        ) from error
    assert isinstance(device, CudaDevice)
    return device


def _measure_pinning(
    device: CudaDevice, cases: list[Case], phases: Phases, contact: Contact
) -> None:
    graph = cases[-2].graph  # that with the most tails
    contact.pinning = _tried(contact, "pinning", lambda: look_at_pinning(device, graph, phases))


def _tried(contact: Contact, what: str, work: Callable[[], Made]) -> Made | None:
    """Do something that may fail, which is then a problem and not the end."""
    try:
        return work()
    except OocbfsError as error:
        contact.problems.append(f"{what}: {str(error).splitlines()[0]}")
        return None
