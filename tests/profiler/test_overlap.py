"""Sums over a timeline whose right values are counted by hand."""

import math

import pytest
from profiler.timelines import MS, event, step

from minitorch.profiler import Timeline, summarize
from minitorch.profiler.overlap import steps_of


def test_one_step_by_hand():
    (only,) = steps_of(Timeline(step(0)), 0)
    assert only.communication == 14 * MS  # 10..24, the overlap of the two counted once
    assert only.hidden == 10 * MS  # 10..20
    assert only.exposed == 4 * MS  # 20..24
    assert only.backward == 16 * MS  # 5..25 without the wait
    assert (only.forward, only.data, only.optimizer) == (4 * MS, MS, 3 * MS)
    assert (only.collectives, only.bytes) == (2, 1500)


def test_the_first_step_does_not_count():
    slow = [event("backward", "backward", 0, 100), event("wait", "wait", 50, 100)]
    slow += [event("all_reduce", "communication", 50, 100, track="communication", bucket=0)]
    summary = summarize(Timeline(slow + step(200) + step(230)))
    assert len(summary.steps[0]) == 3
    assert summary.share_hidden() == pytest.approx(10 / 14)
    assert summary.mean("exposed") == pytest.approx(4e-3)
    assert summary.mean("period") == pytest.approx(30e-3)
    assert summary.collectives() == 2


def test_a_backward_without_communication_is_no_step():
    accumulate = [event("backward", "backward", -20, -10)]
    assert len(steps_of(Timeline(accumulate + step(0)), 0)) == 1


def test_collectives_that_are_no_buckets_do_not_count():
    extra = [event("all_reduce", "communication", 6, 9, track="communication")]
    (only,) = steps_of(Timeline(step(0) + extra), 0)
    assert only.communication == 14 * MS


def test_ranks_are_kept_apart():
    summary = summarize(Timeline(step(0) + step(30) + step(0, rank=1) + step(60, rank=1)))
    assert summary.mean("period", 0) != summary.mean("period", 1) or math.isnan(
        summary.mean("period", 0)
    )
    text = str(summary)
    assert "rank 0" in text
    assert "rank 1" in text
    assert "71%" in text


def test_an_empty_timeline_says_so():
    assert "no step" in str(summarize(Timeline([event("forward", "forward", 0, 1)])))
