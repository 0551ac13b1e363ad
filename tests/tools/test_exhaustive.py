"""The choice of combinations that stands for a whole crossing, and the script's flag for all."""

import itertools
import os
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tests.support import children
from tests.support.exhaustive import pairwise

SCRIPT = Path(__file__).parents[2] / "scripts" / "test"


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5))
def test_every_pair_of_values_meets(sizes: list[int]) -> None:
    options = [
        [f"{name}{i}" for i in range(size)] for name, size in zip("abcde", sizes, strict=False)
    ]
    chosen = pairwise(*options)
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) <= set(itertools.product(*options))
    for first, second in itertools.combinations(range(len(options)), 2):
        pairs = {(combination[first], combination[second]) for combination in chosen}
        assert pairs == set(itertools.product(options[first], options[second]))
    assert {value for combination in chosen for value in combination} == set().union(*options)


def test_few_stand_for_many() -> None:
    chosen = pairwise(range(4), range(3), range(3), range(2), range(2))
    assert len(chosen) <= 14  # of 144
    assert chosen == pairwise(range(4), range(3), range(3), range(2), range(2))


def test_the_script_takes_its_flag_away(tmp_path: Path) -> None:
    """In a copy whose environment and Python only tell what they were given."""
    (tmp_path / "test").write_bytes(SCRIPT.read_bytes())
    (tmp_path / "environment").write_text("set -euo pipefail\n")
    python = tmp_path / "python"
    told = "os.environ.get('OOCBFS_TEST_ALL'), sys.argv[1:]"
    python.write_text(f"#!{sys.executable}\nimport os, sys\nprint({told})")
    python.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    environment.pop("OOCBFS_TEST_ALL", None)

    def run(*arguments: str) -> str:
        command = ["bash", str(tmp_path / "test"), *arguments]
        return children.run(
            command, env=environment, capture_output=True, text=True, check=True
        ).stdout

    given = ["-m", "pytest", "--numprocesses", "auto", "--dist", "worksteal"]
    assert run() == f"None {given}\n"
    assert run("-k", "a b") == f"None {[*given, '-k', 'a b']}\n"
    longer = ["--override-ini", "faulthandler_timeout=3600"]
    assert run("-x", "--all", "-k", "a b") == f"1 {[*given, '-x', *longer, '-k', 'a b']}\n"
