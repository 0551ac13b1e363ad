"""The tree: links, mapping and wheel agree, packages import one way, lines can be read."""

import ast
import shutil
import sys
import tomllib
import zipfile
from importlib import import_module, resources
from pathlib import Path

import pytest

from tests.support import children
from tests.support.packages import ROOT, SOURCES, TOP, files, import_graph, imports, layers, modules

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SETUPTOOLS = PYPROJECT["tool"]["setuptools"]
MOST_COLUMNS = 100


def packages() -> dict[str, Path]:
    """Every folder that holds modules of the program, by import name."""
    return {name: path.parent for name, path in modules().items() if path.name == "__init__.py"}


@pytest.mark.parametrize(("package", "directory"), SETUPTOOLS["package-dir"].items())
def test_import_name_and_directory_are_one_place(package: str, directory: str) -> None:
    module = import_module(package)
    assert Path(str(module.__file__)).resolve().parent == (ROOT / directory).resolve()


def test_every_folder_is_a_package_that_is_built() -> None:
    assert set(SETUPTOOLS["packages"]) == set(packages())
    for path in modules().values():
        assert path.parent in packages().values(), f"{path}: its folder has no __init__.py"


def test_package_data() -> None:
    assert resources.files("oocbfs.formats").joinpath("FORMAT.md").is_file()
    assert resources.files("oocbfs.kernels").joinpath("bfs/top_down.cu").is_file()


def test_wheel_holds_every_module_and_source(tmp_path: Path) -> None:
    # In a copy: a build leaves build/lib behind, which would bring deleted modules back.
    source = tmp_path / "source"
    source.mkdir()
    for name in (*TOP, "pyproject.toml", "setup.py", "README.md", "LICENSE"):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, symlinks=True)
        else:
            shutil.copy(ROOT / name, source / name)
    command = f"{sys.executable} -m pip wheel --quiet --no-deps --no-build-isolation"
    children.run([*command.split(), "--wheel-dir", tmp_path, source], check=True)
    (wheel,) = tmp_path.glob("oocbfs-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    for package, folder in packages().items():
        for path in folder.iterdir():
            if path.suffix in SOURCES:
                assert f"{package.replace('.', '/')}/{path.name}" in names
    assert {"oocbfs/py.typed", "oocbfs/formats/FORMAT.md"} <= names


def test_folders_import_one_way() -> None:
    graph = import_graph()
    assert len(graph) > 20
    layers(graph)  # which refuses circles
    for package, imported in graph.items():
        if package.startswith(("oocbfs.formats", "oocbfs.kernels")):
            allowed = ("oocbfs.errors", "oocbfs.formats", "oocbfs.kernels")
            assert all(name.startswith(allowed) for name in imported), (package, imported)
        if package.startswith("oocbfs.kernels"):
            assert not any(name.startswith("oocbfs.formats") for name in imported), package
        if package not in ("oocbfs.cli", "oocbfs.tools"):
            assert "oocbfs.tools" not in imported, package


def is_set_on_self(node: ast.Attribute) -> bool:
    return isinstance(node.ctx, ast.Store) and ast.unparse(node.value) in ("self", "cls")


def test_one_module_knows_what_numba_may_change() -> None:
    """Its modules that are not documented, and attributes that begin with an underscore."""
    known = modules()
    trees = {name: ast.parse(path.read_text()) for name, path in known.items()}
    own = {"_asdict", "_at_fork_reinit", "_fields", "_replace"}  # of named tuples and locks
    for node in (node for tree in trees.values() for node in ast.walk(tree)):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            own.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            own.add(node.id)
        elif isinstance(node, ast.Attribute) and is_set_on_self(node):
            own.add(node.attr)
    wrong = []
    for name, tree in trees.items():
        if name == "oocbfs.kernels.internals":
            continue
        hidden = (
            module
            for module in imports(known[name])
            if module.startswith(("numba.core", "numba.np", "llvmlite"))
        )
        wrong += [f"{name} imports {module}" for module in hidden]
        if name.startswith("oocbfs.kernels"):
            attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
            private = {a for a in attributes if a.startswith("_") and not a.startswith("__")}
            wrong += [f"{name} uses {attribute}" for attribute in private - own]
    assert not wrong


def test_planners_import_no_engine() -> None:
    engines = {"oocbfs.disk", "oocbfs.gpu", "oocbfs.search", "oocbfs.batch"}
    assert not engines & import_graph()["oocbfs.plan"]


def test_circles_are_found() -> None:
    with pytest.raises(ValueError, match="cycle"):
        layers({"a": {"b"}, "b": {"c"}, "c": {"a"}})


def test_lines_are_of_a_width_to_be_read() -> None:
    found = (path for path in (ROOT / "scripts").rglob("*") if path.is_file())
    scripts = [path for path in found if path.suffix not in (".pyc", ".md")]
    wide = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in (*files(*SOURCES), *scripts)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > MOST_COLUMNS
    ]
    assert not wide


def test_tests_import_from_no_test_module() -> None:
    for path in (ROOT / "tests").rglob("*.py"):
        for line in path.read_text().splitlines():
            if line.lstrip().startswith(("from tests", "import tests")):
                assert "test_" not in line, f"{path.name}: {line}"
