"""Jobs that were stopped: resumed to the same bytes, or refused in one line."""

import random
import signal
import time
from pathlib import Path
from typing import Literal

import pytest

import oocbfs
from oocbfs.batch.jobs import prepare
from oocbfs.batch.jobs import run as run_plan
from oocbfs.batch.outputs import ZarrLevels
from oocbfs.batch.request import Job
from oocbfs.errors import FormatError, OocbfsError
from oocbfs.generate import generators
from tests.support.command_line import Moments, Started, batch, call, said, tree
from tests.support.exhaustive import ALL


def test_another_job_or_a_damaged_manifest_is_refused(graph: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    batch(graph, "--random", 70, "-o", out)
    whole = tree(out)
    copy = tmp_path / "copy.ocg"
    oocbfs.convert(generators.kron(12, seed=9), copy)
    for arguments, message in (
        ([graph, "--random", 70], "use --resume"),
        ([graph, "--random", 71, "--resume"], "another sources"),
        ([graph, "--random", 70, "--seed", 2, "--resume"], "another sources"),
        ([graph, "--random", 70, "--table", "jsonl", "--resume"], "another table"),
        ([copy, "--random", 70, "--resume"], "another graph checksum"),
    ):
        done = call("batch", *arguments, "-o", out)
        assert done.returncode == 1
        assert message in said(done)[0]
    manifest = out / "manifest.json"
    good = manifest.read_bytes()
    rng = random.Random(1)
    damaged = [good[:size] for size in (0, 1, len(good) // 2, len(good) - 1)]
    for place in rng.sample(range(len(good)), 100):
        changed = bytearray(good)
        changed[place] = ord("7") if changed[place] != ord("7") else ord("8")
        damaged.append(bytes(changed))
    for content in damaged:
        manifest.write_bytes(content)
        with pytest.raises(OocbfsError) as caught:
            prepare(Job(graph, out, random=70), resume=True)
        assert "\n" not in str(caught.value)
    manifest.write_bytes(good)
    batch(graph, "--random", 70, "-o", out, "--resume")
    assert tree(out) == whole


@pytest.mark.long
@pytest.mark.parametrize("kind", ["npy", "zarr"])
def test_killed_and_resumed_gives_the_same_bytes(
    graph: Path, tmp_path: Path, kind: Literal["npy", "zarr"]
) -> None:
    """Kills at random moments, spread over both kinds, each job then run to its end."""
    if kind == "zarr":
        pytest.importorskip("zarr", reason="Zarr arrays need zarr")
    job = [graph, "--random", 200, "--emit", "levels", "--level-files", kind]
    assert Started(tmp_path / "said", "batch", *job, "-o", tmp_path / "loaded").finish()[0] == 0
    began = time.perf_counter()
    assert Started(tmp_path / "said", "batch", *job, "-o", tmp_path / "whole").finish()[0] == 0
    duration = time.perf_counter() - began
    expected = tree(tmp_path / "whole")
    moments = Moments(kind, duration)
    interrupted = 0
    for number in range(10 if ALL else 5):
        out = tmp_path / f"out{number}"
        process = Started(tmp_path / "said", "batch", *job, "-o", out, "--resume")
        moments.signal(process, signal.SIGKILL)
        interrupted += process.finish()[0] != 0
        rest = Job(graph, out, random=200, emit="levels", level_files=kind)
        run_plan(prepare(rest, resume=True))
        assert tree(out) == expected
    assert interrupted > 0


def test_what_zarr_was_writing_when_it_was_killed_goes_away(tmp_path: Path) -> None:
    pytest.importorskip("zarr", reason="Zarr arrays need zarr")
    ZarrLevels.make(tmp_path, 3, 10)
    partial = tmp_path / "levels.zarr" / "c" / "1" / "0.0123.partial"
    partial.parent.mkdir(parents=True)
    partial.touch()
    ZarrLevels.make(tmp_path, 3, 10)
    assert not partial.exists()


def test_a_job_stopped_before_its_manifest_was_whole_can_be_resumed(
    graph: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    job = Job(graph, tmp_path / "out", random=10)
    with monkeypatch.context() as context:
        context.setattr("oocbfs.batch.jobs.write_checked", stop)
        with pytest.raises(KeyboardInterrupt):
            run_plan(prepare(job, resume=False))
    run_plan(prepare(job, resume=True))
    assert (tmp_path / "out" / "summary.csv").exists()


def test_a_damaged_record_is_refused(graph: Path, tmp_path: Path) -> None:
    job = Job(graph, tmp_path / "out", random=200)

    class StopError(Exception):
        pass

    def stop(done: int, counts: list[int] = []) -> None:  # noqa: B006
        counts.append(done)
        if len(counts) == 150:
            raise StopError

    with pytest.raises(StopError):
        run_plan(prepare(job, resume=False), advance=stop)
    records = sorted((tmp_path / "out" / "groups").iterdir())
    assert [record.name for record in records] == ["000000.json", "000001.json"]
    good = records[1].read_bytes()
    records[1].write_bytes(good.replace(b"1", b"2", 1))
    with pytest.raises(FormatError, match="delete it"):
        run_plan(prepare(job, resume=True))
    records[1].unlink()
    outcome = run_plan(prepare(job, resume=True))
    assert outcome.resumed == 64 + 72  # the first group, and the two that the refusal came after
    run_plan(prepare(Job(graph, tmp_path / "whole", random=200), resume=False))
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")
