"""The model of how long results take to the host."""

from __future__ import annotations

import pytest

from oocbfs.plan.rates import published
from oocbfs.plan.to_ids import ToIdsForecast, predict_to_ids

RATES = published(300e9, 12e9)


def test_the_host_works_while_the_device_does() -> None:
    assert ToIdsForecast(2.0, 1.0, 2.5, 0.0).seconds == 3.0
    assert ToIdsForecast(2.0, 1.0, 4.0, 0.5).seconds == 4.5


def test_parts_are_written_in_milliseconds() -> None:
    assert str(ToIdsForecast(0.002, 0.000021, 0.0045, 0.0)) == (
        "brought to ids 2.000 ms, copied 0.021 ms, written meanwhile 4.500 ms"
    )


@pytest.mark.parametrize("with_parents", [False, True])
def test_who_brings_results_into_order(with_parents: bool) -> None:
    n = 1_000_000
    here, there = (
        predict_to_ids(RATES, n, on_device=on_device, with_parents=with_parents, threads=1)
        for on_device in (False, True)
    )
    sent = 5 * n if with_parents else n
    assert here.copy_seconds == there.copy_seconds == sent / 12e9
    assert there.device_seconds > here.device_seconds > 0
    assert here.order_seconds > there.order_seconds == 0


def test_all_threads_help() -> None:
    one, two = (
        predict_to_ids(RATES, 1000, on_device=False, with_parents=True, threads=threads)
        for threads in (1, 2)
    )
    assert one.host_seconds == 2 * two.host_seconds
    assert one.order_seconds == 2 * two.order_seconds
    assert one.copy_seconds == two.copy_seconds
