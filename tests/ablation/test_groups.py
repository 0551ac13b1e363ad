"""Which methods a word on the command line means."""

import pytest

from oocbfs.ablation.groups import ALL, ENGINE, GROUPS, choose_methods
from oocbfs.errors import QueryError
from oocbfs.methods import METHODS, parse_method


@pytest.mark.parametrize("group", GROUPS)
def test_groups_are_methods_that_the_emulator_runs(group: str) -> None:
    chosen = choose_methods(group)
    assert len(chosen) == len(GROUPS[group])
    for name in chosen:
        choice = parse_method(name)
        choice.check_engine(ENGINE)
        assert str(choice) == name


def test_all_is_every_method_once() -> None:
    everything = choose_methods(ALL)
    assert set(everything) == {name for name, m in METHODS.items() if ENGINE in m.engines}
    assert len(set(everything)) == len(everything) > 20
    assert choose_methods(f"v3.3,{ALL},v1") == ["v3.3", *(n for n in everything if n != "v3.3")]


def test_options_stay_with_their_method() -> None:
    chosen = choose_methods("v1,two-phase:filter=mask,gather=serial,hybrid:gather=scan,auto")
    assert chosen == ["v1", "two-phase:filter=mask,gather=serial", "hybrid:gather=scan", "auto"]


def test_a_default_that_is_named_is_the_same_method() -> None:
    """Which is how xbfs is meant alone: its name is that of a group, too."""
    assert choose_methods("xbfs:block=256") == ["xbfs"]
    assert choose_methods("xbfs") == list(GROUPS["xbfs"])


REFUSED = {
    "": "no group or method ''",
    "v1,": "no group or method ''",
    "v9": "the groups are evolution, queues, merrill, xbfs, balance and all",
    "list": "does not run on emulator",
    "v1:speed=9": "has no option",
    "balance=fetch1,v1": "no group or method 'balance=fetch1'",
}


@pytest.mark.parametrize("text", REFUSED)
def test_others_are_refused(text: str) -> None:
    with pytest.raises(QueryError) as error:
        choose_methods(text)
    said = str(error.value)
    assert REFUSED[text] in said
    assert "\n" not in said
