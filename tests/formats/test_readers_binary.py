"""Binary formats: serialized graphs, numpy arrays, sparse matrices and raw pairs."""

from __future__ import annotations

import gzip
import io
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from oocbfs.errors import InputError
from oocbfs.formats.edges import Declared
from oocbfs.formats.readers.open import open_edges
from tests.support.reading import read, refuse
from tests.support.strategies import Pairs


def serialized(matrix: sparse.csr_array, directed: bool) -> bytes:
    data = struct.pack("<?qq", directed, matrix.nnz, matrix.shape[0])
    for side in [matrix, matrix.T.tocsr()][: 1 + directed]:
        data += side.indptr.astype("<i8").tobytes() + side.indices.astype("<i4").tobytes()
    return data


@st.composite
def matrices(draw: st.DrawFn) -> sparse.csr_array:
    size = draw(st.integers(1, 12))
    cells = draw(st.lists(st.booleans(), min_size=size * size, max_size=size * size))
    return sparse.csr_array(np.array(cells, np.int8).reshape(size, size))


def pairs(matrix: Any) -> Pairs:
    entries = matrix.tocoo()
    return sorted(zip(entries.row.tolist(), entries.col.tolist(), strict=True))


@settings(max_examples=40, deadline=None)
@given(matrix=matrices(), directed=st.booleans(), packed=st.booleans())
def test_serialized_graphs(
    tmp_path_factory: pytest.TempPathFactory, matrix: sparse.csr_array, directed: bool, packed: bool
) -> None:
    data = serialized(matrix, directed)
    path = tmp_path_factory.mktemp("sg") / "g"
    path.write_bytes(gzip.compress(data) if packed else data)
    found, declared = read(path)
    assert sorted(found) == pairs(matrix)
    assert declared == Declared(directed, 0, matrix.shape[0])
    for end in {9, 17, len(data) // 2, len(data) - 1}:
        refuse(path, gzip.compress(data[:end]) if packed else data[:end], "ends early", "sg")
    refuse(path, data + b"\0", "more bytes", "sg")


@settings(max_examples=40, deadline=None)
@given(matrix=matrices(), layout=st.sampled_from(["csr", "csc", "coo"]), packed=st.booleans())
def test_sparse_matrices(
    tmp_path_factory: pytest.TempPathFactory, matrix: sparse.csr_array, layout: str, packed: bool
) -> None:
    path = tmp_path_factory.mktemp("npz") / "g.npz"
    sparse.save_npz(path, matrix.asformat(layout), compressed=packed)
    found, declared = read(path)
    assert sorted(found) == pairs(matrix)
    assert declared == Declared(None, 0, matrix.shape[0])


SHAPES: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "rows": np.ascontiguousarray,
    "rows by columns": np.asfortranarray,
    "columns": lambda array: np.ascontiguousarray(array.T),
    "columns by columns": lambda array: np.asfortranarray(array.T),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["<u8", ">i4", "u1", "<i8"])
def test_arrays(tmp_path: Path, shape: str, kind: str) -> None:
    edges = [(1, 2), (3, 4), (5, 250 if kind == "u1" else 2**31 - 1)]
    array = SHAPES[shape](np.array(edges, kind))
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "a.npz", edge_index=array)
    np.savez_compressed(tmp_path / "b.npz", dst=array.reshape(-1)[:0], src=array.reshape(-1)[:0])
    packed = tmp_path / "packed"
    packed.write_bytes(gzip.compress((tmp_path / "a.npy").read_bytes()))
    for path in (tmp_path / "a.npy", tmp_path / "a.npz", packed):
        assert read(path) == (edges, Declared())
    assert read(tmp_path / "b.npz") == ([], Declared())


