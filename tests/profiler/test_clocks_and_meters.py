"""Clocks of other machines, averages and rates: with clocks that the test holds in its hands."""

import math

import pytest

from minitorch.profiler import Average, Throughput
from minitorch.profiler.clocks import Mapping, Offset, estimate


def test_the_shortest_round_trip_is_believed():
    # The other clock leads by 1000; the first answer was delayed on its way back.
    assert estimate([(0, 1005, 90), (100, 1105, 110)]) == Offset(105, 1000, 5)


def test_clocks_that_may_be_equal_are():
    assert estimate([(0, 12, 20)]).lead == 0
    assert estimate([(0, 31, 20)]).lead == 21


def test_mapping_removes_lead_and_drift():
    mapping = Mapping(Offset(0, 1000, 1), Offset(1_000_000, 1100, 1))
    assert mapping(1000) == 0
    assert mapping(1_001_100) == 1_000_000
    assert mapping(501_050) == pytest.approx(500_000, abs=1)
    assert Mapping(Offset(0, 7, 1), Offset(10, 7, 1))(20) == 13


def test_average_weighs():
    average = Average()
    assert math.isnan(average.value)
    average.update(2.0, weight=3)
    average.update(6.0)
    assert average.value == 3.0
    average.reset()
    assert math.isnan(average.value)


def test_throughput_leaves_out_the_start_and_pauses():
    now = [0]
    rate = Throughput(skip=1, clock=lambda: now[0])

    def work(seconds, items):
        now[0] += int(seconds * 1e9)
        rate.update(items)

    rate.start()
    work(10, 100)  # cold
    work(1, 100)
    rate.stop()
    now[0] += 5 * 10**9  # an evaluation
    rate.start()
    work(1, 300)
    assert rate.per_second == 200


def test_throughput_must_be_started():
    with pytest.raises(RuntimeError, match="start"):
        Throughput().update(1)
