"""Which package imports which: ``python -m tests.support.packages`` prints it.

Imports inside functions and for type checkers count like all others. A package is a folder here;
modules that lie beside the folders are packages of their own.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Import names and the folders they stand for, the longest first.
IMPORT_NAMES = {
    "oocbfs.kernels": "kernels",
    "oocbfs.formats": "formats",
    "oocbfs.tools": "tools",
    "oocbfs": "oocbfs",
}
TOP = ("oocbfs", "kernels", "formats", "tools")
SOURCES = {".py", ".cu", ".cuh", ".h", ".cpp"}
# More than this is worth a look.
MANY_LINES = 350
MANY_FILES = 20
Graph = dict[str, set[str]]


def modules() -> dict[str, Path]:
    """Return every module of the program by its import name."""
    found: dict[str, Path] = {}
    for package, folder in IMPORT_NAMES.items():
        for path in sorted((ROOT / folder).rglob("*.py")):
            inside = path.relative_to(ROOT / folder)
            if (ROOT / folder / inside.parts[0]).is_symlink():
                continue
            parts = [part for part in inside.with_suffix("").parts if part != "__init__"]
            found[".".join([package, *parts])] = path
    return found


def imports(path: Path) -> Iterator[str]:
    """Yield the names that a module imports, wherever in it that stands."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def package_of(module: str) -> str:
    """Return the package of a module: its folder below the top, or itself if it is in none."""
    top = next(name for name in IMPORT_NAMES if f"{module}.".startswith(f"{name}."))
    inside = module[len(top) + 1 :].split(".")
    folder = ROOT / IMPORT_NAMES[top] / inside[0]
    if top == "oocbfs.tools" or not inside[0]:
        return top
    return f"{top}.{inside[0]}" if folder.is_dir() or top == "oocbfs" else top


def import_graph() -> Graph:
    """Return the packages that each package imports."""
    known = modules()
    graph: Graph = {}
    for module, path in known.items():
        package = package_of(module)
        found = graph.setdefault(package, set())
        for name in imports(path):
            # What is imported may be a module, or something in one.
            target = name if name in known else name.rpartition(".")[0]
            if target in known and package_of(target) != package:
                found.add(package_of(target))
    return graph


def layers(graph: Graph) -> list[list[str]]:
    """Sort packages so that each imports only packages of earlier layers.

    Raises
    ------
    CycleError
        If packages import each other in a circle.
    """
    sorter = TopologicalSorter(graph)
    sorter.prepare()
    found = []
    while sorter.is_active():
        ready = sorted(sorter.get_ready())
        found.append(ready)
        sorter.done(*ready)
    return found


def files(*suffixes: str) -> list[Path]:
    """Every file of the checkout that is not made by running something, and is no link."""
    found = [
        path
        for top in (*TOP, "tests", "scripts")
        for path in (ROOT / top).rglob("*")
        if path.is_file() and (not suffixes or path.suffix in suffixes)
        if "__pycache__" not in path.parts
        if not any(parent.is_symlink() for parent in path.parents)
    ]
    assert len(found) > 20
    return found


def large() -> Iterator[str]:
    """Yield what may be two things: long files, and folders of many files."""
    for path in files(*SOURCES):
        if (count := len(path.read_text().splitlines())) > MANY_LINES:
            yield f"{path.relative_to(ROOT)}: {count} lines"
    folders = Counter(path.parent for path in files())
    for folder, count in folders.items():
        if count > MANY_FILES:
            yield f"{folder.relative_to(ROOT)}: {count} files"


def main() -> None:
    """Print the layers from the bottom up, what each package imports, and what is large."""
    graph = import_graph()
    try:
        found = layers(graph)
    except CycleError as error:
        raise SystemExit(f"packages import each other: {' -> '.join(error.args[1])}") from error
    for number, packages in enumerate(found):
        print(f"layer {number}")
        for package in packages:
            print(f"  {package:<26} {' '.join(sorted(graph.get(package, ())))}".rstrip())
    for line in sorted(large()):
        print(f"large: {line}")


if __name__ == "__main__":
    main()
