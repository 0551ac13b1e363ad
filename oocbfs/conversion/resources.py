"""What all steps of a conversion share: a folder, memory and threads, progress bars."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from oocbfs import memory
from oocbfs.conversion.disk import Disk
from oocbfs.conversion.key_sorter import Filter, Keys, KeySorter, SortedRun
from oocbfs.conversion.plan import ConvertPlan
from oocbfs.errors import BudgetError
from oocbfs.progress import Phases


@dataclass(frozen=True)
class Resources:
    """The folder for temporary data, the plan for memory and threads, and the progress bars."""

    folder: Disk
    plan: ConvertPlan
    phases: Phases

    def require(self, num_bytes: int, what: str) -> None:
        """Refuse work that needs more than three quarters of what may be held."""
        held_bytes = self.plan.held_bytes
        if num_bytes > held_bytes * 3 // 4:
            short = num_bytes * 4 // 3 - held_bytes
            raise BudgetError(
                f"{what} need {memory.format_size(num_bytes)} of working memory: "
                f"raise --memory by at least {memory.format_size(short)}"
            )

    def key_sorter(
        self,
        sample: Keys,
        num_keys: int,
        budget_bytes: int,
        align_bits: int = 0,
        runs: Sequence[SortedRun] = (),
        filter: Filter | None = None,
    ) -> KeySorter:
        """Begin to sort keys, after the memory of the step before was given back."""
        memory.give_back()
        return KeySorter(
            self.folder,
            sample,
            num_keys,
            budget_bytes=budget_bytes,
            threads=self.plan.threads,
            align_bits=align_bits,
            watch=self.plan.watch,
            runs=runs,
            filter=filter,
        )
