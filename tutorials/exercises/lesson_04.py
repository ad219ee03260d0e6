"""Exercises of lesson 4: assigning buckets, launching in order, exposed communication."""

from __future__ import annotations

import math

from . import answered, exercise


@exercise(
    "Assign buckets", hint="append first, then close when size >= cap; a parameter is never split"
)
def assign_buckets(answer):
    cases = [
        ([4, 4, 4], 4, [[2], [1], [0]]),
        ([4, 4, 4], 5, [[2, 1], [0]]),
        ([1, 1, 100, 1], 10, [[3, 2], [1, 0]]),  # overshoots rather than splits
        ([3], 100, [[0]]),
        ([2, 2, 2, 2], 8, [[3, 2, 1, 0]]),  # no empty bucket at the end
    ]
    for sizes, cap, expected in cases:
        got = [list(bucket) for bucket in answered(answer(list(sizes), cap))]
        assert got == expected, f"sizes {sizes}, cap {cap}: got {got}, expected {expected}"


@assign_buckets.solve
def _(sizes, cap):
    buckets, current, filled = [], [], 0
    for index in reversed(range(len(sizes))):
        current.append(index)
        filled += sizes[index]
        if filled >= cap:
            buckets.append(current)
            current, filled = [], 0
    return buckets + ([current] if current else [])


@assign_buckets.mistake
def _(sizes, cap):
    buckets, current, filled = [], [], 0
    for index in reversed(range(len(sizes))):
        if current and filled + sizes[index] > cap:  # closes before appending
            buckets.append(current)
            current, filled = [], 0
        current.append(index)
        filled += sizes[index]
    return [*buckets, current]


@assign_buckets.mistake
def _(sizes, cap):
    return [[index] for index in reversed(range(len(sizes)))]


@exercise("Launch in order", hint="remember which are full, and the index of the next one to leave")
def launches(answer):
    cases = [
        ([0, 1, 2], [[0], [1], [2]]),
        ([2, 1, 0], [[], [], [0, 1, 2]]),
        ([1, 0, 3, 2], [[], [0, 1], [], [2, 3]]),
    ]
    for ready, expected in cases:
        got = [list(step) for step in answered(answer(list(ready)))]
        assert got == expected, f"filled in the order {ready}: got {got}, expected {expected}"


@launches.solve
def _(ready):
    full, following, result = set(), 0, []
    for bucket in ready:
        full.add(bucket)
        now = []
        while following in full:
            now.append(following)
            following += 1
        result.append(now)
    return result


@launches.mistake
def _(ready):
    return [[bucket] for bucket in ready]  # as they fill


@launches.mistake
def _(ready):
    return [[] for _ in ready[:-1]] + [sorted(ready)]  # all at the end


@exercise("Exposed communication", hint="of each interval, only the part after the end of backward")
def exposed(answer):
    cases = [
        ([(1, 3), (3, 4)], 5, 0),
        ([(1, 3), (3, 6)], 5, 1),
        ([(6, 7), (8, 9)], 5, 2),
        ([], 5, 0),
    ]
    for intervals, end, expected in cases:
        got = answered(answer(list(intervals), end))
        assert math.isclose(got, expected), (
            f"all-reduces {intervals}, backward ends at {end}: got {got}, expected {expected}"
        )


@exposed.solve
def _(all_reduces, compute_end):
    return sum(max(0, end - max(start, compute_end)) for start, end in all_reduces)


@exposed.mistake
def _(all_reduces, compute_end):
    return (
        max((end for _, end in all_reduces), default=compute_end) - compute_end
    )  # idle gaps are not communication


@exposed.mistake
def _(all_reduces, compute_end):
    return sum(end - start for start, end in all_reduces if end > compute_end)
