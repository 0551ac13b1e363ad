"""The table: a column for each count that tells methods apart, the median of all runs in each."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from oocbfs.ablation.paper import figure_of
from oocbfs.ablation.plan import Plan
from oocbfs.ablation.runs import Row, Run
from oocbfs.pictures.charts import short
from oocbfs.settings import several

_SECTOR_BYTES = 32
_METHOD_WIDTH = 27


@dataclass(frozen=True)
class Column:
    """What a column is called, what it means, how it follows from a run, and how it is written.

    Without a ``value``, it is the count of that name.
    """

    name: str
    heading: str
    meaning: str
    value: Callable[[Run, Plan], float | None] | None = None
    write: Callable[[float], str] = short

    @property
    def width(self) -> int:
        """How wide the column is in a terminal."""
        return max(len(self.heading), 6) + 2

    def of(self, row: Row, plan: Plan) -> float | None:
        """Return the median over sources and schedules, or None where it was not counted."""
        of_run = self.value or (lambda run, _: run.counts.get(self.name))
        values = [of_run(run, plan) for run in row.runs]
        counted = [value for value in values if value is not None]
        return None if row.failure or not counted else median(counted)

    def shown(self, row: Row, plan: Plan) -> str:
        """Write the median."""
        value = self.of(row, plan)
        return "–" if value is None else self.write(value)


def _share(run: Run, plan: Plan) -> float | None:
    sectors = run.counts.get("pcie_sectors")
    return None if sectors is None else _SECTOR_BYTES * sectors / max(1, plan.graph_bytes)


def _device_bytes(run: Run, plan: Plan) -> float | None:
    sectors = run.counts.get("device_sectors")
    return None if sectors is None else _SECTOR_BYTES * sectors


def _looks(run: Run, plan: Plan) -> float | None:
    examined = run.counts.get("edges_examined")
    return None if examined is None else examined / max(1, plan.reached_edges[run.source])


def _percent(share: float) -> str:
    return f"{share:,.0%}" if share >= 0.1 else f"{share:.1%}"


def _times(ratio: float) -> str:
    return f"{ratio:.2f}x" if ratio >= 0.1 else f"{ratio:.3f}x"


_OF_FILE = "bytes over PCIe, of heads and tails of the file"
_OF_REACHED = "edges examined, of those that leave what is reached"
_OF_MEAN = "work of the busiest warp, of the mean"
COLUMNS = (
    Column("pcie_share", "PCIe", _OF_FILE, _share, _percent),
    Column("launches", "launches", "kernels started"),
    Column("read_backs", "read-backs", "copies that the host waits for"),
    Column("edge_ratio", "edges", _OF_REACHED, _looks, _times),
    Column("queue_writes", "queued", "vertices written to queues"),
    Column("duplicates", "duplicates", "vertices claimed once more"),
    Column("atomics", "atomics", "atomic operations"),
    Column("hottest_word", "hottest", "most atomics on one word"),
    Column("device_bytes", "device", "bytes of device memory, in sectors", _device_bytes),
    Column("lanes_used", "lanes", "lanes that take part in a load"),
    Column("warp_imbalance", "busiest", _OF_MEAN, write="{:.1f}x".format),
)


def heading() -> str:
    """Write the line above the rows."""
    cells = "".join(f"{column.heading:>{column.width}}" for column in COLUMNS)
    return f"{'method':<{_METHOD_WIDTH}}{cells}  paper"


def line(row: Row, plan: Plan) -> str:
    """Write a row for people."""
    name = f"{row.method:<{_METHOD_WIDTH - 1}} "
    if row.failure:
        return f"{name} {row.failure}"
    cells = "".join(f"{column.shown(row, plan):>{column.width}}" for column in COLUMNS)
    return f"{name}{cells}  {figure_of(row.method)}".rstrip()


def meanings(plan: Plan) -> Iterator[tuple[str, str]]:
    """Return what the columns are, and of what runs they are the medians."""
    yield from ((column.heading, column.meaning) for column in COLUMNS)
    yield "paper", "what its authors report, on their graphs and cards"
    yield "runs", runs_of(plan)


def runs_of(plan: Plan) -> str:
    """Return which runs there were."""
    resident = sorted({schedule.resident_blocks for schedule in plan.schedules})
    return (
        f"medians of {several(plan.num_runs, 'run')}, from "
        f"{several(len(plan.expected), 'source')} of the largest component, in "
        f"{several(len(plan.schedules), 'schedule')} of {plan.schedules[0].blocks} blocks, of "
        f"which {' or '.join(map(str, resident))} run at a time; levels equal to the CPU engine's"
    )


def values(row: Row, plan: Plan) -> dict[str, float | str | None]:
    """Return a row for programs: the columns of the table, then every count."""
    listed: dict[str, float | str | None] = {"method": row.method, "failure": row.failure}
    listed |= {column.name: column.of(row, plan) for column in COLUMNS}
    names = sorted({name for run in row.runs for name in run.counts})
    listed |= {name: row.median(name) for name in names if name not in listed}
    rounded = {n: _rounded(v) if isinstance(v, float) else v for n, v in listed.items()}
    return rounded | {"paper": figure_of(row.method)}


def _rounded(value: float) -> float:
    """Drop the digits that depend on what a process had counted before."""
    return float(f"{value:.10g}")


def as_csv(rows: Iterable[Row], plan: Plan) -> str:
    """Write all rows as a table for programs; what was not counted is empty."""
    listed = [values(row, plan) for row in rows]
    names = list(dict.fromkeys(name for row in listed for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(listed)
    return text.getvalue()
