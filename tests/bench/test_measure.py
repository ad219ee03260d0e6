"""Turns and ratios, with clocks that the test holds in its hands."""

import pytest

from minitorch.bench.measure import Figure, alternate, compare, enough, ratio_of


def fixed(log, name, values):
    values = iter(values)

    def timer():
        log.append(name)
        return next(values)

    return timer


def test_contenders_take_turns_and_the_warm_up_does_not_count():
    log = []
    timers = {"a": fixed(log, "a", [9, 1, 2]), "b": fixed(log, "b", [9, 2, 8])}
    assert alternate(timers, rounds=2, warmup=1) == {"a": [1, 2], "b": [2, 8]}
    assert log == ["a", "b"] * 3


def test_the_ratio_is_the_median_of_ratios_not_a_ratio_of_medians():
    # The machine was ten times slower in the last round; each round's ratio is not touched by that.
    ratio, low, high = ratio_of([1, 2, 30], [2, 4, 60])
    assert (ratio, low, high) == (0.5, 0.5, 0.5)
    assert ratio_of([3.0], [2.0]) == (1.5, 1.5, 1.5)


def test_quartiles_tell_the_spread():
    ratio, low, high = ratio_of([1, 2, 3, 4, 5], [1, 1, 1, 1, 1])
    assert (ratio, low, high) == (3, 2, 4)


@pytest.mark.parametrize(
    ("target", "most", "ratio", "met"),
    [
        (1.0, True, 0.5, True),
        (0.4, True, 0.5, False),
        (1.4, False, 2.0, True),
        (3, False, 2.0, False),
        (None, True, 0.5, None),
    ],
)
def test_targets(target, most, ratio, met):
    times = {"us": [1.0, 1.0], "them": [2.0, 2.0]}
    figure = compare("b", "n", times, "us", "them", target=target, most=most)
    assert figure.ratio == ratio
    assert figure.met is met
    assert figure.as_json()["met"] is met
    assert (figure.ours, figure.peer) == (1.0, 2.0)


def test_without_a_peer_nothing_is_met():
    assert Figure("b", "n", 1e-6, target=1.0).met is None


@pytest.mark.parametrize(("each", "expected"), [(1e-5, 5000), (0.01, 5), (1.0, 1), (1e-9, 10_000)])
def test_enough_repetitions(each, expected):
    assert enough(lambda number: each, 0.05) == expected
