"""The driver asked without CuPy: a double of its library, and a double of the system's folder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from oocbfs.gpu.nvidia import Link, ask_driver, driver_release, unclaimed_gpus


@pytest.fixture
def bus(tmp_path: Path) -> Path:
    """Return a folder like /sys/bus/pci/devices: an NVIDIA GPU, its sound chip, another GPU."""
    for name, vendor, kind in (
        ("0000:0a:40.0", "0x10de", "0x030000"),
        ("0000:0a:40.1", "0x10de", "0x040300"),
        ("0000:00:02.0", "0x8086", "0x030000"),
    ):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "vendor").write_text(f"{vendor}\n")
        (folder / "class").write_text(f"{kind}\n")
    gpu = tmp_path / "0000:0a:40.0"
    (gpu / "current_link_speed").write_text("2.5 GT/s PCIe\n")
    (gpu / "max_link_speed").write_text("16.0 GT/s PCIe\n")
    (gpu / "current_link_width").write_text("8\n")
    (gpu / "max_link_width").write_text("16\n")
    return tmp_path


def test_gpus_and_their_links(driver_double: Path, bus: Path) -> None:
    driver = ask_driver(str(driver_double), bus)
    assert driver.problem is None
    assert driver.version == "CUDA 12.9"
    first, second = driver.gpus
    assert (first.name, first.vram_bytes, first.capability) == ("Double 40", 40 << 30, "8.6")
    assert first.pci == "0000:0a:40.0"
    assert first.link == Link("2.5 GT/s", "8", "16.0 GT/s", "16")
    assert str(first.link) == "2.5 GT/s x8 now, 16.0 GT/s x16 at most"
    assert (second.name, second.link) == ("Double 41", None)
    assert first.has_watchdog
    assert not first.registers_read_only
    assert not first.is_mig
    assert replace(first, name="NVIDIA A100-SXM4-40GB MIG 1g.5gb").is_mig


def test_the_release_of_the_driver(driver_double: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert driver_release(str(driver_double)) == "570.86.10"
    assert driver_release("no-such-library.so") is None
    monkeypatch.setenv("DOUBLE_PROBLEM", "999")
    assert driver_release(str(driver_double)) is None


@pytest.mark.parametrize(
    ("variable", "value", "words"),
    [
        ("DOUBLE_PROBLEM", "100", "no CUDA-capable device"),
        ("DOUBLE_PROBLEM", "999", "cuInit: error 999"),
        ("DOUBLE_EMPTY", "1", "finds no GPU"),
    ],
)
def test_a_driver_in_trouble(
    driver_double: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, words: str
) -> None:
    monkeypatch.setenv(variable, value)
    driver = ask_driver(str(driver_double))
    assert not driver.gpus
    assert words in str(driver.problem)
    assert driver.version == "CUDA 12.9"


def test_no_driver(bus: Path, tmp_path: Path) -> None:
    assert unclaimed_gpus(bus) == ["0000:0a:40.0"]
    assert "there is an NVIDIA GPU" in str(ask_driver("no-such-library.so", bus).problem)
    nowhere = ask_driver("no-such-library.so", tmp_path / "none")
    assert "there is no NVIDIA driver" in str(nowhere.problem)
    assert nowhere.version is None
