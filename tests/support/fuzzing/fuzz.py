"""Change graph files, sign them with valid checksums, and ask every verb and engine about them.

``python -m tests.support.fuzzing --mutants 50000 --seed 1 --jobs 2`` does so in child processes, so
that a crash or a hang is a failure like any other; it names the mutant, which ``--only`` then runs
here, with a traceback. A mutant follows from the seed and its number alone.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import random
import subprocess
import sys
import tempfile
import threading
import traceback
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.crafting import sign
from tests.support.fuzzing.changes import (
    CHANGES,
    ORIGINALS,
    Parts,
    change_stored,
    change_tables,
    originals,
)
from tests.support.fuzzing.plain import PlainGraph
from tests.support.fuzzing.probes import PROBES, Case, ask

# Without a word for so long, a child hangs; the first word of all may have to wait for a compiler.
_PATIENCE_SECONDS = 600
_PROBES_EACH = 3
_MUTANTS_A_CHILD = 1000


class Mutant(NamedTuple):
    """A changed file, what was changed, and what is asked of it."""

    description: str
    data: bytes
    probes: list[str]
    rng: random.Random


def make_mutant(seed: int, number: int, folder: Path, of: str = "") -> Mutant:
    """Make the mutant of this number, of a graph whose name contains a word."""
    rng = random.Random(f"{seed} {number}")
    names = [name for name in ORIGINALS if of in name]
    (name,) = rng.choices(names, [ORIGINALS[name].weight for name in names])
    parts = Parts(originals(folder)[name])
    done = [name]
    if rng.random() < (0.3 if parts.codings else 0.05):
        data = parts.assemble()
        change_there = change_stored if parts.codings and rng.random() < 0.5 else change_tables
        change_there(data, rng)
        sign(data)
        done.append(change_there.__name__)
    else:
        for change in rng.choices(CHANGES, k=rng.choice((1, 1, 1, 2, 3))):
            if any(len(contents) >= 8 for contents in parts.contents.values()):
                change(parts, rng)
                done.append(change.__name__)
        data = parts.assemble()
    weights = [weight for weight, _ in PROBES.values()]
    probes = rng.choices(list(PROBES), weights, k=_PROBES_EACH)
    return Mutant(", ".join(done), bytes(data), probes, rng)


def try_mutant(seed: int, number: int, folder: Path, outcomes: Counter[str], of: str = "") -> None:
    """Ask about one mutant; raises what is no answer."""
    mutant = make_mutant(seed, number, folder, of)
    path = folder / f"{os.getpid()}.ocg"
    path.write_bytes(mutant.data)
    try:
        plain = PlainGraph(mutant.data)
        for probe in mutant.probes:
            outcomes["asked"] += 1
            outcomes["sound"] += plain.neighbours is not None
            try:
                refused = ask(Case(path, plain, mutant.rng), probe)
            except BaseException as error:
                error.add_note(f"mutant {number} of seed {seed} ({mutant.description}): {probe}")
                raise
            outcomes["refused"] += refused is not None
            outcomes["sound but refused"] += refused is not None and plain.neighbours is not None
    finally:
        path.unlink()


def _child(seed: int, first: int, stop: int, folder: Path, of: str) -> None:
    """Try mutants in their order; say a line before each, and one for each failure."""
    outcomes: Counter[str] = Counter()
    for number in range(first, stop):
        _say("trying", number)
        try:
            try_mutant(seed, number, folder, outcomes, of)
        except Exception:  # noqa: BLE001
            _say("failed", traceback.format_exc())
    _say("finished", outcomes)


def _say(word: str, value: object) -> None:
    print(json.dumps([word, value]), flush=True)


def _listen(process: subprocess.Popen[str]) -> Iterator[tuple[str, Any]]:
    """Yield what a child says, to its end or until it has said nothing for too long."""
    said: queue.Queue[str] = queue.Queue()

    def listen() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            said.put(line)
        said.put("")

    listener = threading.Thread(target=listen, daemon=True)
    listener.start()
    try:
        while line := said.get(timeout=_PATIENCE_SECONDS):
            word, value = json.loads(line)
            yield word, value
    except queue.Empty:
        process.kill()
        yield "hangs", None
    listener.join()


def fuzz(
    seed: int, first: int, stop: int, folder: Path, of: str = ""
) -> tuple[list[str], Counter[str]]:
    """Try mutants first … stop-1 in child processes; return failures, and the fate of others."""
    failures: list[str] = []
    outcomes: Counter[str] = Counter()
    number = first
    while number < stop:
        command = [sys.executable, "-m", "tests.support.fuzzing", "--child", str(number), str(stop)]
        command += ["--seed", str(seed), "--folder", str(folder), "--of", of]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OOCBFS_POISON": "1"},
            cwd=Path(__file__).parents[3],
        ) as process:
            ending = "ends the process"
            for word, value in _listen(process):
                if word == "trying":
                    number = value
                elif word == "failed":
                    failures.append(f"mutant {number} of seed {seed}: {value}")
                elif word == "finished":
                    outcomes.update(value)
                    number = stop
                else:
                    ending = "hangs"
        if number < stop:
            failures.append(f"mutant {number} of seed {seed}: {ending} ({process.returncode})")
            number += 1
    return failures, outcomes


def main() -> int:
    """Fuzz, and print what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--of", default="", help="graphs whose names contain it: frames (all)")
    parser.add_argument("--first", type=int, default=0, help="begin with this mutant (default 0)")
    parser.add_argument(
        "--only", type=int, metavar="NUMBER", help="this mutant alone, in this process"
    )
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--child", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        if options.child:
            first, stop = options.child
            _child(options.seed, first, stop, folder, options.of)
            return 0
        if options.only is not None:
            try_mutant(options.seed, options.only, folder, Counter(), options.of)
            return 0
        originals(folder)
        end = options.first + options.mutants
        firsts = range(options.first, end, _MUTANTS_A_CHILD)
        failures: list[str] = []
        total: Counter[str] = Counter()

        def work(first: int) -> tuple[list[str], Counter[str]]:
            stop = min(first + _MUTANTS_A_CHILD, end)
            return fuzz(options.seed, first, stop, folder, options.of)

        with ThreadPoolExecutor(options.jobs) as pool:
            for more, outcomes in pool.map(work, firsts):
                print(*more, sep="\n", end="\n" * bool(more), flush=True)
                failures += more
                total += outcomes
    print(f"{options.mutants} mutants, {len(failures)} failures, {dict(total)}")
    return int(bool(failures))
