"""FORMAT.md says what the code does."""

import re
from pathlib import Path

import numpy as np
import pytest

import oocbfs
from oocbfs.formats.container import layout
from oocbfs.formats.container.layout import Kind
from oocbfs.formats.container.reader import Container

TEXT = (Path(__file__).parents[2] / "formats" / "FORMAT.md").read_text()
GOLDEN = Path(__file__).parents[1] / "golden" / "worked.ocg"


def table_under(title: str) -> list[list[str]]:
    lines = TEXT.split(f"### {title}\n")[1].split("\n#")[0].splitlines()
    rows = [line.strip("|").split("|") for line in lines if line.startswith("|")]
    return [[cell.strip() for cell in row] for row in rows[2:]]


@pytest.mark.parametrize(
    ("title", "dtype"),
    [
        ("Header", layout.HEADER),
        ("Section record", layout.SECTION),
        ("Chunk record", layout.CHUNK),
    ],
)
def test_tables_match_the_code(title: str, dtype: np.dtype[np.void]) -> None:
    documented = [(int(row[0]), row[1], row[2]) for row in table_under(title)]
    assert dtype.fields is not None
    actual = []
    for name, field in dtype.fields.items():
        shape = field[0].shape
        kind = field[0].subdtype[0] if field[0].subdtype else field[0]
        prefix = str(shape[0]) if shape else ""
        actual.append((field[1], prefix + kind.str.lstrip("<|"), name))
    assert documented == actual


def test_kinds_match_the_code() -> None:
    documented = {row[1]: int(row[0]) for row in table_under("Section kinds")}
    assert documented == {kind.name.lower(): int(kind) for kind in Kind}
    types = {row[1]: row[2].split(" ")[0] for row in table_under("Section kinds")[:9]}
    assert types == {Kind(k).name.lower(): layout.DTYPES[Kind(k)].lstrip("<") for k in range(1, 10)}


def test_sizes_and_limits_match_the_code() -> None:
    assert layout.HEADER.itemsize <= layout.SECTION_TABLE_OFFSET == 256
    assert layout.SECTION.itemsize == 64
    assert layout.PAGE_BYTES == 4096
    assert layout.CHUNK_BYTES == 2**20
    assert layout.SECTION_TABLE_OFFSET + layout.MAX_SECTIONS * 64 <= layout.PAGE_BYTES
    assert " ".join(f"{byte:02X}" for byte in layout.MAGIC) in TEXT


def test_worked_example_is_the_golden_file() -> None:
    shown = bytearray(GOLDEN.stat().st_size)
    for line in re.findall(
        r"^([0-9a-f]{8}): ((?:[0-9a-f]{2} ){15}[0-9a-f]{2})", TEXT, re.MULTILINE
    ):
        offset, data = int(line[0], 16), bytes.fromhex(line[1])
        shown[offset : offset + 16] = data
    assert bytes(shown) == GOLDEN.read_bytes()


def test_names_are_written_as_described(tmp_path: Path) -> None:
    path = tmp_path / "g.ocg"
    oocbfs.convert([("bobby", "alice"), ("alina", "bob")], path, ids="names")
    described = TEXT.split("one block of 19 bytes")[1].split("```")[1]
    lines = re.findall(r"^((?:[0-9a-f]{2} )+) ", described, re.MULTILINE)
    with Container(path) as container:
        assert container.section(Kind.NAMES).tobytes() == bytes.fromhex("".join(lines))
        assert container.section(Kind.NAME_STARTS).tolist() == [0, 19]
        assert container.version == 2


def test_worked_example_is_what_convert_writes(tmp_path: Path) -> None:
    edges = np.array([[10, 20], [20, 30], [30, 40], [40, 20]])
    oocbfs.convert(edges, tmp_path / "g.ocg", ids="compact", order="degree")
    assert (tmp_path / "g.ocg").read_bytes() == GOLDEN.read_bytes()
