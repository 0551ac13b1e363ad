"""One command with one failing call, in a forked process: what must be true afterwards."""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import shutil
import sys
import traceback
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

from oocbfs.cli import main
from tests.support.command_line import tree as files_of
from tests.support.faults.cases import Case, prepare, split
from tests.support.faults.library import Fault, failing

# A command takes a tenth of a second.
_LIMIT_SECONDS = 20


# How plots and pages end, which show how long something took.
_ENDS = (b"</svg>", b"</html>", b"IEND\xaeB`\x82")


def contents(folder: Path) -> dict[str, bytes]:
    """Give every file of a folder; of a plot or a page only whether it is whole."""
    return {
        name: b"whole" if content.rstrip().endswith(_ENDS) else content
        for name, content in files_of(folder).items()
    }


class Trials:
    """A case, tried again and again: always from the same files."""

    def __init__(self, case: Case, folder: Path, inputs: Path) -> None:
        self._case = case
        self._start, self._work, self._said = folder / "start", folder / "work", folder / "said"
        folder.mkdir()
        (self._start / "out").mkdir(parents=True)
        shutil.copytree(inputs, self._start / "in")
        for words in case.before:
            # Outputs may name their folder.
            self._start.rename(self._work)
            prepare(self._work, words, case.broken)
            self._work.rename(self._start)
        self._before = contents(self._start)
        self._restore()
        with failing(self._work, None):
            code, said = _run(case, case.words, self._work, self._said)
        if code:
            raise AssertionError(f"without a fault: {said}")
        self._expected = contents(self._work)
        # Kernels are loaded now, and need no look of the garbage collector any more.
        gc.collect()
        gc.freeze()

    def counts(self) -> dict[str, int]:
        """Tell how many calls of each kind there are."""
        found: dict[str, int] = self.run(None)["counts"]
        return found

    def run(self, fault: Fault | None) -> dict[str, Any]:
        """Try one fault; gives what came of it, and under ``wrong`` what should not have."""
        self._restore()
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            os.close(reading)
            try:
                found = json.dumps(self._try(fault)).encode()
            except BaseException:  # noqa: BLE001 (shown by the parent)
                found = json.dumps({"wrong": traceback.format_exc()}).encode()
            os.write(writing, found)
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            text = pipe.read()
        status = os.waitpid(process, 0)[1]
        if not text:
            said = self._said.read_text(errors="replace")
            how = "hangs" if "Timeout (" in said else f"ends with status {status}"
            return {"outcome": "lost", "wrong": f"{how}: {said}"}
        return cast(dict[str, Any], json.loads(text))

    def _restore(self) -> None:
        shutil.rmtree(self._work, ignore_errors=True)
        shutil.copytree(self._start, self._work)

    def _try(self, fault: Fault | None) -> dict[str, Any]:
        """Run the command with a fault, look, and if it failed, run it again without."""
        with failing(self._work, fault) as counts:
            code, said = _run(self._case, self._case.words, self._work, self._said)
        found = {"counts": counts, "code": code, "said": said, "wrong": ""}
        found["outcome"] = (
            "not reached" if not counts["fired"] else "right" if code == 0 else "one line"
        )
        found["wrong"] = self._wrong(fault, code, said)
        if not found["wrong"] and (code or contents(self._work) != self._expected):
            code, said = _run(self._case, self._again(), self._work, self._said)
            if code or contents(self._work) != self._expected:
                found["wrong"] = f"run again: exit {code} {said}{self._differences()}"
        return found

    def _wrong(self, fault: Fault | None, code: int, said: str) -> str:
        """Say what is wrong after a run."""
        lines = said.splitlines()
        if code not in (0, 1):
            return f"exit {code}: {said}"
        if code == 1 and (len(lines) != 1 or not lines[0].startswith("oocbfs: ")):
            return f"not one line: {said}"
        if "reading or writing failed" in said:
            return f"not clear: {said}"
        if open_files := _open_below(self._work):
            return f"open files are left: {open_files}"
        now = contents(self._work)
        if fault is not None and fault.call in ("unlink", "list"):
            # What cannot be removed stays until the next run, which the caller tries.
            now = {name: content for name, content in now.items() if ".tmp" not in name}
        if code == 0:
            return "" if now == self._expected else f"another result{self._differences()} {said}"
        if self._case.again:
            left = [name for name in now if name.endswith(".tmp")]
            return f"left: {left}" if left else ""
        for name, content in now.items():
            if content not in (self._before.get(name), self._expected.get(name)):
                return f"half written or left: {name} ({said.strip()})"
        if lost := [name for name in self._before if name not in now]:
            return f"lost: {lost}"
        if more := _folders(self._work) - _folders(self._start):
            return f"folders are left: {sorted(more)}"
        # Of several outputs, those before the one that failed are whole.
        outputs = [word[2:] for word in self._case.words.split() if word.startswith("@/out/")]
        failed = [name for name in outputs if str(self._work / name) in said]
        if (more := [name for name in now if name not in self._before]) and (
            len(outputs) == 1 or not failed or failed[0] in more
        ):
            return f"new files are left: {more} ({said.strip()})"
        return ""

    def _again(self) -> str:
        """Give what a user would run now: with --force if some outputs are there."""
        words = self._case.again or self._case.words
        is_there = contents(self._work) != self._before and not self._case.again
        return f"{words} --force" if is_there and "--force" not in words else words

    def _differences(self) -> str:
        now, wanted = contents(self._work), self._expected
        return f", different: {[n for n in {*now, *wanted} if now.get(n) != wanted.get(n)]}"


def _run(case: Case, words: str, folder: Path, messages: Path) -> tuple[int, str]:
    """Run a command in this process; gives the exit code and what was said, also by C code."""
    kept = os.dup(1), os.dup(2)
    descriptor = os.open(messages, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(descriptor, 2)
    faulthandler.dump_traceback_later(_LIMIT_SECONDS, exit=True, file=descriptor)
    try:
        with case.plan() if case.plan else nullcontext():
            code = main([*split(words, folder), "-q"])
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 (more than one line, which is wrong)
        traceback.print_exc()
        code = 70
    gc.collect()
    sys.stdout.flush()
    sys.stderr.flush()
    faulthandler.cancel_dump_traceback_later()
    os.dup2(kept[0], 1)
    os.dup2(kept[1], 2)
    for number in (*kept, descriptor):
        os.close(number)
    return code, messages.read_text(errors="replace")


def _folders(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_dir()}


def _open_below(folder: Path) -> list[str]:
    """Give the files of a folder that this process has open."""
    found = []
    for entry in os.scandir("/proc/self/fd"):
        try:
            path = os.readlink(entry.path)
        except OSError:
            continue
        if path.startswith(f"{folder}/"):
            found.append(path)
    return found
