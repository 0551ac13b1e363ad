"""Write what was found for people, for programs, and for those who will read a report about it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from textwrap import wrap
from typing import Any

from oocbfs.first_contact.checks import Outcome
from oocbfs.first_contact.contact import Contact
from oocbfs.first_contact.facts import ARCHITECTURE, KernelFact
from oocbfs.first_contact.forecasts import Forecasted
from oocbfs.first_contact.pinning import Pinning
from oocbfs.first_contact.rates import Figure
from oocbfs.memory import format_size

_UNTIMED = "time of the emulator, says nothing about a GPU"
# Whatever a message names by its whole path is named by its last part.
_FOLDERS = re.compile(r"(?<![\w.])/(?:[^\s/:'\"]+/)+")


def anonymous(text: str) -> str:
    """Leave out the folders of files, which may hold names of users."""
    return _FOLDERS.sub("", text.replace(str(Path.home()), "~"))


def verdict(contact: Contact) -> str:
    """Return one line on what to think of it."""
    where = "this GPU" if contact.engine == "cuda" else "the emulator"
    num_run = sum(outcome.num_run for outcome in contact.outcomes)
    wrong = sum(len(outcome.problems) for outcome in contact.outcomes)
    if contact.passed:
        return f"all {num_run:,} checks passed on {where}"
    if not wrong:
        return f"{num_run:,} checks passed on {where}, but: {contact.problems[0]}"
    return f"{wrong:,} of {num_run:,} checks FAILED on {where}: do not trust it"


def values(contact: Contact) -> dict[str, Any]:
    """Return everything for programs."""
    return {
        "engine": contact.engine,
        "passed": contact.passed,
        "verdict": verdict(contact),
        "facts": [vars(fact) for fact in contact.facts],
        "kernels": [
            {"kernel": fact.kernel, **fact.resources._asdict()} for fact in contact.kernels
        ],
        "checks": [
            {**asdict(one), "problems": list(map(anonymous, one.problems)), "passed": one.passed}
            for one in contact.outcomes
        ],
        "pinning": None if contact.pinning is None else contact.pinning._asdict(),
        "figures": [
            {"name": one.name, "unit": one.unit, "seconds": one.median}
            for one in contact.figures.values()
        ],
        "rates": None if contact.rates is None else asdict(contact.rates),
        "forecasts": [one._asdict() for one in contact.forecasts],
        "problems": problems(contact),
        "report": list(block(contact)),
    }


def sections(contact: Contact) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield titles and tables of two columns."""
    yield "Facts", [(fact.part, anonymous(fact.found or "missing")) for fact in contact.facts]
    if contact.kernels:
        by = "the driver" if contact.engine == "cuda" else f"NVRTC for {ARCHITECTURE}"
        yield f"Kernels, by {by}", [(fact.kernel, _kernel(fact)) for fact in contact.kernels]
    yield "Checks against the CPU", [(one.family, _outcome(one)) for one in contact.outcomes]
    if contact.pinning is not None:
        yield "Pinned memory", list(_pinning(contact.pinning))
    if contact.figures:
        title = "Rates" if contact.engine == "cuda" else f"Rates ({_UNTIMED})"
        yield title, [(one.name, _figure(one)) for one in contact.figures.values()]
    if contact.forecasts:
        yield (
            f"Predictions, {contact.forecasts[0].graph}",
            [(f"{one.share} resident", _forecast(one)) for one in contact.forecasts],
        )


def problems(contact: Contact) -> list[str]:
    """List everything that went wrong."""
    found = [
        f"{outcome.family}: {problem}"
        for outcome in contact.outcomes
        for problem in outcome.problems
    ]
    return [anonymous(problem) for problem in (*found, *contact.problems)]


def block(contact: Contact) -> Iterator[str]:
    """Yield the lines to paste into a report: all that was found, and nothing about the user."""
    yield f"oocbfs doctor --gpu --engine {contact.engine}: {verdict(contact)}"
    yield from (f"problem: {problem}" for problem in problems(contact))
    for title, rows in sections(contact):
        if title.startswith("Kernels"):
            title += " (registers/shared bytes/local bytes/blocks)"
            numbers = (
                (fact.kernel, "/".join(map(str, fact.resources))) for fact in contact.kernels
            )
            rows = list(numbers)
        line = f"{title}: " + "; ".join(f"{name} {said}" for name, said in rows)
        yield from wrap(line, 96, subsequent_indent="  ", break_on_hyphens=False)


def _kernel(fact: KernelFact) -> str:
    registers, shared, local, blocks = fact.resources
    spilled = f", {local} B local" if local else ""
    held = f"{blocks} block{'s' if blocks != 1 else ''} a multiprocessor"
    return f"{registers} registers, {shared:,} B shared{spilled}, {held}"


def _outcome(outcome: Outcome) -> str:
    if not outcome.num_run:
        return f"not run: {outcome.not_run}"
    said = f"{outcome.num_run} passed"
    if outcome.problems:
        said = f"{len(outcome.problems)} of {outcome.num_run} FAILED"
    return f"{said}, {outcome.not_run}" if outcome.not_run else said


def _pinning(pinning: Pinning) -> Iterator[tuple[str, str]]:
    yield "tails of a file", pinning.route
    yield "rate", f"{format_size(1 / max(pinning.seconds, 1e-12))}/s"
    largest = f"{format_size(pinning.largest_bytes)} in one piece"
    if pinning.refused_bytes is None:
        yield "largest", f"{largest}, and more was not tried"
    else:
        yield "largest", f"{largest}; {format_size(pinning.refused_bytes)} were refused"


def _figure(figure: Figure) -> str:
    if figure.unit == "byte":
        return f"{figure.rate / 1e9:.3g} GB/s"
    if figure.unit == "read" and figure.name != "dependent read":
        return f"{figure.rate / 1e6:.3g} million reads/s"
    return f"{figure.median * 1e6:.3g} µs"


def _forecast(one: Forecasted) -> str:
    said = f"{format_size(one.predicted_bytes)} over PCIe predicted"
    if one.counted_bytes is not None:
        said += f", {format_size(one.counted_bytes)} counted"
    if one.predicted_seconds is not None and one.measured_seconds is not None:
        said += (
            f", {1000 * one.predicted_seconds:.3g} ms predicted, "
            f"{1000 * one.measured_seconds:.3g} ms measured"
        )
    return said
