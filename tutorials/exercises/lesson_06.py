"""Exercises of lesson 6: unused parameters, no_sync, uneven inputs."""

from __future__ import annotations

from . import answered, exercise


@exercise(
    "Averages with unused parameters",
    hint="used nowhere: untouched; used somewhere: a rank without it counts as zero",
)
def averaged(answer):
    cases = [
        ([1.0, 2.0], None, 1.5),
        ([1.0, None], None, 0.5),
        ([None, None, None], None, None),
        ([None, None], 7.0, 7.0),
        ([None, 3.0, None, 5.0], None, 2.0),
    ]
    for gradients, stale, expected in cases:
        got = answer(list(gradients), stale)
        if expected is not None:
            got = answered(got)
        elif got is Ellipsis:
            answered(got)
        assert got == expected, f"{gradients}, stale {stale}: got {got}, expected {expected}"


@averaged.solve
def _(gradients, stale):
    if all(gradient is None for gradient in gradients):
        return stale
    return sum(gradient or 0.0 for gradient in gradients) / len(gradients)


@averaged.mistake
def _(gradients, stale):
    used = [gradient for gradient in gradients if gradient is not None]
    return sum(used) / len(used) if used else stale  # over the ranks that used it


@averaged.mistake
def _(gradients, stale):
    return sum(gradient or 0.0 for gradient in gradients) / len(gradients)  # unused becomes 0


@exercise(
    "What is reduced",
    hint="forward decides; a synchronized pass averages all that has accumulated on each rank",
)
def accumulated(answer):
    cases = [
        ([(False, False)], [1.5, 1.5]),
        ([(True, True)], [1.0, 2.0]),
        ([(True, False)], [1.0, 2.0]),
        ([(False, True)], [1.5, 1.5]),
        ([(True, True), (True, True), (False, False)], [4.5, 4.5]),
        ([(False, False), (True, True)], [2.5, 3.5]),
        ([(False, False), (False, False)], [3.0, 3.0]),
    ]
    for passes, expected in cases:
        got = list(answered(answer(list(passes))))
        assert got == expected, f"passes {passes}: got {got}, expected {expected}"


@accumulated.solve
def _(passes):
    held = [0.0, 0.0]
    for forward_inside, _ in passes:
        held = [held[0] + 1.0, held[1] + 2.0]
        if not forward_inside:
            held = [sum(held) / 2] * 2
    return held


@accumulated.mistake
def _(passes):
    held = [0.0, 0.0]
    for _, backward_inside in passes:  # as if backward decided
        held = [held[0] + 1.0, held[1] + 2.0]
        if not backward_inside:
            held = [sum(held) / 2] * 2
    return held


@accumulated.mistake
def _(passes):
    held = [0.0, 0.0]
    for forward_inside, _ in passes:  # as if only the last gradient were averaged
        held = [held[r] + (r + 1.0 if forward_inside else 1.5) for r in (0, 1)]
    return held


@exercise(
    "Uneven inputs", hint="a rank that has joined sends zeros; what the sum is divided by differs"
)
def join_gradients(answer):
    cases = [
        ([3, 5], True, [1, 1, 1, 0.5, 0.5]),
        ([3, 5], False, [1, 1, 1, 1, 1]),
        ([2, 2], True, [1, 1]),
        ([1, 2, 4], True, [1, 2 / 3, 1 / 3, 1 / 3]),
        ([1, 2, 4], False, [1, 1, 1, 1]),
    ]
    for batches, by_initial, expected in cases:
        got = list(answered(answer(list(batches), by_initial)))
        right = len(got) == len(expected) and all(
            abs(a - b) < 1e-12 for a, b in zip(got, expected, strict=True)
        )
        assert right, f"{batches}, divide_by_initial={by_initial}: got {got}, expected {expected}"


@join_gradients.solve
def _(batches, divide_by_initial):
    active = [sum(n > step for n in batches) for step in range(max(batches))]
    return [a / (len(batches) if divide_by_initial else a) for a in active]


@join_gradients.mistake
def _(batches, divide_by_initial):
    active = [sum(n > step for n in batches) for step in range(min(batches))]  # stops too early
    return [a / (len(batches) if divide_by_initial else a) for a in active]


@join_gradients.mistake
def _(batches, divide_by_initial):
    active = [sum(n > step for n in batches) for step in range(max(batches))]
    return [a / (a if divide_by_initial else len(batches)) for a in active]  # the wrong way round
