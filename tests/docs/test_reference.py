"""Options are declared once: the page of the tools, job files and the command line say the same."""

from dataclasses import MISSING, fields

from oocbfs.batch.request import Job
from oocbfs.options import Option, explained, options_of
from oocbfs.settings import Settings
from tests.support.written.reference import PAGE, parser_of, with_tables


def test_the_tables_are_those_of_the_parsers() -> None:
    page = PAGE.read_text()
    assert page == with_tables(page), "run: python -m tests.support.written.reference"


def test_the_command_line_has_every_setting() -> None:
    flags = parser_of("bfs")._option_string_actions
    for name, one in options_of(Settings).items():
        action = flags[f"--{name}"]
        assert action.dest == one.name
        if name != "force":  # which is about files, too
            assert action.help == explained(one).replace("%", "%%")
            assert action.default == one.default


def test_batches_have_every_key_of_a_job() -> None:
    flags = parser_of("batch")._option_string_actions
    for name, one in options_of(Job).items():
        if name in ("graph", "pairs"):  # a positional, and the second word of --emit
            continue
        action = flags[f"--{name}"]
        option: Option = one.metadata["option"]
        if isinstance(option.values, tuple) and name != "emit":
            assert tuple(action.choices or ()) == option.values
    assert {one.name for one in fields(Job)} == {one.name for one in options_of(Job).values()}


def test_what_a_default_means_is_said() -> None:
    for record in (Settings, Job):
        for one in options_of(record).values():
            assert one.default is False or "default" in explained(one)
            assert one.default is MISSING or one.metadata["option"].help
