"""Exercises of lesson 9: two rules of contextual decomposition, and the candidates of a round."""

from __future__ import annotations

import numpy as np

from . import answered, exercise


@exercise(
    "The linear rule",
    hint="weight @ rel and weight @ irr first; then share the bias by their absolute values, and "
    "mind 0 / 0",
)
def linear_rule(answer):
    weight = np.array([[2.0, -1.0], [1.0, 1.0], [0.0, 0.0], [1.0, 0.0]])
    bias = np.array([1.0, -3.0, 0.5, 2.0])
    for rel, irr, expected in (
        ([1.0, 0.0], [0.0, 1.0], ([2 + 2 / 3, -0.5, 0.0, 3.0], [-1 + 1 / 3, -0.5, 0.5, 0.0])),
        ([0.0, 0.0], [1.0, 1.0], ([0.0, 0.0, 0.0, 0.0], [2.0, -1.0, 0.5, 3.0])),
        ([0.0, 2.0], [0.0, -1.0], ([-4 / 3, 0.0, 0.0, 0.0], [4 / 3, -2.0, 0.5, 2.0])),
    ):
        with np.errstate(all="ignore"):  # 0 / 0 is for the answer to find
            got = answered(answer(np.array(rel), np.array(irr), weight, bias))
        for name, mine, right in zip(("relevant", "irrelevant"), got, expected, strict=True):
            assert np.allclose(mine, right), (
                f"rel = {rel}, irr = {irr}: the {name} part is {np.round(mine, 3)}, expected "
                f"{np.round(right, 3)}"
            )


@linear_rule.solve
def _(rel, irr, weight, bias):
    rel, irr = weight @ rel, weight @ irr
    total = np.abs(rel) + np.abs(irr)
    share = np.divide(np.abs(rel), total, out=np.zeros_like(total), where=total > 0)
    return rel + share * bias, irr + (1 - share) * bias


@linear_rule.mistake
def _(rel, irr, weight, bias):
    rel, irr = weight @ rel, weight @ irr
    return rel + bias / 2, irr + bias / 2  # half each


@linear_rule.mistake
def _(rel, irr, weight, bias):
    rel, irr = weight @ rel, weight @ irr
    return rel, irr + bias  # nothing for the relevant part


@linear_rule.mistake
def _(rel, irr, weight, bias):
    rel, irr = weight @ rel, weight @ irr
    share = np.abs(rel) / (np.abs(rel) + np.abs(irr))
    return rel + share * bias, irr + (1 - share) * bias  # 0 / 0


@linear_rule.mistake
def _(rel, irr, weight, bias):
    rel, irr = weight @ rel, weight @ irr
    total = np.abs(rel + irr)
    share = np.divide(rel, total, out=np.zeros_like(total), where=total > 0)
    return rel + share * bias, irr + (1 - share) * bias  # signs


@exercise(
    "The two-way split",
    hint="first: f(rel) alone; last: f(rel + irr) without f(irr); the mean of the two",
)
def two_way_rule(answer):
    rel, irr = np.array([1.0, -0.5, 0.0, 2.0]), np.array([0.5, 2.0, 1.0, -2.0])
    for name, f in (("tanh", np.tanh), ("x**2", np.square), ("2x", lambda x: 2 * x)):
        got = answered(answer(rel, irr, f))
        first, last = f(rel), f(rel + irr) - f(irr)
        assert np.allclose(got[0], (first + last) / 2), (
            f"f = {name}: the relevant part is {np.round(got[0], 3)}, expected "
            f"{np.round((first + last) / 2, 3)}"
        )
        assert np.allclose(got[0] + got[1], f(rel + irr)), (
            f"f = {name}: the parts add up to {np.round(got[0] + got[1], 3)}, and f of the sum is "
            f"{np.round(f(rel + irr), 3)}"
        )


@two_way_rule.solve
def _(rel, irr, f):
    relevant = (f(rel) + f(rel + irr) - f(irr)) / 2
    return relevant, f(rel + irr) - relevant


@two_way_rule.mistake
def _(rel, irr, f):
    return f(rel), f(rel + irr) - f(rel)  # the rectifier's rule


@two_way_rule.mistake
def _(rel, irr, f):
    return f(rel), f(irr)  # does not add up


@two_way_rule.mistake
def _(rel, irr, f):
    relevant = (f(rel) + f(rel + irr) - f(irr)) / 2
    return relevant, f(irr)


@exercise(
    "Candidates of a round",
    hint="a group (start, stop) has the neighbours start - 1 and stop, if there are such words; a "
    "priority is what joining ADDS to the group's score",
)
def candidates_of(answer):
    values = np.array([1.0, -2.0, 0.5, 4.0, -1.0])

    def score(start, stop):
        assert 0 <= start < stop <= 5, f"score({start}, {stop}) asks about words there are not"
        return float(values[start:stop].sum() + 10 * (start <= 1 and stop >= 3))  # 1 and 2 interact

    for groups in ([(1, 2)], [(0, 1), (3, 5)], [(2, 4)], [(0, 5)], []):
        expected = {}
        for start, stop in groups:
            for at in (start - 1, stop):
                if 0 <= at < 5:
                    joined = score(min(start, at), max(stop, at + 1))
                    expected[(start, stop), at] = joined - score(start, stop)
        got = answered(answer(list(groups), 5, score))
        assert set(got) == set(expected), (
            f"groups {groups} of 5 words: the candidates are {sorted(got)}, expected "
            f"{sorted(expected)}"
        )
        for key, value in expected.items():
            assert np.isclose(got[key], value), (
                f"groups {groups}: the priority of {key} is {got[key]:g}, expected {value:g}"
            )


@candidates_of.solve
def _(groups, count, score):
    found = {}
    for start, stop in groups:
        alone = score(start, stop)
        if start > 0:
            found[(start, stop), start - 1] = score(start - 1, stop) - alone
        if stop < count:
            found[(start, stop), stop] = score(start, stop + 1) - alone
    return found


@candidates_of.mistake
def _(groups, count, score):
    found = {}
    for start, stop in groups:
        if start > 0:
            found[(start, stop), start - 1] = score(start - 1, stop)  # of the whole, not the gain
        if stop < count:
            found[(start, stop), stop] = score(start, stop + 1)
    return found


@candidates_of.mistake
def _(groups, count, score):
    found = {}
    for start, stop in groups:
        if start > 0:
            found[(start, stop), start - 1] = score(start - 1, start)  # the word's own score
        if stop < count:
            found[(start, stop), stop] = score(stop, stop + 1)
    return found


@candidates_of.mistake
def _(groups, count, score):
    return {
        (group, group[1]): score(group[0], group[1] + 1) - score(*group)
        for group in groups
        if group[1] < count
    }  # only to the right
