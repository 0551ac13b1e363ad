"""The checkout's links, pyproject's mapping and the installed package agree."""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from importlib import resources
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
MAPPING = PYPROJECT["tool"]["setuptools"]["package-dir"]


@pytest.mark.parametrize(("package", "directory"), MAPPING.items())
def test_import_name_and_directory_are_one_place(package: str, directory: str) -> None:
    module = __import__(package, fromlist=["__file__"])
    assert Path(str(module.__file__)).resolve().parent == (ROOT / directory).resolve()


def test_package_data() -> None:
    assert resources.files("oocbfs.formats").joinpath("FORMAT.md").is_file()
    assert resources.files("oocbfs.kernels").joinpath("bfs/top_down.cu").is_file()


def test_wheel_holds_every_module(tmp_path: Path) -> None:
    # In a copy: a build leaves build/lib behind, which would bring deleted modules back.
    source = tmp_path / "source"
    source.mkdir()
    for name in ("oocbfs", "kernels", "formats", "tools", "pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, symlinks=True)
        else:
            shutil.copy(ROOT / name, source / name)
    command = f"{sys.executable} -m pip wheel --quiet --no-deps --no-build-isolation"
    subprocess.run([*command.split(), "--wheel-dir", tmp_path, source], check=True)
    (wheel,) = tmp_path.glob("oocbfs-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for package, directory in MAPPING.items():
        for module in (ROOT / directory).rglob("*.py"):
            assert f"{package.replace('.', '/')}/{module.relative_to(ROOT / directory)}" in names
    for pattern in ("*/*.cu", "*/*.cuh", "emulator/*.h", "emulator/*.cpp"):
        for path in (ROOT / "kernels").glob(pattern):
            assert f"oocbfs/{path.relative_to(ROOT)}" in names
    assert {"oocbfs/py.typed", "oocbfs/formats/FORMAT.md"} <= names


def test_imports_go_one_way() -> None:
    """Formats and kernels know nothing of the folders above them but the errors."""
    for folder in ("formats", "kernels"):
        for module in (ROOT / folder).rglob("*.py"):
            for line in module.read_text().splitlines():
                if line.strip().startswith(("from oocbfs", "import oocbfs")):
                    allowed = ("oocbfs.errors", "oocbfs.formats", "oocbfs.kernels")
                    assert line.split()[1].startswith(allowed), f"{module.name}: {line}"
    for module in (ROOT / "oocbfs").rglob("*.py"):
        if module.name != "cli.py":
            assert "oocbfs.tools" not in module.read_text(), module.name
