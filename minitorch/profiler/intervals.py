"""Arithmetic of time intervals: what the question "how much of this lay under that?" is answered
with.

An interval is `(begin, end)` in nanoseconds with begin <= end; a *set* of intervals is a list that
is sorted and free of overlaps, as `union` returns it. All functions are exact (integers in,
integers out) and linear in their input after sorting.
"""

from __future__ import annotations

from collections.abc import Iterable

Interval = tuple[int, int]

__all__ = ["Interval", "intersect", "measure", "subtract", "union"]


def union(intervals: Iterable[Interval]) -> list[Interval]:
    """Sort and merge: the set of moments that lie in at least one of `intervals`."""
    merged: list[Interval] = []
    for begin, end in sorted(intervals):
        if end <= begin:
            continue  # an instant has no length
        if merged and begin <= merged[-1][1]:
            if end > merged[-1][1]:
                merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return merged


def intersect(a: Iterable[Interval], b: Iterable[Interval]) -> list[Interval]:
    """Return the moments that lie in both sets."""
    a, b = union(a), union(b)
    common: list[Interval] = []
    i = j = 0
    while i < len(a) and j < len(b):
        begin, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if begin < end:
            common.append((begin, end))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return common


def subtract(a: Iterable[Interval], b: Iterable[Interval]) -> list[Interval]:
    """Return the moments of `a` that do not lie in `b`."""
    b = union(b)
    left: list[Interval] = []
    j = 0
    for begin, end in union(a):
        while j < len(b) and b[j][1] <= begin:
            j += 1
        k = j
        while k < len(b) and b[k][0] < end:
            if begin < b[k][0]:
                left.append((begin, b[k][0]))
            begin = max(begin, b[k][1])
            k += 1
        if begin < end:
            left.append((begin, end))
    return left


def measure(intervals: Iterable[Interval]) -> int:
    """Total length in nanoseconds; what overlaps counts once."""
    return sum(end - begin for begin, end in union(intervals))
