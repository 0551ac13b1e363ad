"""Job files: several batches in one TOML file, with the names of the command line's options."""

from __future__ import annotations

import os
import reprlib
import tomllib
from pathlib import Path
from typing import Any

from oocbfs.batch.request import Job
from oocbfs.errors import InputError
from oocbfs.options import Option, options_of, read_path


def read_jobs(path: Path) -> list[Job]:
    """Read the jobs of a file; paths in it are relative to its folder.

    Raises
    ------
    InputError
        If the file is not TOML, or a job is not one; names the first that is wrong.
    """
    content = _content(path)
    tables = content.pop("job", None)
    if (
        content
        or not isinstance(tables, list)
        or not tables
        or not all(isinstance(table, dict) for table in tables)
    ):
        raise InputError("holds no [[job]] tables, or something else too", path=str(path))
    jobs = [_job(path, number, table) for number, table in enumerate(tables, 1)]
    folders = [Path(os.path.realpath(job.output)) for job in jobs if job.output is not None]
    for number, folder in enumerate(folders, 1):
        for other in folders[: number - 1]:
            if folder.is_relative_to(other) or other.is_relative_to(folder):
                raise InputError(
                    f"job {number} writes to the folder of another job: {folder}", path=str(path)
                )
    return jobs


def _content(path: Path) -> dict[str, Any]:
    """Parse the file, which may hold anything."""
    try:
        if path.exists() and not path.is_file():
            raise InputError("is not a file", path=str(path))
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except RecursionError as error:
        raise InputError("cannot be read as TOML: nested too deeply", path=str(path)) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", path=str(path)) from error
    except ValueError as error:  # not UTF-8, not TOML, or a number of thousands of digits
        raise InputError(f"cannot be read as TOML: {error}", path=str(path)) from error


def _job(path: Path, number: int, table: dict[str, Any]) -> Job:
    """Make a job of a table; refuses names and values that a job does not have."""

    def refuse(message: str) -> InputError:
        return InputError(f"job {number}: {message}", path=str(path))

    known = options_of(Job)
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name == "levels":
            raise refuse(f"levels is called level-files now: level-files = {reprlib.repr(value)}")
        if name not in known:
            raise refuse(f"unknown name {name!r}; known are {', '.join(sorted(known))}")
        declared: Option = known[name].metadata["option"]
        is_flag = known[name].default is False
        if not (type(value) is bool if is_flag else declared.takes(value)):
            raise refuse(f"{name} cannot be {reprlib.repr(value)}")
        if declared.read is read_path:
            if not value or "\0" in value:
                raise refuse(f"{name} cannot be {reprlib.repr(value)}")
            value = path.parent / value
        values[known[name].name] = value
    for name in ("graph", "output"):
        if name not in values:
            raise refuse(f"{name} is missing")
    return Job(**values)
