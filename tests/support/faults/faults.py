"""Let every n-th call of the operating system fail, through every verb, and say what comes of it.

One fault:       python -m tests.support.faults convert-gz --call write --nth 17 --error ENOSPC
All of a case:   python -m tests.support.faults convert-gz
A few of each:   python -m tests.support.faults --sample 5

Exit 1 means that something was wrong: a traceback, a wrong result, something left behind, no end.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from fnmatch import filter as matching
from pathlib import Path

from tests.support.faults.cases import CASES, make_inputs
from tests.support.faults.library import CALLS, Fault, is_preloaded, run_preloaded
from tests.support.faults.trial import Trials

# Of a sample, one of each case: a disk that is full from some moment on.
_FULL = ("write", "lasting-ENOSPC")
Outcomes = Counter[tuple[str, str, str]]


def main() -> int:
    """Try faults; print what is wrong, and count the rest."""
    options = _parse()
    if not is_preloaded():
        with tempfile.TemporaryDirectory() as folder:
            return run_preloaded("tests.support.faults", sys.argv[1:], Path(folder))
    make_inputs(options.folder / "inputs")
    total: Outcomes = Counter()
    for name in dict.fromkeys(n for p in options.cases for n in matching(CASES, p)):
        total += _try_all(name, options)
    for (call, error, outcome), count in sorted(total.items()):
        print(f"{call:9} {error:15} {outcome:12} {count:6}")
    print(f"{total.total()} faults, {_summary(total)}")
    return int(any(outcome == "wrong" for _, _, outcome in total))


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    text = f"{', '.join(CASES)}; or patterns (default: all)"
    parser.add_argument("cases", nargs="*", metavar="CASE", default=["*"], help=text)
    parser.add_argument("--call", choices=CALLS, action="append", help="only this kind of call")
    errors = dict.fromkeys(error for errors in CALLS.values() for error in errors)
    parser.add_argument("--error", choices=errors, help="only this error")
    parser.add_argument("--nth", type=int, help="only the n-th call")
    parser.add_argument("--sample", type=int, metavar="N", help="N faults of each case, at random")
    parser.add_argument("--seed", type=int, default=1, help="of the sample")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


def _try_all(name: str, options: argparse.Namespace) -> Outcomes:
    """Try the faults of one case."""
    began = time.perf_counter()
    trials = Trials(CASES[name], options.folder / name, options.folder / "inputs")
    outcomes: Outcomes = Counter()
    for fault in _faults(name, trials.run(None).counts, options):
        found = trials.run(fault)
        if options.nth:
            print(f"{name} {fault}: {found.outcome} {found.said}", flush=True)
        if found.wrong:
            print(f"WRONG {name} {fault}: {found.wrong}", flush=True)
        outcomes[fault.call, fault.error, "wrong" if found.wrong else found.outcome] += 1
    seconds = time.perf_counter() - began
    print(f"{name}: {outcomes.total()} faults, {_summary(outcomes)}, {seconds:.1f} s", flush=True)
    return outcomes


def _faults(name: str, counts: dict[str, int], options: argparse.Namespace) -> list[Fault]:
    """Return the faults that are wanted of a command that makes so many calls."""
    kinds = [
        (call, error)
        for call, errors in CALLS.items()
        for error in errors
        if counts[call] and call in (options.call or CALLS) and options.error in (None, error)
    ]
    if options.sample is None:
        return [
            Fault(call, nth, error)
            for call, error in kinds
            for nth in range(1, counts[call] + 1)
            if options.nth in (None, nth)
        ]
    rng = random.Random(f"{options.seed} {name}")
    rng.shuffle(kinds)
    kinds.sort(key=lambda kind: kind != _FULL)
    return [Fault(call, rng.randint(1, counts[call]), e) for call, e in kinds[: options.sample]]


def _summary(outcomes: Outcomes) -> str:
    by_outcome: Counter[str] = Counter()
    for (_, _, outcome), count in outcomes.items():
        by_outcome[outcome] += count
    return ", ".join(f"{count} {outcome}" for outcome, count in sorted(by_outcome.items()))
