"""Exercises of lesson 5: the reducer's countdown, its states, and the wait for predecessors."""

from __future__ import annotations

from itertools import pairwise

from . import answered, exercise


def _state(bucket_of, buckets):
    waiting = [list(bucket_of.values()).count(b) for b in range(buckets)]
    return {"bucket_of": dict(bucket_of), "waiting": waiting, "launched": []}


@exercise(
    "The countdown",
    hint="count down first; then, while the next bucket in index order lacks nothing, launch it",
)
def mark(answer):
    bucket_of = {0: 2, 1: 1, 2: 1, 3: 0}
    cases = [
        ([3, 2, 1, 0], [[0], [0], [0, 1], [0, 1, 2]]),
        ([0, 1, 2, 3], [[], [], [], [0, 1, 2]]),
        ([1, 3, 2, 0], [[], [0], [0, 1], [0, 1, 2]]),
    ]
    for order, expected in cases:
        state = _state(bucket_of, 3)
        for parameter, launched in zip(order, expected, strict=True):
            state = answered(answer(state, parameter))
            assert list(state["launched"]) == launched, (
                f"marked in the order {order}: after {parameter}, launched {state['launched']}, "
                f"expected {launched}"
            )


@mark.solve
def _(state, parameter):
    state["waiting"][state["bucket_of"][parameter]] -= 1
    following = len(state["launched"])
    while following < len(state["waiting"]) and state["waiting"][following] == 0:
        state["launched"].append(following)
        following += 1
    return state


@mark.mistake
def _(state, parameter):
    bucket = state["bucket_of"][parameter]
    state["waiting"][bucket] -= 1
    if state["waiting"][bucket] == 0:
        state["launched"].append(bucket)  # as soon as it is ready
    return state


@mark.mistake
def _(state, parameter):
    state["waiting"][state["bucket_of"][parameter]] -= 1
    following = len(state["launched"])
    if following < len(state["waiting"]) and state["waiting"][following] == 0:
        state["launched"].append(following)  # one at a time: the last buckets never leave
    return state


@exercise("The next state", hint="draw the four states; only `mark` while idle is let pass")
def after(answer):
    right = {
        ("idle", "prepare"): "armed",
        ("idle", "mark"): "idle",
        ("armed", "prepare"): "armed",
        ("armed", "mark"): "filling",
        ("armed", "mark_last"): "draining",
        ("filling", "mark"): "filling",
        ("filling", "mark_last"): "draining",
        ("draining", "finish"): "idle",
    }
    for (state, call), expected in right.items():
        try:
            got = answered(answer(state, call))
        except ValueError as error:
            raise AssertionError(
                f"{call} while {state} is allowed, got ValueError: {error}"
            ) from None
        assert got == expected, f"{call} while {state}: got {got!r}, expected {expected!r}"
    for state, call in (("idle", "finish"), ("armed", "finish"), ("filling", "finish")):
        try:
            got = answer(state, call)
        except ValueError:
            continue
        raise AssertionError(f"{call} while {state}: got {got!r}, expected a ValueError")


_NEXT = {
    ("idle", "prepare"): "armed",
    ("idle", "mark"): "idle",
    ("armed", "prepare"): "armed",
    ("armed", "mark"): "filling",
    ("armed", "mark_last"): "draining",
    ("filling", "mark"): "filling",
    ("filling", "mark_last"): "draining",
    ("draining", "finish"): "idle",
}


@after.solve
def _(state, call):
    if (state, call) not in _NEXT:
        raise ValueError(f"{call} while {state}")
    return _NEXT[state, call]


@after.mistake
def _(state, call):
    return {"prepare": "armed", "mark": "filling", "mark_last": "draining", "finish": "idle"}[call]


@after.mistake
def _(state, call):
    return _NEXT.get((state, call), state)  # nothing is ever wrong


@exercise("Waiting for predecessors", hint="a bucket leaves at the running maximum of ready times")
def waits(answer):
    cases = [
        ([1, 2, 3], [0, 0, 0]),
        ([3, 2, 1], [0, 1, 2]),
        ([2, 5, 4, 7, 6], [0, 0, 1, 0, 1]),
        ([4], [0]),
    ]
    for ready, expected in cases:
        got = list(answered(answer(list(ready))))
        assert got == expected, f"ready at {ready}: got {got}, expected {expected}"


@waits.solve
def _(ready_times):
    latest, result = 0, []
    for moment in ready_times:
        latest = max(latest, moment)
        result.append(latest - moment)
    return result


@waits.mistake
def _(ready_times):
    return [max(ready_times) - moment for moment in ready_times]  # all leave at the end


@waits.mistake
def _(ready_times):
    return [0] + [
        max(0, before - moment) for before, moment in pairwise(ready_times)
    ]  # only the direct predecessor counts
