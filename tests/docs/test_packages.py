"""Packages: an sdist holds all of the checkout, and what is built from it installs and runs."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

import oocbfs
from oocbfs.kernels import internals
from tests.support import children
from tests.support.exhaustive import ALL
from tests.support.packages import ROOT
from tests.support.shared import SharedGraphs

LINKS = {"oocbfs/formats", "oocbfs/kernels", "oocbfs/tools"}
# What a checkout has and an sdist need not.
LEFT_OUT = (".ci/", ".gitignore", ".venv/")
MADE = shutil.ignore_patterns(
    *(".git", ".venv", "__pycache__", "build", "dist", "demo", "bench", "site", "*.egg-info"),
    *(".hypothesis", ".*_cache"),
)
# Nothing is fetched: what packages need is here already.
OFFLINE = {
    "PIP_NO_DEPS": "1",
    "PIP_NO_INDEX": "1",
    "PIP_NO_BUILD_ISOLATION": "0",  # pip reads this one the other way round
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    "PYTHONPATH": "",
}


def run(*command: object, cwd: Path, **environment: str) -> str:
    words = [str(word) for word in command]
    environment = {**os.environ, **OFFLINE, **environment}
    done = children.run(words, check=False, cwd=cwd, env=environment, capture_output=True)
    assert done.returncode == 0, (words, done.stdout.decode(), done.stderr.decode())
    return done.stdout.decode()


def build(folder: Path) -> tuple[Path, Path]:
    """Copy the checkout, in which a build leaves files behind, and build the sdist there."""
    checkout, made = folder / "checkout", folder / "sdist"
    shutil.copytree(ROOT, checkout, symlinks=True, ignore=MADE)
    code = f"from setuptools import build_meta; build_meta.build_sdist({str(made)!r})"
    run(sys.executable, "-c", code, cwd=checkout)
    (path,) = made.iterdir()
    return checkout, path


@pytest.fixture(scope="module")
def built(shared_graphs: SharedGraphs) -> tuple[Path, Path]:
    paths: tuple[Path, Path] = shared_graphs.once("packages", build)
    return paths


@pytest.fixture(scope="module")
def checkout(built: tuple[Path, Path]) -> Path:
    return built[0]


@pytest.fixture(scope="module")
def sdist(built: tuple[Path, Path]) -> Path:
    return built[1]


def make_environment(folder: Path) -> Path:
    """Make an environment that finds what is installed here but oocbfs; return its programs."""
    run(sys.executable, "-m", "venv", "--without-pip", folder, cwd=folder.parent)
    (packages,) = folder.glob("lib/python*/site-packages")
    ours = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (packages / "ours.pth").write_text("\n".join(ours))
    programs = folder / "bin"
    # The pip that is here already: to install another takes longer than all else.
    make_program(programs / "pip", programs / "python", "-m", "pip")
    return programs


def make_program(path: Path, *command: object) -> None:
    """Make a program that runs a command with the arguments it is given."""
    path.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, command))} "$@"\n')
    path.chmod(0o755)


def check_installation(programs: Path, folder: Path) -> None:
    """Use what was installed, away from the checkout."""
    code = (
        "import json, oocbfs, oocbfs.kernels, oocbfs.tools, networkx; "
        "from importlib.metadata import metadata; "
        "print(json.dumps([oocbfs.__file__, oocbfs.kernels.__file__, oocbfs.tools.__file__, "
        "*networkx.config.backends, metadata('oocbfs')['Version']]))"
    )
    found = json.loads(run(programs / "python", "-c", code, cwd=folder))
    for path in found[:3]:
        assert Path(path).is_relative_to(programs.parent)
    assert found[3:] == ["oocbfs", oocbfs.__version__]
    shutil.copy(ROOT / "tests/golden/worked.ocg", folder / "g.ocg")
    info = json.loads(run(programs / "oocbfs", "info", "g.ocg", "--json", cwd=folder))
    assert info["edges"] > 0
    # Sources of CUDA kernels are data of the package.
    code = (
        "from oocbfs.kernels.cuda.source import KERNELS, sources; "
        "assert all(path.is_file() for path in sources(KERNELS))"
    )
    run(programs / "python", "-c", code, cwd=folder)
    if ALL:  # compiles kernels anew
        run(programs / "oocbfs", "bfs", "g.ocg", "--source", "@largest", cwd=folder)


def test_the_sdist_holds_the_checkout(checkout: Path, sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        members = {m.name.partition("/")[2]: m for m in archive.getmembers() if not m.isdir()}
    assert {name for name, member in members.items() if member.issym()} == LINKS
    for name in LINKS:
        assert members[name].linkname == os.readlink(ROOT / name)
    there = {
        str(path.relative_to(checkout))
        for path in checkout.rglob("*")
        if path.is_symlink() or path.is_file()
        if "egg-info" not in str(path)
    }
    assert {name for name in there if not name.startswith(LEFT_OUT)} <= set(members)


@pytest.mark.long
def test_what_the_sdist_builds_installs_and_runs(sdist: Path, tmp_path: Path) -> None:
    pip = [sys.executable, "-m", "pip"]
    run(*pip, "wheel", "--wheel-dir", tmp_path, sdist, cwd=tmp_path)
    (wheel,) = tmp_path.glob("oocbfs-*.whl")
    programs = make_environment(tmp_path / "environment")
    run(programs / "pip", "install", wheel, cwd=tmp_path)
    check_installation(programs, tmp_path)
    # What is unpacked is a checkout again, in which tests run.
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.glob("oocbfs-*/pyproject.toml")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
    run(*command, "tests/docs/test_layout.py", "-k", "one_place", cwd=unpacked.parent)


@pytest.mark.long
def test_the_steps_of_the_dockerfile(checkout: Path, tmp_path: Path) -> None:
    """Each step by itself, in an empty folder: there is no Docker here that could do it."""
    text = (ROOT / "scripts/Dockerfile").read_text().replace("\\\n", "")
    ignored = (ROOT / "scripts/Dockerfile.dockerignore").read_text().split()
    programs = make_environment(tmp_path / "environment")
    root = tmp_path / "root"
    work = root
    environment = {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    entry: list[str] = []
    for line in text.splitlines():
        step, _, rest = line.partition(" ")
        if step == "WORKDIR":
            work = root / rest.lstrip("/")
            work.mkdir(parents=True, exist_ok=True)
        elif step == "COPY":
            *names, target = rest.split()
            for name in names:
                assert f"!{name}" in ignored, f"{name} is not sent to Docker"
                if (checkout / name).is_dir():
                    # Links are copied as links.
                    shutil.copytree(checkout / name, work / target, symlinks=True)
                else:
                    shutil.copy(checkout / name, work / target)
        elif step == "RUN":
            run("sh", "-c", rest.replace(" /", f" {root}/"), cwd=work, **environment)
        elif step in ("ENTRYPOINT", "CMD"):
            entry += json.loads(rest)
        elif step == "ENV":
            name, _, value = rest.partition("=")
            environment[name] = str(root / value.lstrip("/"))
        else:
            assert step in ("", "#", "FROM", "VOLUME"), line
    assert "usage: oocbfs" in run(*entry, cwd=work, **environment)
    check_installation(programs, work)


def test_the_job_of_slurm(tmp_path: Path) -> None:
    """As SLURM would start it, and again after it was stopped."""
    job = ROOT / "scripts/slurm"
    options = re.findall(r"^#SBATCH --([\w-]+)", job.read_text(), re.MULTILINE)
    assert {"cpus-per-task", "mem", "time", "requeue"} <= set(options)
    oocbfs.convert([[0, 1], [1, 2], [2, 3]], tmp_path / "g.ocg")
    # The program of this environment, without installing it.
    make_program(tmp_path / "oocbfs", sys.executable, "-m", "oocbfs")
    environment = {
        "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "SLURM_CPUS_PER_TASK": "1",
        "SLURM_MEM_PER_NODE": "2000",
    }
    for _ in range(2):
        run(job, "g.ocg", "out", "--random", "3", cwd=tmp_path, **environment)
        assert len((tmp_path / "out/summary.csv").read_text().splitlines()) == 4


def test_the_citation_is_of_this_version() -> None:
    text = (ROOT / "CITATION.cff").read_text()
    citation = dict(re.findall(r"^([\w-]+): (.*)$", text, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["version"] == oocbfs.__version__
    assert citation["license"] == project["license"]
    assert citation["cff-version"] == "1.2.0"
    assert project["description"].lower() in citation["title"]


def bound(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))


def test_kernels_take_the_numba_that_is_asked_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = f"numba>={bound(internals.LOWEST)},<{bound(internals.BEYOND)}"
    assert asked in project["dependencies"]


@pytest.mark.parametrize("version", ["0.61.0", bound(internals.BEYOND), "1.0.0dev0+3.gabc"])
def test_another_numba_is_refused_in_one_line(version: str) -> None:
    program = (
        "import numba, sys; numba.__version__ = sys.argv.pop(1); "
        "from oocbfs.cli import main; sys.exit(main())"
    )
    command = [sys.executable, "-c", program, version, "verify", ROOT / "tests/golden/worked.ocg"]
    done = children.run([*map(str, command)], capture_output=True, text=True)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"oocbfs: numba {version} is installed")
    assert "pip install 'numba>=" in line
