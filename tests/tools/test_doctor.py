"""What ``oocbfs doctor`` finds, with nothing and with a driver."""

from __future__ import annotations

import json
import re
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest

from oocbfs.doctor import Finding, examine
from tests.support import children
from tests.support.command_line import run


def test_every_missing_part_says_what_it_enables_and_how_to_get_it(tmp_path: Path) -> None:
    """With no packages but ours, no compiler and no driver."""
    code = (
        "import json; from oocbfs.doctor import examine;"
        "print(json.dumps([vars(f) for f in examine('no-such-library.so')]))"
    )
    package = Path(__file__).parents[2]
    done = children.run(
        [
            sys.executable,
            "-I",
            "-S",
            "-c",
            f"import sys; sys.path.insert(0, {str(package)!r}); {code}",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": str(tmp_path)},
    )
    findings = {finding["part"]: finding for finding in json.loads(done.stdout)}
    assert findings["CPU"]["found"]
    assert findings["RAM"]["found"]
    assert findings["memory lock limit"]["found"]
    missing = {part for part, finding in findings.items() if not finding["found"]}
    assert missing == {
        "cpu engine",
        "CuPy",
        "NVRTC",
        "CUDA headers",
        "NVIDIA driver",
        "C++ compiler",
        "matplotlib",
        "argcomplete",
        "pyarrow",
        "pandas",
        "scipy",
        "distributed",
        "mpi4py",
    }
    for part in missing:
        assert findings[part]["enables"]
        assert findings[part]["get"]


def test_gpus_are_listed(driver_double: Path) -> None:
    findings = {finding.part: finding.found for finding in examine(str(driver_double))}
    assert findings["NVIDIA driver"] == "CUDA 12.9"
    assert str(findings["GPU 0"]).startswith("Double 40, 40.0 GB, compute capability 8.6, PCIe")
    assert "GPU 1" in findings


@pytest.mark.parametrize(
    ("builds", "words"),
    [
        (["cupy-cuda12x", "cupy-cuda11x"], "keep one of"),
        (["cupy-rocm-5-0"], "replace cupy-rocm-5-0"),
        (["cupy-cuda12x"], None),
    ],
)
def test_cupy_builds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, builds: list[str], words: str | None
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    (tmp_path / "cupy.py").touch()
    for build in builds:
        folder = tmp_path / f"{build.replace('-', '_')}-14.0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {build}\nVersion: 14.0\n")
    cupy = next(finding for finding in examine("no-such-library.so") if finding.part == "CuPy")
    if words is None:
        assert cupy.found == "cupy-cuda12x 14.0"
    else:
        assert cupy.found is None
        assert words in cupy.get


def test_headers_are_looked_for_as_cupy_does(monkeypatch: pytest.MonkeyPatch) -> None:
    core = pytest.importorskip("cupy._core.core", reason="cupy-cuda12x is not installed")

    def headers() -> Finding:
        found = examine("no-such-library.so")
        return next(finding for finding in found if finding.part == "CUDA headers")

    assert f"-I{headers().found}" in core.assemble_cupy_compiler_options(())
    monkeypatch.setattr("cuda.pathfinder.find_nvidia_header_directory", lambda _: None)
    assert headers().found is None
    assert "pip install nvidia-cuda-runtime-cu12" in headers().get


def test_the_extra_brings_headers() -> None:
    """With this extra comes CuPy; no toolkit must be needed besides."""
    pytest.importorskip("cupy", reason="cupy-cuda12x is not installed")
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())
    wheels = [
        distribution(re.split("[<>=]", requirement)[0])
        for requirement in project["project"]["optional-dependencies"]["gpu"]
    ]
    assert any(file.name == "cuda_runtime.h" for wheel in wheels for file in wheel.files or ())


def test_verb() -> None:
    shown = run("doctor")
    assert shown.returncode == 0, shown.stderr
    assert "CPU" in shown.stdout
    found = json.loads(run("doctor", "--json").stdout)["findings"]
    assert {"part", "found", "enables", "get", "values"} == set(found[0])
