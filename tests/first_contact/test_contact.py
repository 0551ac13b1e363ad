"""A first contact on the double of a GPU and in the emulator: what is found, kept and said."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from oocbfs.first_contact import contact as contacts
from oocbfs.first_contact import facts, forecasts, pinning, rates, report
from oocbfs.first_contact.checks import Outcome, run_checks
from oocbfs.first_contact.comparing import DifferenceError
from oocbfs.first_contact.contact import Contact, make_contact
from oocbfs.first_contact.families import FAMILIES, Check
from oocbfs.first_contact.graphs import SMALL, Case, open_cases
from oocbfs.first_contact.pinning import look_at_pinning
from oocbfs.first_contact.target import Target
from oocbfs.gpu.cuda_device import CudaDevice, DeviceError
from oocbfs.gpu.nvidia import ask_driver
from oocbfs.kernels.cuda.source import KERNELS, MEASURE_KERNELS, KernelOptions
from oocbfs.plan.rates import kept_rates
from oocbfs.progress import Phases
from tests.support.command_line import call, run
from tests.support.exhaustive import some
from tests.support.gpu.cuda_double import CUDARuntimeError, Runtime
from tests.support.gpu.first_contact import OF_KERNELS, double_for_searches, doubled

pytestmark = pytest.mark.skipif(
    shutil.which("g++") is None, reason="the emulator needs a C++ compiler"
)
QUIET = Phases(show=False)


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Case]]:
    with open_cases(Path(tmp_path_factory.mktemp("cases")), SMALL, QUIET) as made:
        yield made


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, driver_double: Path, tmp_path: Path) -> Target:
    """Return the double of a GPU, on which everything is as small as in the emulator."""
    monkeypatch.setattr(facts, "ask_driver", lambda: ask_driver(str(driver_double)))
    monkeypatch.setattr(contacts, "LARGE", SMALL)
    monkeypatch.setattr(rates, "ON_GPU", rates.EMULATED)
    monkeypatch.setitem(forecasts._SCALES, "cuda", 8)
    monkeypatch.setattr(pinning, "_FIRST_BYTES", 1 << 16)
    monkeypatch.setattr(pinning, "_MOST_BYTES", 1 << 20)
    monkeypatch.setattr("oocbfs.plan.rates.cache_folder", lambda _: tmp_path)
    monkeypatch.setitem(sys.modules, "cupy", double_for_searches(Runtime(offset=0)))
    return Target("cuda", doubled())


def keep(monkeypatch: pytest.MonkeyPatch, *families: str, most: int = 6) -> None:
    """Let a contact run few checks of few families."""

    def thinned(name: str) -> Any:
        return lambda target, cases: iter(some(list(FAMILIES[name](target, cases)), most))

    monkeypatch.setattr(
        "oocbfs.first_contact.checks.FAMILIES", {name: thinned(name) for name in families}
    )


@pytest.mark.parametrize("family", OF_KERNELS)
@pytest.mark.parametrize("count", [1, 2])
def test_families_on_the_double(family: str, count: int, cases: list[Case]) -> None:
    if count > 1 and family != "two devices":
        return
    target = Target("cuda", doubled(count))
    checks = list(FAMILIES[family](target, cases))
    for check in some(checks, 8):
        check.run()


def test_a_gpu_is_measured_and_its_rates_are_kept(
    gpu: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(monkeypatch, "one source", "whole calls")
    made = make_contact(gpu, QUIET)
    assert made.passed, report.problems(made)
    said = {fact.part: fact.found for fact in made.facts}
    assert str(said["GPU"]).startswith("Double 40, compute capability 8.6, 40.0 GB")
    assert said["watchdog"] == "ends launches that take seconds"
    assert said["read-only registration"] == "no"
    assert said["MIG"] == "no"
    assert said["NVRTC in use"] == "12.9"
    assert {fact.kernel for fact in made.kernels} == set(KERNELS)
    assert {fact.resources.registers for fact in made.kernels} == {40}
    assert made.rates is not None
    assert kept_rates("A double 00") == made.rates
    assert [one.share for one in made.forecasts] == ["0%", "50%", "100%"]
    assert all(one.measured_seconds is not None for one in made.forecasts)
    assert made.pinning is not None
    assert made.pinning.route == "registered in place"
    assert (made.pinning.largest_bytes, made.pinning.refused_bytes) == (1 << 20, None)
    text = "\n".join(report.block(made))
    num_run = sum(outcome.num_run for outcome in made.outcomes)
    assert f"all {num_run} checks passed on this GPU" in text
    json.dumps(report.values(made))


def test_a_kernel_that_is_wrong_is_found_and_said(
    gpu: Target, cases: list[Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong() -> None:
        raise DifferenceError(f"{cases[0].graph.path}: levels differ")

    family = {"one source": lambda *_: iter([Check("star", wrong), Check("path", lambda: None)])}
    monkeypatch.setattr("oocbfs.first_contact.checks.FAMILIES", family)
    made = make_contact(gpu, QUIET)
    assert not made.passed
    assert report.verdict(made) == "1 of 2 checks FAILED on this GPU: do not trust it"
    (problem,) = report.problems(made)
    assert problem == f"one source: star: {Path(cases[0].graph.path).name}: levels differ"


def test_a_family_that_is_broken_is_not_run_to_its_end() -> None:
    def wrong() -> None:
        raise DifferenceError("levels differ")

    family = {"one source": lambda *_: iter([Check(str(i), wrong) for i in range(20)])}
    (outcome,) = run_checks(Target("emulator"), [], QUIET, family)
    assert len(outcome.problems) == outcome.num_run == 5
    assert outcome.not_run == "15 more were left out"


def test_a_gpu_that_fails_gets_no_more_work(cases: list[Case]) -> None:
    """Its driver refuses all that follows."""

    def fails() -> None:
        raise DeviceError("the GPU failed in a kernel or a copy (cudaErrorIllegalAddress)")

    def never() -> None:
        raise AssertionError

    families = {
        "one source": lambda *_: iter([Check("star", fails), Check("path", never)]),
        "components": lambda *_: iter([Check("star", never)]),
    }
    first, second = run_checks(Target("cuda", doubled()), cases, QUIET, families)
    assert (first.num_run, second.num_run) == (1, 0)
    assert first.not_run == second.not_run == "the GPU failed before"
    (_, _), (_, rows) = report.sections(Contact("cuda", outcomes=[first, second]))
    assert rows[1] == ("components", "not run: the GPU failed before")
    assert not Contact("cuda", outcomes=[first, second]).passed


@pytest.mark.parametrize(("accepted", "largest"), [(0, 0), (3, 4 << 16)])
def test_a_pin_that_is_refused(gpu: Target, cases: list[Case], accepted: int, largest: int) -> None:
    target = Target("cuda", doubled(refused=("hostAlloc",), accepted=accepted))
    device = target.device(KernelOptions(), MEASURE_KERNELS)
    assert isinstance(device, CudaDevice)
    found = look_at_pinning(device, cases[-2].graph, QUIET, free_bytes=1 << 22)
    assert found.largest_bytes == largest
    assert found.refused_bytes is not None
    assert found.refused_bytes > largest
    assert not device._runtime.pinned


def test_ctrl_c_leaves_nothing(
    gpu: Target, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupt(*_: object) -> Iterator[Check]:
        def press() -> None:
            raise KeyboardInterrupt

        yield Check("star", press)

    monkeypatch.setattr("oocbfs.first_contact.checks.FAMILIES", {"one source": interrupt})
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        make_contact(gpu, QUIET)
    assert not list(tmp_path.glob("oocbfs-*"))


def test_the_report_names_no_folder() -> None:
    outcome = Outcome("one source", 1, [f"star: {Path.home()}/secret/kron.ocg: a row is damaged"])
    text = "\n".join(report.block(Contact("emulator", outcomes=[outcome])))
    assert "secret" not in text
    assert str(Path.home()) not in text
    assert "kron.ocg: a row is damaged" in text


def test_rates_of_the_emulator_are_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    keep(monkeypatch, "components")
    monkeypatch.setattr(contacts, "kernel_facts", lambda *_: [])
    monkeypatch.setattr(contacts, "keep_rates", None)
    made = make_contact(Target("emulator"), QUIET)
    assert made.passed
    assert made.rates is None
    assert set(made.figures)
    titles = [title for title, _ in report.sections(made)]
    assert "Rates (time of the emulator, says nothing about a GPU)" in titles
    for one in made.forecasts:
        assert one.counted_bytes is not None
        assert one.measured_seconds is None


def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix bits as splitmix64 ends."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        numbers = (numbers ^ numbers >> np.uint64(shift)) * np.uint64(factor)
    return numbers ^ numbers >> np.uint64(31)


def test_kernels_that_measure_move_what_they_say() -> None:
    """A read of 32 bytes is one sector over the bus, one of 128 bytes is four; warps share them."""
    target, amounts = Target("emulator"), rates.EMULATED
    device = target.device(KernelOptions(), MEASURE_KERNELS)
    before = device.usage.slow_bytes or 0
    rates.measure(target, QUIET)
    moved = (device.usage.slow_bytes or 0) - before
    expected = 0
    for unit_bytes in (32, 128):
        num_units = np.uint64(amounts.num_bytes // unit_bytes)
        chosen = mixed(np.arange(amounts.reads, dtype=np.uint64)) >> np.uint64(32)
        units = (chosen * num_units >> np.uint64(32)).reshape(-1, 32 * 16 // unit_bytes)
        expected += unit_bytes * sum(np.unique(warp).size for warp in units)
    assert moved == (rates._ROUNDS + 1) * expected


def test_without_a_gpu_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(DeviceError, match=r"pip install 'oocbfs\[gpu\]'.*engine=.emulator."):
        make_contact(Target("cuda"), QUIET)


def test_verb(monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("doctor", "--engine", "emulator").returncode == 1
    keep(monkeypatch, "components")
    monkeypatch.setattr(contacts, "kernel_facts", lambda *_: [])
    shown = call("doctor", "--gpu", "--engine", "emulator")
    assert re.search(r"Verdict: all \d+ checks passed on the emulator", shown.stdout)
    found = json.loads(call("doctor", "--gpu", "--engine", "emulator", "--json").stdout)
    assert found["passed"]
    assert found["report"]


def test_the_exit_code_says_that_something_differed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong() -> None:
        raise DifferenceError("levels differ")

    monkeypatch.setattr(
        "oocbfs.first_contact.checks.FAMILIES", {"methods": lambda *_: [Check("v1", wrong)]}
    )
    monkeypatch.setattr(contacts, "kernel_facts", lambda *_: [])
    done = call("doctor", "--gpu", "--engine", "emulator")
    assert done.returncode == 1
    assert "1 of 1 checks FAILED on the emulator" in done.stdout


def test_errors_of_the_double_are_those_of_the_gpu(cases: list[Case]) -> None:
    """A kernel that faults is a check that failed, whatever it computed."""
    target = Target("cuda", doubled())
    check = next(iter(FAMILIES["one source"](target, cases)))
    device = target.device(KernelOptions(), ())
    assert isinstance(device, CudaDevice)
    check.run()
    for made in target._made.values():
        assert isinstance(made, CudaDevice)
        made._runtime.here.fault = CUDARuntimeError("cudaErrorIllegalAddress")
    with pytest.raises(DeviceError):
        check.run()
