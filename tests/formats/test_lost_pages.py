"""A file that is cut short while it is mapped is one clear line, wherever it is read."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import oocbfs
from oocbfs.errors import FormatError
from oocbfs.generate import generators
from oocbfs.settings import Settings
from tests.support import children

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="noticed on Linux only")


@pytest.fixture(scope="module")
def kron(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("lost") / "kron.ocg"
    oocbfs.convert(generators.kron(14), path)
    return path.read_bytes()


@pytest.mark.parametrize("share", [0.01, 0.3, 0.6, 0.95])
@pytest.mark.parametrize("engine", ["cpu", "disk"])
@pytest.mark.parametrize("before", [False, True], ids=["cold", "used"])
def test_search(tmp_path: Path, kron: bytes, share: float, engine: Any, before: bool) -> None:
    path = tmp_path / "g.ocg"
    path.write_bytes(kron)
    with oocbfs.open(path) as graph:
        if before:
            graph.bfs(1, engine=engine)
        os.truncate(path, int(share * len(kron)))
        with pytest.raises(FormatError, match=r"g\.ocg: cannot be read"):
            graph.bfs(1, engine=engine, options=Settings(direction="top-down"))
        with pytest.raises(FormatError, match=r"g\.ocg: cannot be read"):
            graph.bfs(1, engine=engine, options=Settings(direction="top-down"))


def test_other_questions(tmp_path: Path, kron: bytes) -> None:
    path = tmp_path / "g.ocg"
    path.write_bytes(kron)
    with oocbfs.open(path) as graph:
        hub = int(
            graph._stored.ids_of(
                np.flatnonzero(graph._stored.stored_degrees == graph._stored.stored_degrees.max())
            )[0]
        )
        graph.neighbors(hub)
        os.truncate(path, 4096)
        with pytest.raises(FormatError, match="cannot be read"):
            graph.neighbors(hub)
        with pytest.raises(FormatError, match="cannot be read"):
            list(graph.edges())


def test_other_bus_errors_stay_what_they_were(tmp_path: Path) -> None:
    """A mapping that is not ours still ends the process by the signal."""
    code = (
        "import mmap, oocbfs, numpy, sys\n"
        "oocbfs.convert(numpy.array([[0, 1]]), 'g.ocg')\n"
        "graph = oocbfs.open('g.ocg')\n"
        "file = open('other', 'w+b'); file.truncate(8192)\n"
        "mapping = mmap.mmap(file.fileno(), 8192); file.truncate(0)\n"
        "mapping[5000]\n"
    )
    done = children.run([sys.executable, "-c", code], cwd=tmp_path, check=False)
    assert done.returncode == -7
