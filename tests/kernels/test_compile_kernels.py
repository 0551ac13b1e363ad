"""What is compiled before tests start is everything that is compiled."""

import re
import sys
from pathlib import Path

from tests.support import children
from tests.support.compile_kernels import PARTS

ROOT = Path(__file__).parents[2]
FOLDERS = {folder for part in PARTS for folder in part}


def test_every_kernel_belongs_to_a_part() -> None:
    compiled = [
        path for path in (ROOT / "kernels").glob("*/*.py") if "@compiled(" in path.read_text()
    ]
    loading = [
        path
        for top in ("oocbfs", "kernels")
        for path in (ROOT / top).glob("*/*.py")
        if re.search(r"^def load\(", path.read_text(), re.MULTILINE)
    ]
    assert len(compiled) >= 15
    assert len(loading) >= 6
    for path in {*compiled, *loading}:
        names = path.parent.relative_to(ROOT).parts
        folder = ".".join(names if names[0] == "oocbfs" else ("oocbfs", *names))
        assert folder in FOLDERS, path
    assert sorted(folder for part in PARTS for folder in part) == sorted(FOLDERS)


def test_nothing_is_left_to_compile(tmp_path: Path) -> None:
    """A search after the parts finds all kernels in the cache."""
    code = """
import sys
from oocbfs.kernels.cache import _KernelCache
from tests.support.compile_kernels import PARTS, compile_part
saved = []
save = _KernelCache.save_overload
_KernelCache.save_overload = lambda *arguments: saved.append(arguments[0]) or save(*arguments)
for number in range(len(PARTS)):
    compile_part(number)
saved.clear()
import numpy as np
import oocbfs
path = sys.argv[1]
oocbfs.convert(np.array([[0, 1], [1, 2]]), path)
with oocbfs.open(path) as graph:
    for engine in ("cpu", "disk"):
        graph.bfs(0, engine=engine, parents=True, validate=True)
        graph.components(engine=engine)
        list(graph.bfs_many([0] * 70, emit="levels", engine="cpu"))
print(len(saved))
"""
    command = [sys.executable, "-c", code, str(tmp_path / "g.ocg")]
    done = children.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "0\n"