def test_arrays_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"

    def saved(array: object) -> bytes:
        out = io.BytesIO()
        np.save(out, np.asarray(array))
        return out.getvalue()

    refuse(path, saved([[1.0, 2.0]]), "float64: vertex ids are whole numbers")
    refuse(path, saved([[1, -2]]), "negative vertex id -2")
    refuse(path, saved([1, 2]), r"shape \(2,\)")
    refuse(path, saved([[1, 2, 3]]), r"shape \(1, 3\)")
    refuse(path, saved([[1, 2]])[:-1], "truncated")
    refuse(path, saved([[1, 2]]) + b"x", "more bytes")
    refuse(path, saved([[1, 2]])[:20], "not a numpy array")
    npz = tmp_path / "a.npz"
    np.savez(npz, a=[1], b=[2], c=[3])
    with pytest.raises(InputError, match="arrays a, b, c: need one edge array"):
        read(npz)
    np.savez(npz, src=[1, 2], dst=[2])
    with pytest.raises(InputError, match="need the same length"):
        read(npz)
    sparse.save_npz(npz, sparse.csr_array(np.ones((2, 3))))
    with pytest.raises(InputError, match="not square"):
        read(npz)


SPARSE = {"indptr": [0, 1, 1], "indices": [1], "data": [1], "format": b"csr", "shape": [2, 2]}


@pytest.mark.parametrize(
    "odd",
    [
        {"format": [b"csr", b"csc"], "shape": [2]},
        {"format": 7},
        {"format": 1.5},
        {"format": []},
        {"format": np.array("\u20ac", "U1")},
        {"format": np.array("x" * 70_000)},
        {"shape": 2},
        {"shape": [2.0, 2.0]},
        {"shape": ["a", "b"]},
        {"shape": []},
        {"shape": [[2, 2], [2, 2]]},
        {"shape": [-2, -2]},
        {"shape": np.array([2**64 - 1] * 2, np.uint64)},
        {"shape": np.zeros(2, [("a", "i4")])},
        {"indptr": [[0, 1, 1]]},
        {"indices": 1},
    ],
    ids=str,
)
def test_odd_sparse_matrices_are_refused(tmp_path: Path, odd: dict[str, Any]) -> None:
    path = tmp_path / "a.npz"
    np.savez(path, **{**SPARSE, **odd})
    with pytest.raises(InputError, match=r"a\.npz"):
        read(path)


@pytest.mark.parametrize(
    "header",
    [
        "{'descr': '<i8', 'fortran_order': False, 'shape': (-4, 2)}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (9000000000000000000, 2)}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2, 1" + 400 * "0" + ")}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': 2}",
        "{'descr': '<i8', 'fortran_order': False, 'shape': ('2', 2)}",
        "{'descr': (), 'fortran_order': False, 'shape': (1, 2)}",
        "{'descr': [], 'fortran_order': False, 'shape': (1, 2)}",
        "{'descr': [1], 'fortran_order': False, 'shape': (1, 2)}",
        "{'descr': ('<i8', (2**70,)), 'fortran_order': False, 'shape': (1, 2)}",
        "{'descr': {}, 'fortran_order': False, 'shape': (1, 2)}",
        "{'descr': '|O', 'fortran_order': False, 'shape': (1, 2)}",
        "{'descr': '|S0', 'fortran_order': False, 'shape': (1, 2)}",
        "{'descr': '<i8', 'fortran_order': 0, 'shape': (1, 2)}",
        "{1: 2, 'a': 3}",
        "{[]: 2}",
        "(" * 300,
        "'" * 3,
        "\\",
        "",
    ],
)
def test_odd_headers_are_refused(tmp_path: Path, header: str) -> None:
    text = header.encode() + b"\n"
    for version, length in ((1, struct.pack("<H", len(text))), (2, struct.pack("<I", len(text)))):
        data = b"\x93NUMPY" + bytes([version, 0]) + length + text + bytes(64)
        (tmp_path / "a.npy").write_bytes(data)
        with pytest.raises(InputError, match=r"a\.npy"):
            read(tmp_path / "a.npy")


@pytest.mark.parametrize("width", [4, 8])
def test_raw_pairs(tmp_path: Path, width: int) -> None:
    path = tmp_path / "raw"
    edges = np.random.default_rng(1).integers(0, 2 ** (8 * width - 1), (600_000, 2))
    path.write_bytes(edges.astype(f"<u{width}").tobytes())
    stream = open_edges([path], format=f"u{8 * width}")
    batches = list(stream.batches())
    assert np.array_equal(np.concatenate([b.sources for b in batches]), edges[:, 0])
    assert np.array_equal(np.concatenate([b.targets for b in batches]), edges[:, 1])
    assert len(batches) > 1
    refuse(path, bytes(4 * width - 1), "not a multiple of", f"u{8 * width}")
