"""One command with one failing call, in a forked process, and what must be true afterwards.

It ends right, or with exit 1, one line and the files that were there before. Of several outputs,
those before the one that failed are whole. Then it is run again in the same process.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import shutil
import sys
import time
import traceback
import zipfile
from contextlib import nullcontext, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from oocbfs.cli import main
from tests.support.command_line import tree
from tests.support.faults.cases import Case, prepare, split
from tests.support.faults.library import Fault, failing

# A command takes a tenth of a second, but not on a machine that has much else to do.
_LIMIT_SECONDS = 30
# The first run of each compiles, too; who runs it is the process of all trials.
_FIRST_LIMIT_SECONDS = 600
# How plots and pages end, which show how long something took.
_ENDS = (b"</svg>", b"</html>")


@dataclass
class Found:
    """What came of a fault; ``wrong`` is empty if all is well."""

    outcome: str = "lost"
    said: str = ""
    wrong: str = ""
    counts: dict[str, int] = field(default_factory=dict)


class Trials:
    """A case, tried again and again: always from the same files."""

    def __init__(self, case: Case, folder: Path, inputs: Path) -> None:
        self._case = case
        self._start, self._work, self._said = folder / "start", folder / "work", folder / "said"
        (self._work / "out").mkdir(parents=True)
        shutil.copytree(inputs, self._work / "in")
        for words in case.before:
            prepare(self._work, words, case.broken)
        self._before = _contents(self._work)
        shutil.copytree(self._work, self._start)
        code, said = self._run(case.words, _FIRST_LIMIT_SECONDS)
        assert code == 0, said
        self._expected = _contents(self._work)
        # What is loaded now need not be looked at by the garbage collector of each trial.
        gc.collect()
        gc.freeze()

    def run(self, fault: Fault | None) -> Found:
        """Try one fault, or none."""
        shutil.rmtree(self._work)
        shutil.copytree(self._start, self._work)
        reading, writing = os.pipe()
        process = os.fork()
        if process == 0:
            try:
                found = self._try(fault)
            except BaseException:  # noqa: BLE001 (the parent shows it)
                found = Found(wrong=traceback.format_exc())
            os.write(writing, json.dumps(asdict(found)).encode())
            os._exit(0)
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            text = pipe.read()
        status = os.waitpid(process, 0)[1]
        if text:
            return Found(**json.loads(text))
        return Found(wrong=f"ends with status {status}: {self._said.read_text(errors='replace')}")

    def _try(self, fault: Fault | None) -> Found:
        """Run the command with a fault, look, and run it again without if it failed."""
        with failing(self._work, fault) as counts:
            code, said = self._run(self._case.words)
        outcome = "one line" if code else "right"
        found = Found(outcome if counts.pop("fired") else "not reached", said, counts=counts)
        found.wrong = self._judge(code, said, fault)
        if not found.wrong and _contents(self._work) != self._expected:
            code, said = self._run(self._again())
            if code or _contents(self._work) != self._expected:
                found.wrong = f"run again: exit {code} {said}{self._differences()}"
        return found

    def _judge(self, code: int, said: str, fault: Fault | None) -> str:
        """Return what is wrong after a run."""
        if code not in (0, 1):
            return f"exit {code}: {said}"
        if code and (said.count("\n") != 1 or "reading or writing failed" in said):
            return f"not one clear line: {said}"
        # A thread may hold one for a moment longer.
        deadline = time.monotonic() + _LIMIT_SECONDS
        while left := _open_below(self._work):
            if time.monotonic() > deadline:
                return f"files are open: {left}"
            time.sleep(0.01)
            gc.collect()
        now = _contents(self._work)
        if fault is not None and fault.call in ("unlink", "list"):
            # What cannot be removed stays until the next run, which follows.
            now = {name: content for name, content in now.items() if ".tmp" not in name}
        if code == 0:
            return "" if now == self._expected else f"another result{self._differences()}"
        if self._case.again:
            left = [name for name in now if name.endswith(".tmp")]
            return f"left: {left}" if left else ""
        outputs = [word[2:] for word in self._case.words.split() if word.startswith("@/out/")]
        failed = next((name for name in outputs if str(self._work / name) in said), "")
        whole = outputs[: outputs.index(failed)] if failed else []
        for name in self._before | now:
            known = [self._before.get(name)]
            if name in self._before or name in whole:
                known.append(self._expected.get(name))
            if now.get(name) not in known:
                return f"left, lost or half written: {name} ({said.strip()})"
        return ""

    def _again(self) -> str:
        """Return what a user would run now: with --force if some outputs are there."""
        words = self._case.again or self._case.words
        is_new = self._case.again or "--force" in words or _contents(self._work) == self._before
        return words if is_new else f"{words} --force"

    def _differences(self) -> str:
        now, wanted = _contents(self._work), self._expected
        return (
            f", different: {[name for name in now | wanted if now.get(name) != wanted.get(name)]}"
        )

    def _run(self, words: str, limit_seconds: int = _LIMIT_SECONDS) -> tuple[int, str]:
        """Run a command in this process; returns the exit code and all that was said."""
        kept = os.dup(1), os.dup(2)
        said = os.open(self._said, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 1)
        os.dup2(said, 2)
        faulthandler.dump_traceback_later(limit_seconds, exit=True, file=said)
        try:
            with self._case.plan() if self._case.plan else nullcontext():
                code = main([*split(words, self._work), "-q"])
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        except BaseException:  # noqa: BLE001 (is more than one line)
            traceback.print_exc()
            code = 1
        # What is closed late may say something, too.
        gc.collect()
        sys.stdout.flush()
        sys.stderr.flush()
        faulthandler.cancel_dump_traceback_later()
        os.dup2(kept[0], 1)
        os.dup2(kept[1], 2)
        for descriptor in (*kept, said, nothing):
            os.close(descriptor)
        return code, self._said.read_text(errors="replace")


def _contents(folder: Path) -> dict[str, bytes]:
    """Return every file and folder in a folder; of a plot or a page only whether it is whole."""
    files = {
        name: b"whole" if content.rstrip().endswith(_ENDS) else content
        for name, content in tree(folder).items()
    }
    for name in files:
        # zipfile writes another form, with the same members, where it cannot seek.
        if name.endswith(".npz") and zipfile.is_zipfile(folder / name):
            with zipfile.ZipFile(folder / name) as archive:
                files[name] = b"".join(map(archive.read, archive.namelist()))
    empty = (path for path in folder.rglob("*") if path.is_dir() and not any(path.iterdir()))
    return files | {f"{path.relative_to(folder)}/": b"" for path in empty}


def _open_below(folder: Path) -> list[str]:
    """Return the files of a folder that this process has open."""
    paths = []
    for entry in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            paths.append(os.readlink(f"/proc/self/fd/{entry}"))
    return [path for path in paths if path.startswith(f"{folder}/")]
