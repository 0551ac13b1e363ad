"""Let every n-th call of the operating system fail, through every verb, and say what comes of it.

One fault: ``python -m tests.support.faults convert-gz --call write --nth 17 --error ENOSPC``.
All faults of some cases: ``python -m tests.support.faults convert-gz bfs-disk``. Exit 1 means that
something was wrong: a traceback, a wrong result, something left behind, or no end.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections import Counter
from fnmatch import filter as matching
from pathlib import Path

from tests.support.faults.cases import CASES, make_inputs
from tests.support.faults.library import CALLS, Fault, is_preloaded, run_preloaded
from tests.support.faults.trial import Trials


def faults_of(counts: dict[str, int], options: argparse.Namespace) -> list[Fault]:
    """Give all faults of a command that makes so many calls, or a part of them."""
    every = [
        Fault(call, nth, error)
        for call in CALLS
        for error in CALLS[call]
        for nth in range(1, counts[call] + 1)
        if options.call in (None, call) and options.error in (None, error)
    ]
    if options.sample is None or options.sample >= len(every):
        return every
    return random.Random(options.seed).sample(every, options.sample)


def main() -> int:
    """Try faults; print what is wrong, and count the rest."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "cases", nargs="*", metavar="CASE", help=f"{', '.join(CASES)}; or a pattern"
    )
    parser.add_argument("--call", choices=CALLS)
    parser.add_argument("--nth", type=int, help="this call alone")
    parser.add_argument("--error", choices=sorted({e for errors in CALLS.values() for e in errors}))
    parser.add_argument("--sample", type=int, help="so many faults of each case, at random")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--counts", action="store_true", help="print how many calls there are")
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not is_preloaded():
        import sys

        with tempfile.TemporaryDirectory() as folder:
            return run_preloaded("tests.support.faults", sys.argv[1:], Path(folder))
    names = [name for pattern in options.cases or ["*"] for name in matching(CASES, pattern)]
    make_inputs(options.folder / "inputs")
    failures = 0
    total: Counter[tuple[str, str, str]] = Counter()
    for name in names:
        began = time.perf_counter()
        trials = Trials(CASES[name], options.folder / name, options.folder / "inputs")
        counts = trials.counts()
        if options.counts:
            print(name, sum(len(CALLS[c]) * counts[c] for c in CALLS), counts, flush=True)
            continue
        outcomes: Counter[tuple[str, str, str]] = Counter()
        if options.nth:
            errors = [options.error] if options.error else CALLS[options.call]
            faults = [Fault(options.call, options.nth, error) for error in errors]
        else:
            faults = faults_of(counts, options)
        for fault in faults:
            found = trials.run(fault)
            if options.nth:
                print(found["outcome"], found.get("said", ""))
            if found["wrong"]:
                failures += 1
                print(f"WRONG {name} {fault}: {found['wrong']}", flush=True)
            outcomes[fault.call, fault.error, "wrong" if found["wrong"] else found["outcome"]] += 1
        total += outcomes
        by_outcome = Counter()
        for (_, _, outcome), count in outcomes.items():
            by_outcome[outcome] += count
        seconds = time.perf_counter() - began
        print(f"{name}: {len(faults)} faults, {dict(by_outcome)}, {seconds:.1f} s", flush=True)
    for (call, error, outcome), count in sorted(total.items()):
        print(f"{call:9} {error:15} {outcome:12} {count:6}")
    return int(failures > 0)
