"""The loop of the soak: runs until the time is over, what went wrong, and a table at the end."""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from itertools import count
from pathlib import Path

from tests.support.command_line import tree
from tests.support.soak.drawing import Command
from tests.support.soak.plain import draw_graph
from tests.support.soak.process import (
    ENDS,
    LEFT_BY_KILL,
    NOBODY_READS,
    Disturbance,
    End,
    WrongError,
    run,
    wrong,
)
from tests.support.soak.verbs import Asker

_SIGNALS = signal.SIGINT, signal.SIGINT, signal.SIGTERM, signal.SIGKILL
_COLUMNS = "done", "refused", "SIGINT", "SIGTERM", "SIGKILL", "unread"
_CALM = Disturbance()

Tally = Counter[tuple[str, str]]


class Run:
    """One graph and some commands about it, all drawn from a seed and a number."""

    def __init__(self, seed: int, number: int, folder: Path, tally: Tally, *, show: bool) -> None:
        self._rng = random.Random(f"{seed}-{number}")
        self._folder, self._tally, self._show = folder, tally, show
        (folder / "tmp").mkdir()

    def go(self) -> None:
        """Run all commands.

        Raises
        ------
        WrongError
            If something is wrong.
        """
        ids = self._rng.choice(["dense", "compact", "names"])
        graph = draw_graph(self._rng, ids)
        graph.write(self._folder / "edges.tsv")
        for command in Asker(self._rng, graph, ids).commands():
            self._follow(command)

    def _follow(self, command: Command) -> None:
        """Run a command, disturbed or not, and again to its end if it was not let end."""
        for name, text in command.inputs.items():
            (self._folder / name).write_text(text)
        disturbance = self._draw()
        end = self._run(command.words, command, disturbance)
        if end.code in (0, 1):
            self._check(command, end, disturbance)
            return
        end = self._run([*command.words, *command.again], command, _CALM)
        self._check(command, end, _CALM)
        if command.output is None or end.code:
            return
        if left := [path.name for path in self._folder.glob(f".{command.output}.*")]:
            raise wrong(f"ran again and left {', '.join(left)}", command.words)
        self._compare_with_undisturbed(command)

    def _draw(self) -> Disturbance:
        disturbance = Disturbance(stdin=self._rng.choice(["empty", "empty", "closed"]))
        number, seconds = self._rng.choice(_SIGNALS), 10 ** self._rng.uniform(-1.5, 0.3)
        if self._rng.random() < 0.4:
            return replace(disturbance, signal=number, seconds=seconds)
        if self._rng.random() < 0.1:
            return replace(disturbance, nobody_reads=True)
        return disturbance

    def _run(self, words: list[str], command: Command, disturbance: Disturbance) -> End:
        if self._show:
            print(f"oocbfs {' '.join(words)}{disturbance}", flush=True)
        before = set(self._folder.iterdir())
        end = run(words, self._folder, disturbance)
        column = {0: "done", 1: "refused", NOBODY_READS: "unread"}.get(end.code)
        if column is None and disturbance.signal is not None:
            column = disturbance.signal.name
        self._tally[words[0], str(column)] += 1
        made = {path.name for path in set(self._folder.iterdir()) - before}
        left = [path.name for path in (self._folder / "tmp").iterdir()]
        # Who is interrupted says what was written; others may have been ready just before.
        said = f"interrupted; {command.output}: written" in "\n".join(end.said)
        may_write = end.code not in (1, *ENDS[signal.SIGINT]) or command.again or said
        allowed = {command.output} if may_write else set()
        allowed |= {command.keeps} if end.code else set()
        if end.code == -signal.SIGKILL:
            allowed |= {name for name in made if LEFT_BY_KILL.fullmatch(name)}
        if made - allowed or left:
            names = ", ".join(sorted(made - allowed) + left)
            raise wrong(f"ended with {end.code} and left {names}", words, disturbance)
        if end.code < 0 or end.code > 1:
            self._clear(command, made, disturbance)
        return end

    def _clear(self, command: Command, made: set[str], disturbance: Disturbance) -> None:
        """Make room for another try; what has its name already must be whole."""
        if command.output in made and (command.keeps or not command.again):
            self._check(command, End(0, "", []), disturbance)
            self._remove(command.output)

    def _remove(self, name: str | None) -> None:
        path = self._folder / str(name)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def _check(self, command: Command, end: End, disturbance: Disturbance) -> None:
        """Check an answer; only budgets and vertices that there are not may be refused."""
        words = command.words
        if end.code == 1:
            (line,) = (line for line in end.said if not line.startswith("compiling"))
            by_budget = "--memory" in words and ("allow" in line or "no memory budget" in line)
            if not by_budget and "has no vertex" not in line:
                raise wrong(f"was refused: {line}", words, disturbance)
            if words[0] == "convert":
                place = words.index("--memory")
                self._run([*words[:place], *words[place + 2 :]], command, _CALM)
            return
        try:
            command.check(self._folder, end)
        except Exception as error:
            raise wrong(f"answers wrongly: {error!r}", words, disturbance) from error

    def _compare_with_undisturbed(self, command: Command) -> None:
        """Run the command once more into another place: the same bytes."""
        assert command.output is not None
        there, other = self._folder / command.output, f"calm-{command.output}"
        words = [other if word == command.output else word for word in command.words]
        self._run(words, replace(command, output=other), _CALM)
        pair = [
            tree(path) if path.is_dir() else path.read_bytes()
            for path in (there, self._folder / other)
        ]
        if pair[0] != pair[1]:
            raise wrong("was interrupted, ran again and wrote other bytes", command.words)
        self._remove(other)


