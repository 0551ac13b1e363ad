"""Methods and their options as users write them."""

import pytest

from oocbfs.errors import QueryError
from oocbfs.methods import METHODS, MethodChoice, parse_method

OF_THE_PAPERS = [
    *("simple", "harish", "queue", "scan", "gunrock", "v1", "v2", "v3.1", "v3.2", "v3.3"),
    *("expand-contract", "contract-expand", "two-phase", "hybrid"),
    *("scan-free", "single-scan", "double-scan", "no-queue", "xbfs", "async"),
    *("gswitch", "edge-blocks", "semiring"),
]


def test_every_method_of_the_papers_is_there() -> None:
    assert list(METHODS) == [*OF_THE_PAPERS, "list", "csr", "auto"]
    for method in METHODS.values():
        assert method.line
        assert method.paper
        assert method.engines


@pytest.mark.parametrize("name", METHODS)
def test_a_name_alone_has_every_default(name: str) -> None:
    choice = parse_method(name)
    assert choice == MethodChoice(METHODS[name])
    assert str(choice) == name
    assert dict(choice.options) == {one.name: one.default for one in METHODS[name].options}


@pytest.mark.parametrize("name", METHODS)
def test_every_value_of_every_option_is_read(name: str) -> None:
    for option in METHODS[name].options:
        for value in option.values:
            choice = parse_method(f"{name}:{option.name}={value}")
            assert choice.options[option.name] == value
            assert parse_method(str(choice)) == choice


def test_several_values_have_one_order() -> None:
    choice = parse_method("two-phase:gather=scan,filter=history+mask")
    assert str(choice) == "two-phase:filter=mask+history,gather=scan"
    assert choice.chosen("filter") == {"mask", "history"}
    assert parse_method("two-phase:filter=none").chosen("filter") == frozenset()


def test_defaults_are_left_out() -> None:
    assert str(parse_method("v3.3:block=256")) == "v3.3"
    assert str(parse_method("v3.3:block=1024")) == "v3.3:block=1024"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bfs", "there is no method 'bfs'"),
        ("", "there is no method ''"),
        ("v3.3:", "has no option ''"),
        ("v3.3:block", "has no option 'block': its options are block"),
        ("v3.3:block=512", "block of method v3.3 cannot be '512': it is one of 256, 1024"),
        ("v3.3:block=256,block=1024", "was given block twice"),
        ("gswitch:block=256", "method gswitch has no option 'block=256': its options are none"),
        ("two-phase:filter=mask+none", "cannot be 'mask+none'"),
        ("two-phase:filter=mask+mask", "cannot be 'mask+mask'"),
        ("two-phase:gather=block", "it is one of serial, warp, scan, scan+warp, scan+warp+block"),
    ],
)
def test_what_no_method_knows_is_refused_in_one_line(text: str, words: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_method(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_engines_are_checked() -> None:
    with pytest.raises(QueryError, match=r"v1 does not run on cpu: use engine=.emulator. or cuda"):
        parse_method("v1").check_engine("cpu")
    with pytest.raises(QueryError, match=r"list does not run on cuda: use engine=.cpu."):
        parse_method("list").check_engine("cuda")
    parse_method("semiring").check_engine("cpu")
