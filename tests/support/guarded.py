"""Tests that guard sources which seldom change: they run when those have changed, and with --all.

``tests/golden/guarded.json`` has, for each group, the digest of the sources with which its tests
passed last. A change of these sources, by whomever, brings the tests back, until
``scripts/test --guards`` has seen all of the group pass and has written the new digest.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tests.support.exhaustive import ALL

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "tests" / "golden" / "guarded.json"
# Whether nothing else is run, so that the record can be written afterwards.
ALONE = os.environ.get("OOCBFS_TEST_GUARDS") == "1"


class Group(NamedTuple):
    """Sources, as patterns of paths, and the tests that guard them, as beginnings of their names.

    A group also guards its tests themselves.
    """

    sources: tuple[str, ...]
    tests: tuple[str, ...]


GROUPS = {
    "cuda": Group(
        (
            "kernels/*/*.cu",
            "kernels/*/*.cuh",
            "kernels/cuda/*.py",
            "kernels/emulator/*",
            "kernels/methods/*.py",
            "oocbfs/gpu/*.py",
            "oocbfs/devices/*.py",
            "oocbfs/engines/*.py",
            "oocbfs/first_contact/*.py",
            "oocbfs/methods/*.py",
            "tests/support/gpu/*.py",
            "tests/support/mutants/*.py",
        ),
        (
            "tests/devices/test_block_cyclic.py",
            "tests/devices/test_devices_engine.py::test_cuda",
            "tests/devices/test_devices_real.py",
            "tests/first_contact/test_caught.py",
            "tests/first_contact/test_contact.py::test_families_on_the_double",
            "tests/first_contact/test_families.py",
            "tests/gpu/test_cuda_engine.py",
            "tests/gpu/test_gpu_bfs.py::test_no_races",
            "tests/gpu/test_gpu_bfs.py::test_portable_fibers",
            "tests/gpu/test_gpu_bfs.py::test_variants",
            "tests/gpu/test_gpu_real.py",
            "tests/gpu/test_gpu_results.py::test_deep_levels",
            "tests/gpu/test_slow_bytes.py",
            "tests/gpu/test_small_cache.py",
            "tests/gpu/test_staging.py",
            "tests/gpu/test_verification.py",
            "tests/gpu/test_watchdog.py",
            "tests/kernels/test_decode.py",
            "tests/kernels/test_emulator.py",
            "tests/kernels/test_mutants.py",
            "tests/kernels/test_nvrtc.py",
            "tests/kernels/test_sanitizers.py",
            "tests/methods/test_claims.py",
            "tests/methods/test_levels.py",
            "tests/methods/test_method_nvrtc.py",
            "tests/methods/test_method_real.py",
            "tests/plan/test_cuts.py",
        ),
    ),
    "container": Group(
        (
            "formats/FORMAT.md",
            "formats/container/*.py",
            "kernels/gather.py",
            "kernels/rows.py",
            "kernels/varint.py",
            "oocbfs/graph/*.py",
            "tests/support/fuzzing/*.py",
        ),
        (
            "tests/formats/test_container.py::test_every_header_byte",
            "tests/formats/test_container.py::test_mutated",
            "tests/formats/test_fuzz.py::test_no_mutant",
        ),
    ),
    "inputs": Group(
        (
            "formats/readers/*.py",
            "formats/readers/webgraph/*.py",
            "formats/tables/*.py",
            "kernels/convert/*.py",
            "kernels/names/*.py",
            "oocbfs/conversion/*.py",
            "oocbfs/conversion/names/*.py",
        ),
        (
            "tests/conversion/test_convert_budget.py",
            "tests/conversion/test_faults.py",
            "tests/formats/test_readers_real.py",
            "tests/formats/test_round_trip.py::test_real_graph",
        ),
    ),
    "system": Group(
        (
            "formats/io/*.py",
            "formats/output/*.py",
            "kernels/parking.py",
            "kernels/threads.py",
            "oocbfs/arrays.py",
            "oocbfs/cli.py",
            "oocbfs/memory.py",
            "oocbfs/processes.py",
            "tests/support/faults/*",
            "tests/support/soak/*.py",
            "tests/support/threads/*.py",
        ),
        (
            "tests/kernels/test_threads.py::test_children_of_a_process",
            "tests/kernels/test_threads.py::test_interruptions_at_random",
            "tests/robustness/test_address_limits.py",
            "tests/robustness/test_failing_calls.py::test_a_call",
            "tests/robustness/test_failing_calls.py::test_every",
            "tests/robustness/test_signals.py",
            "tests/robustness/test_soak.py::test_a_few_runs",
            "tests/search/test_interrupts.py",
        ),
    ),
    "cluster": Group(
        (
            "kernels/shards/*.py",
            "oocbfs/batch/*.py",
            "oocbfs/cluster/*.py",
            "oocbfs/cluster/*/*.py",
            "oocbfs/workers/*.py",
            "tests/support/clusters/*.py",
        ),
        (
            "tests/batch/test_resume.py::test_killed",
            "tests/cluster/test_batch_of_shards.py::test_groups_on_ranks",
            "tests/cluster/test_batch_on_dask.py",
            "tests/cluster/test_local.py::test_a_worker",
            "tests/cluster/test_shards_on_dask.py",
            "tests/cluster/test_shards_on_devices.py",
            "tests/cluster/test_shards_on_mpi.py",
            "tests/cluster/test_worker_memory.py",
        ),
    ),
    "packages": Group(
        ("MANIFEST.in", "pyproject.toml", "scripts/*", "setup.py"),
        (
            "tests/docs/test_packages.py::test_the_steps_of_the_dockerfile",
            "tests/docs/test_packages.py::test_what_the_sdist",
        ),
    ),
}


def is_wanted(test: str) -> bool:
    """Return whether a test is run: one that guards nothing, or whose sources have changed."""
    groups = [name for name, group in GROUPS.items() if test.startswith(group.tests)]
    return any(map(is_guarding, groups)) if groups else not ALONE


@cache
def is_guarding(group: str) -> bool:
    """Return whether the tests of a group run."""
    return ALL or _recorded().get(group) != digest(GROUPS[group])


def _recorded() -> dict[str, str]:
    recorded: dict[str, str] = json.loads(RECORD.read_text()) if RECORD.exists() else {}
    return recorded


def digest(group: Group) -> str:
    """Return a digest of the files of a group, and of what they are called."""
    found = hashlib.sha256()
    modules = {name.split("::")[0] for name in group.tests}
    for pattern in (*group.sources, *sorted(modules)):
        files = sorted(path for path in ROOT.glob(pattern) if path.is_file())
        assert files, f"{pattern} is guarded by tests, but there is no such file"
        for file in files:
            data = file.read_bytes()
            found.update(f"{file.relative_to(ROOT)}\0{len(data)}\0".encode() + data)
    return found.hexdigest()


def record(failed: Iterable[str] = ()) -> None:
    """Note which groups passed with the sources as they are: those without a failed test."""
    failed = tuple(failed)
    digests = {
        name: digest(group)
        for name, group in GROUPS.items()
        if not any(test.startswith(group.tests) for test in failed)
    }
    RECORD.write_text(json.dumps(digests, indent=1) + "\n")
