"""Run the checks of all families, and note what differed, failed or could not run."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from oocbfs.errors import OocbfsError
from oocbfs.first_contact.families import FAMILIES, Family
from oocbfs.first_contact.graphs import Case
from oocbfs.first_contact.target import Target
from oocbfs.gpu.cuda_device import DeviceError
from oocbfs.progress import Phases

# Of a family that is broken: more would say the same.
_MOST_PROBLEMS = 5
_GPU_FAILED = "the GPU failed before"


@dataclass
class Outcome:
    """What became of one family: how many checks ran, what was wrong, why the rest did not run."""

    family: str
    num_run: int = 0
    problems: list[str] = field(default_factory=list)
    not_run: str | None = None
    seconds: float = 0.0

    @property
    def gpu_failed(self) -> bool:
        """Whether the GPU took no more work."""
        return self.not_run == _GPU_FAILED

    @property
    def passed(self) -> bool:
        """Whether all of it ran and was right."""
        return not self.problems and self.not_run is None


def run_checks(
    target: Target,
    cases: Sequence[Case],
    phases: Phases,
    families: dict[str, Family] | None = None,
) -> list[Outcome]:
    """Run family after family. A GPU that fails takes no more work: then the rest is not run."""
    outcomes = list[Outcome]()
    for name, family in (FAMILIES if families is None else families).items():
        failed = any(outcome.gpu_failed for outcome in outcomes)
        outcome = Outcome(name, not_run=_GPU_FAILED if failed else None)
        outcomes.append(outcome)
        if not failed:
            _run_family(target, cases, phases, family, outcome)
    return outcomes


def _run_family(
    target: Target, cases: Sequence[Case], phases: Phases, family: Family, outcome: Outcome
) -> None:
    """Run the checks of one family."""
    start = time.perf_counter()
    checks = list(family(target, cases))
    with phases(outcome.family, len(checks), "check") as bar:
        for check in checks:
            try:
                check.run()
            except OocbfsError as error:
                outcome.problems.append(f"{check.name}: {str(error).splitlines()[0]}")
                if isinstance(error, DeviceError):
                    outcome.not_run = _GPU_FAILED
                elif len(outcome.problems) == _MOST_PROBLEMS:
                    outcome.not_run = f"{len(checks) - outcome.num_run - 1} more were left out"
            outcome.num_run += 1
            bar.update(1)
            if outcome.not_run is not None:
                break
    outcome.seconds = time.perf_counter() - start
