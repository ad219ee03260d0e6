"""Interval arithmetic, against the definition: sets of integer moments."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minitorch.profiler.intervals import intersect, measure, subtract, union

intervals = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1])), max_size=8
)


def moments(spans):
    return {t for begin, end in spans for t in range(begin, end)}


@given(intervals)
def test_union_is_sorted_apart_and_the_same_set(spans):
    merged = union(spans)
    assert moments(merged) == moments(spans)
    assert all(a[1] < b[0] for a, b in pairwise(merged))


@given(intervals, intervals)
def test_intersect_and_subtract_are_the_sets(a, b):
    assert moments(intersect(a, b)) == moments(a) & moments(b)
    assert moments(subtract(a, b)) == moments(a) - moments(b)


@given(intervals, intervals)
def test_measures_add_up(a, b):
    assert measure(a) == len(moments(a))
    assert measure(intersect(a, b)) + measure(subtract(a, b)) == measure(a)


@pytest.mark.parametrize("function", [intersect, subtract])
def test_nothing_with_nothing(function):
    assert function([], []) == []


def test_an_instant_has_no_length():
    assert union([(5, 5)]) == []
    assert subtract([(0, 10)], [(5, 5)]) == [(0, 10)]