def soak(seed: int, numbers: range | count[int], minutes: float, *, show: bool) -> int:
    """Run until the time is over; returns how many runs were wrong."""
    tally: Tally = Counter()
    began, failures, runs = time.monotonic(), list[int](), 0
    for number in numbers:
        if time.monotonic() - began > 60 * minutes:
            break
        runs += 1
        with tempfile.TemporaryDirectory(prefix="soak-") as folder:
            try:
                Run(seed, number, Path(folder), tally, show=show).go()
            except WrongError as error:
                failures.append(number)
                print(f"\nrun {number}: {error}", flush=True)
                print(f"again: scripts/soak --seed {seed} --only {number}", flush=True)
        if not show:
            passed = f"{(time.monotonic() - began) / 60:.1f} min"
            line = f"{runs} runs, {tally.total()} commands, {len(failures)} wrong, {passed}"
            print(f"\r{line}", end="", file=sys.stderr, flush=True)
    print(f"\nseed {seed}: {runs} runs, {len(failures)} wrong{': ' if failures else ''}", end="")
    print(", ".join(map(str, failures)))
    _print_table(tally)
    return len(failures)


def _print_table(tally: Tally) -> None:
    print(f"{'verb':12}" + "".join(f"{column:>9}" for column in _COLUMNS))
    for verb in sorted({verb for verb, _ in tally}):
        print(f"{verb:12}" + "".join(f"{tally[verb, column]:9,}" for column in _COLUMNS))


def main(arguments: list[str] | None = None) -> int:
    """Run the soak; returns 1 if something was wrong."""
    parser = argparse.ArgumentParser(prog="scripts/soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10, help="how long (default: 10)")
    parser.add_argument("--seed", type=int, default=1, help="what is drawn (default: 1)")
    parser.add_argument("--runs", type=int, help="stop after so many runs")
    parser.add_argument("--only", type=int, metavar="N", help="only run N, each command shown")
    options = parser.parse_args(arguments)
    numbers: range | count[int] = count()
    if options.runs is not None:
        numbers = range(options.runs)
    if options.only is not None:
        numbers = range(options.only, options.only + 1)
    show = options.only is not None
    return min(1, soak(options.seed, numbers, options.minutes, show=show))
